"""Losses equal those in numpy, and gradients finite differences; every built-in loss has a record."""

from dataclasses import asdict, dataclass, field

import numpy as np
import pytest
import scipy.special
from onnx import TensorProto, helper
from sklearn._loss.loss import HalfGammaLoss, HalfPoissonLoss, HalfTweedieLoss
from sklearn.metrics import log_loss

from ortlearn import plugins
from ortlearn.differentiation import gradient_of_loss
from ortlearn.exceptions import PluginError
from ortlearn.graphs import GraphBuilder
from ortlearn.losses import (
    AbsoluteErrorLoss,
    BaseLoss,
    ElasticLoss,
    FocalLoss,
    GammaLoss,
    HuberLoss,
    LogLoss,
    PoissonLoss,
    QuantileLoss,
    SquaredErrorLoss,
    TweedieLoss,
    add_loss_output,
    resolve_loss,
)
from ortlearn.runtime.devices import Device
from ortlearn.runtime.sessions import make_session
from tests.losses.sample_losses import losses_of

RNG = np.random.default_rng(0)
SCORES = RNG.normal(scale=2.0, size=(6, 3))
TARGETS = RNG.normal(size=(6, 3))
BINARY = np.array([0, 1, 1, 0, 1, 0])
CLASSES = np.array([0, 2, 1, 1, 0, 2])
LABELS = RNG.integers(0, 2, size=(6, 3)).astype(float)


def softplus(z):
    return np.logaddexp(0.0, z)


def noncrossing(levels, middle):
    """Return the sum of the pinball losses of quantiles whose distances are softplus of the scores."""

    def rows(f, y):
        above = np.cumsum(softplus(f[:, middle + 1 :]), axis=1)
        below = np.cumsum(softplus(f[:, :middle])[:, ::-1], axis=1)[:, ::-1]
        centre = f[:, middle : middle + 1]
        residual = y - np.hstack([centre - below, centre, centre + above])
        return np.maximum(residual * levels, residual * (np.array(levels) - 1)).sum(1)

    return rows


def multinomial(f, y):
    return np.logaddexp.reduce(f, axis=1) - f[np.arange(len(y)), y]


def smoothed(share):
    """Return the log loss of smoothed labels."""

    def rows(f, y):
        logs = f - np.logaddexp.reduce(f, axis=1, keepdims=True)
        target = np.eye(f.shape[1])[y] * (1 - share) + share / f.shape[1]
        return -(target * logs).sum(1)

    return rows


def smoothed_binary(share):
    return lambda f, y: softplus(f[:, 0]) - (y * (1 - share) + share / 2) * f[:, 0]


def focal(gamma):
    def rows(f, y):
        loss = multinomial(f, y)
        return (1 - np.exp(-loss)) ** gamma * loss

    return rows


def focal_binary(gamma):
    def rows(f, y):
        margins = np.where(y == 1, f[:, 0], -f[:, 0])
        return scipy.special.expit(-margins) ** gamma * softplus(-margins)

    return rows


def of_scipy(function, threshold, residuals):
    return function(threshold, residuals).sum(1)


def of_sklearn(loss, f, y):
    """Return the losses of samples by scikit-learn, summed over outputs."""
    pairs = zip(f.T.astype(np.float64), y.T.astype(np.float64), strict=True)
    columns = [loss.loss(np.ascontiguousarray(b), np.ascontiguousarray(a)) for a, b in pairs]
    return np.sum(columns, axis=0)


def of_margin(function, f, y):
    return function(f * (2 * y - 1)).sum(1)


@dataclass
class Case:
    """Predictions, labels and the definition of a loss."""

    definition: object
    predicted: np.ndarray = field(default_factory=lambda: SCORES)
    expected: np.ndarray = field(default_factory=lambda: TARGETS)
    params: dict = field(default_factory=dict)

    @property
    def rows(self):
        return self.definition(self.predicted, self.expected)


def softplus_of(op, y, f):
    return op.Softplus(op.Neg(op.Abs(op.Sub(f, y))))


CASES = {
    "expression": [
        Case(lambda f, y: ((f - y) ** 2).sum(1) / 2),
        Case(
            lambda f, y: (np.where(y > f, 5, 1) * (y - f) ** 2).sum(1),
            params={"expression": "where(label > score, 5, 1) * (label - score)**2"},
        ),
        Case(
            lambda f, y: (np.log1p(np.exp(-np.abs(f - y))) + np.abs(f) ** 1.5).sum(1),
            params={"expression": lambda op, y, f: op.Add(softplus_of(op, y, f), op.Pow(op.Abs(f), 1.5))},
        ),
    ],
    "squared_error": [
        Case(lambda f, y: ((f - y) ** 2).sum(1)),
        Case(lambda f, y: 3 * ((f - y) ** 2).sum(1), params={"factor": 3.0}),
    ],
    "absolute_error": [Case(lambda f, y: np.abs(f - y).sum(1))],
    "cross_entropy": [
        Case(
            lambda f, y: (
                -(y * np.log(np.clip(f, 1e-6, 1)) + (1 - y) * np.log(np.clip(1 - f, 1e-6, 1))).sum(1)
            ),
            scipy.special.expit(SCORES),
            scipy.special.expit(TARGETS),
        )
    ],
    "elastic": [
        Case(lambda f, y: (0.5 * np.abs(f - y) + 0.5 * (f - y) ** 2).sum(1)),
        Case(
            lambda f, y: (0.1 * np.abs(f - y) + 2.0 * (f - y) ** 2).sum(1),
            params={"l1_weight": 0.1, "l2_weight": 2.0},
        ),
    ],
    "log_loss": [
        Case(multinomial, SCORES, CLASSES),
        Case(lambda f, y: softplus(f[:, 0]) - y * f[:, 0], SCORES[:, :1], BINARY),
        Case(smoothed(0.2), SCORES, CLASSES, {"label_smoothing": 0.2}),
        Case(smoothed_binary(0.2), SCORES[:, :1], BINARY, {"label_smoothing": 0.2}),
    ],
    "huber": [
        Case(lambda f, y: of_scipy(scipy.special.huber, 1.0, f - y)),
        Case(lambda f, y: of_scipy(scipy.special.huber, 0.3, f - y), params={"delta": 0.3}),
    ],
    "quantile": [
        Case(lambda f, y: np.maximum(0.5 * (y - f), -0.5 * (y - f)).sum(1)),
        Case(lambda f, y: np.maximum(0.9 * (y - f), -0.1 * (y - f)).sum(1), params={"quantile": 0.9}),
    ],
    "quantiles": [
        Case(noncrossing([0.05, 0.5, 0.95], 1)),
        Case(noncrossing([0.1, 0.2, 0.3], 2), params={"levels": (0.1, 0.2, 0.3)}),
        Case(noncrossing([0.6, 0.7, 0.9], 0), params={"levels": [0.6, 0.7, 0.9]}),
    ],
    "epsilon_insensitive": [
        Case(lambda f, y: np.maximum(0, np.abs(f - y) - 0.1).sum(1)),
        Case(lambda f, y: np.maximum(0, np.abs(f - y) - 1).sum(1), params={"epsilon": 1.0}),
    ],
    "squared_epsilon_insensitive": [Case(lambda f, y: (np.maximum(0, np.abs(f - y) - 0.1) ** 2).sum(1))],
    "poisson": [Case(lambda f, y: of_sklearn(HalfPoissonLoss(), f, y), expected=np.abs(TARGETS))],
    "gamma": [Case(lambda f, y: of_sklearn(HalfGammaLoss(), f, y), expected=np.abs(TARGETS) + 0.1)],
    "tweedie": [
        Case(
            lambda f, y, p=p: of_sklearn(HalfTweedieLoss(power=p), f, y),
            expected=np.abs(TARGETS),
            params={"power": p},
        )
        for p in (1, 1.5, 2, 3, -1)
    ],
    "hinge": [Case(lambda f, y: of_margin(lambda m: np.maximum(0, 1 - m), f, y), expected=LABELS)],
    "squared_hinge": [
        Case(lambda f, y: of_margin(lambda m: np.maximum(0, 1 - m) ** 2, f, y), expected=LABELS)
    ],
    "modified_huber": [
        Case(
            lambda f, y: of_margin(lambda m: np.where(m >= -1, np.maximum(0, 1 - m) ** 2, -4 * m), f, y),
            expected=LABELS,
        )
    ],
    "perceptron": [Case(lambda f, y: of_margin(lambda m: np.maximum(0, -m), f, y), expected=LABELS)],
    "focal": [
        Case(focal(2.0), SCORES, CLASSES),
        Case(focal(0.0), SCORES, CLASSES, {"gamma": 0.0}),
        Case(focal_binary(2.0), SCORES[:, :1], BINARY),
        Case(focal_binary(1.5), SCORES[:, :1], BINARY, {"gamma": 1.5}),
    ],
}
ALIASES = {
    "square_error": "squared_error",
    "l2": "squared_error",
    "l1": "absolute_error",
    "pinball": "quantile",
    "log": "log_loss",
    "neglog": "log_loss",
    "logloss": "log_loss",
}
ALL = [
    pytest.param(name, case, id=f"{name}-{i}")
    for name, cases in CASES.items()
    for i, case in enumerate(cases)
]


def identity(n_outputs, dtype):
    """Return a model whose output ``y`` is its input ``f``."""
    elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    infos = [[helper.make_tensor_value_info(name, elem_type, ["N", n_outputs])] for name in "fy"]
    graph = helper.make_graph([helper.make_node("Identity", ["f"], ["y"])], "g", *infos)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def arrays(case, dtype):
    labels = case.expected
    return case.predicted.astype(dtype), labels if labels.dtype.kind == "i" else labels.astype(dtype)


def built_in_losses():
    return {info.name for info in plugins.list_plugins(plugins.LOSSES) if info.distribution == "ortlearn"}


def test_every_loss_has_a_record():
    assert built_in_losses() == set(CASES) | set(ALIASES)


@pytest.mark.parametrize("alias, name", ALIASES.items())
def test_aliases(alias, name):
    assert plugins.get(plugins.LOSSES, alias) is plugins.get(plugins.LOSSES, name)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name, case", ALL)
def test_loss_output(run_onnx, name, case, dtype):
    model = add_loss_output(identity(case.predicted.shape[1], dtype), name, **case.params)
    predicted, expected = arrays(case, dtype)
    loss, output = run_onnx(model, predicted, expected)
    assert loss.shape == () and loss.dtype == dtype
    np.testing.assert_allclose(loss, case.rows.sum(), rtol=1e-5 if dtype == np.float32 else 1e-12)
    np.testing.assert_array_equal(output, predicted)


@pytest.mark.parametrize("backend", ["auto", pytest.param("ort", marks=pytest.mark.needs_training)])
@pytest.mark.parametrize("name, case", ALL)
def test_gradient_against_finite_differences(run_onnx, name, case, backend):
    model = add_loss_output(
        identity(case.predicted.shape[1], np.float64), name, weight_name="w", **case.params
    )
    gradient = gradient_of_loss(model, "loss", ["f"], backend)
    predicted, expected = arrays(case, np.float64)
    weights = np.array([0.0, 1.0, 2.0, 0.5, 10.0, 0.25])
    feeds = {"label": expected, "w": weights}
    loss, got = run_onnx(gradient, f=predicted, **feeds)
    np.testing.assert_allclose(loss, (case.rows * weights).sum(), rtol=1e-12)
    numeric = np.empty_like(predicted)
    session = make_session(model, Device("cpu"))
    for index in np.ndindex(predicted.shape):
        step = np.zeros_like(predicted)
        step[index] = 1e-6
        high, low = (session.run(None, {"f": predicted + sign * step, **feeds})[0] for sign in (1, -1))
        numeric[index] = (high - low) / 2e-6
    np.testing.assert_allclose(got, numeric, rtol=1e-6, atol=1e-7 + 1e-9 * abs(loss))


@pytest.mark.parametrize("backend", ["auto", pytest.param("ort", marks=pytest.mark.needs_training)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name, case", ALL)
def test_extreme_scores(name, case, dtype, backend):
    expected = arrays(case, dtype)[1]
    model = add_loss_output(identity(case.predicted.shape[1], dtype), name, **case.params)
    session = make_session(gradient_of_loss(model, "loss", ["f"], backend), Device("cpu"))
    high = 10.0 if plugins.get(plugins.LOSSES, name).link == "log" else 1e4
    of_classes = case.expected.dtype.kind == "i" and case.predicted.shape[1] > 1
    for value in (0.0, high, -high):
        predicted = np.full_like(case.predicted, value, dtype=dtype)
        if of_classes:
            predicted[:, 1:] = 0
        loss, gradient = session.run(None, {"f": predicted, "label": expected})
        rows = case.definition(predicted.astype(np.float64), expected)
        np.testing.assert_allclose(loss, rows.sum(), rtol=1e-5)
        assert np.all(np.isfinite(gradient))


def test_log_loss_equals_scikit_learns(run_onnx):
    for case in CASES["log_loss"][:2]:
        model = add_loss_output(identity(case.predicted.shape[1], np.float64), "log_loss")
        loss, _ = run_onnx(model, *arrays(case, np.float64))
        scores = case.predicted
        if scores.shape[1] == 1:
            scores = np.hstack([np.zeros_like(scores), scores])
        proba = np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))
        np.testing.assert_allclose(loss, log_loss(case.expected, proba, normalize=False), rtol=1e-10)


@pytest.mark.parametrize("value", [0.0, 1.5, -3.0, 1e4, -1e4])
def test_gradient_of_binary_log_loss_is_sigmoid_minus_label(run_onnx, value):
    # including zero, where max(z, 0) has no derivative
    model = add_loss_output(identity(1, np.float64), "log_loss")
    gradient = gradient_of_loss(model, "loss", ["f"])
    for label in (0, 1):
        _, got = run_onnx(gradient, f=np.array([[value]]), label=np.array([label]))
        np.testing.assert_allclose(got, [[np.exp(-softplus(-value)) - label]], atol=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name, case", ALL)
def test_forward_returns_one_loss_per_sample(run_onnx, name, case, dtype):
    loss = resolve_loss(name, **({"factor": 1.0} if name == "squared_error" else {}) | case.params)
    predicted, expected = arrays(case, dtype)
    rows = losses_of(loss, predicted, expected, run_onnx)
    assert rows.shape == (6,) and rows.dtype == dtype
    np.testing.assert_allclose(rows, case.rows, rtol=1e-5, atol=1e-6)


def test_squared_error_is_halved_in_an_estimator(run_onnx):
    rows = losses_of(SquaredErrorLoss(), SCORES, TARGETS, run_onnx)
    np.testing.assert_allclose(rows, ((SCORES - TARGETS) ** 2).sum(1) / 2)


def test_log_loss_of_float_labels(run_onnx):
    labels = (TARGETS > 0).astype(np.float64)
    rows = losses_of(LogLoss(), SCORES, labels, run_onnx)
    np.testing.assert_allclose(rows, (softplus(SCORES) - labels * SCORES).sum(1))
    column = losses_of(LogLoss(), SCORES[:, :1], labels[:, :1], run_onnx)
    np.testing.assert_allclose(column, softplus(SCORES[:, 0]) - labels[:, 0] * SCORES[:, 0])


def test_tasks():
    assert LogLoss.tasks == {"classification", "multilabel"} and LogLoss.integer_labels
    for loss in (SquaredErrorLoss, AbsoluteErrorLoss, ElasticLoss, HuberLoss, QuantileLoss, TweedieLoss):
        assert loss.tasks == {"regression"} and not loss.integer_labels


def test_unimplemented_forward():
    class Mine(BaseLoss):
        pass

    with pytest.raises(NotImplementedError, match="Mine has no forward expression"):
        Mine().forward(GraphBuilder(), "y", "f")


def test_type_of_loss_output():
    model = add_loss_output(identity(3, np.float32))
    loss = model.graph.output[0]
    assert (loss.name, loss.type.tensor_type.elem_type) == ("loss", TensorProto.FLOAT)
    assert loss.type.tensor_type.HasField("shape") and not loss.type.tensor_type.shape.dim


@pytest.mark.parametrize(
    "spec, params",
    [
        ("huber", {"delta": 0}),
        ("huber", {"delta": "x"}),
        ("quantile", {"quantile": 1.0}),
        ("quantile", {"quantile": 0}),
        ("quantiles", {"levels": [0.5, 0.1]}),
        ("quantiles", {"levels": [0.5, 0.5]}),
        ("quantiles", {"levels": [0.0, 0.5]}),
        ("quantiles", {"levels": []}),
        ("quantiles", {"levels": "0.5"}),
        ("epsilon_insensitive", {"epsilon": -0.1}),
        ("tweedie", {"power": 0.5}),
        ("tweedie", {"power": np.nan}),
        ("focal", {"gamma": 0.5}),
        ("focal", {"gamma": -1}),
        ("log_loss", {"label_smoothing": 1.0}),
    ],
)
def test_invalid_parameters(spec, params):
    with pytest.raises(PluginError, match=rf"{next(iter(params))}=.* (must|Choose)"):
        resolve_loss(spec, **params)


def test_domains_equal_scikit_learns():
    for loss, other in [
        (PoissonLoss(), HalfPoissonLoss()),
        (GammaLoss(), HalfGammaLoss()),
        *((TweedieLoss(power=p), HalfTweedieLoss(power=p)) for p in (-1, 0, 1, 1.5, 2, 3)),
    ]:
        assert asdict(loss.domain) == asdict(other.interval_y_true)
        assert loss.link == "log"


def test_focal_loss_with_gamma_zero_is_log_loss(run_onnx):
    labels = (TARGETS > 0).astype(np.float64)
    rows = losses_of(FocalLoss(gamma=0), SCORES, labels, run_onnx)
    np.testing.assert_allclose(rows, losses_of(LogLoss(), SCORES, labels, run_onnx))
