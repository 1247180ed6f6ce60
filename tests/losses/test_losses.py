"""Losses equal those in numpy, and gradients finite differences; every built-in loss has a record."""

from dataclasses import asdict

import numpy as np
import pytest
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
from tests.losses.loss_definitions import CASES, SCORES, TARGETS, softplus
from tests.losses.sample_losses import losses_of

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
    np.testing.assert_allclose(loss, case.losses.sum(), rtol=1e-5 if dtype == np.float32 else 1e-12)
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
    np.testing.assert_allclose(loss, (case.losses * weights).sum(), rtol=1e-12)
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
        losses = case.definition(predicted.astype(np.float64), expected)
        np.testing.assert_allclose(loss, losses.sum(), rtol=1e-5)
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
    losses = losses_of(loss, predicted, expected, run_onnx)
    assert losses.shape == (6,) and losses.dtype == dtype
    np.testing.assert_allclose(losses, case.losses, rtol=1e-5, atol=1e-6)


def test_squared_error_is_halved_in_an_estimator(run_onnx):
    losses = losses_of(SquaredErrorLoss(), SCORES, TARGETS, run_onnx)
    np.testing.assert_allclose(losses, ((SCORES - TARGETS) ** 2).sum(1) / 2)


def test_log_loss_of_float_labels(run_onnx):
    labels = (TARGETS > 0).astype(np.float64)
    losses = losses_of(LogLoss(), SCORES, labels, run_onnx)
    np.testing.assert_allclose(losses, (softplus(SCORES) - labels * SCORES).sum(1))
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
    losses = losses_of(FocalLoss(gamma=0), SCORES, labels, run_onnx)
    np.testing.assert_allclose(losses, losses_of(LogLoss(), SCORES, labels, run_onnx))
