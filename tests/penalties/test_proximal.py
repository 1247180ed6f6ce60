"""Proximal steps compared with their definitions, and trainings with them."""

import numpy as np
import pytest
import scipy.optimize
from onnx import helper
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Lasso, LinearRegression, Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import PluginError
from ortlearn.graphs import GraphBuilder, TensorType
from ortlearn.learning_rates import LearningRateAdam, LearningRateSGD, LearningRateSGDNesterov
from ortlearn.penalties import (
    ElasticPenalty,
    GroupLassoPenalty,
    L1Penalty,
    L2Penalty,
    MaxNormPenalty,
    resolve_penalty,
)

WEIGHT = np.random.default_rng(0).normal(size=(4, 3))
RATE = 0.25


def step_of(penalty, weight, run_onnx):
    """Return value and proximal step of a weight."""
    elem_type = helper.np_dtype_to_tensor_dtype(weight.dtype)
    op = GraphBuilder(dtype=weight.dtype, types={"w": TensorType(elem_type, weight.shape)})
    outputs = [penalty.forward(op, "w") or op.Identity("rate"), penalty.proximal_step(op, "w", "rate")]
    infos = [
        helper.make_tensor_value_info("w", elem_type, weight.shape),
        helper.make_tensor_value_info("rate", elem_type, []),
    ]
    outs = [helper.make_tensor_value_info(name, elem_type, None) for name in outputs]
    graph = helper.make_graph(op.nodes, "g", infos, outs, op.initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    return run_onnx(model, weight, np.array(RATE, weight.dtype))


def group_norms(weight):
    return np.sqrt(weight[0].size) * np.linalg.norm(weight.reshape(len(weight), -1), axis=1).sum()


@pytest.mark.parametrize("shape", [(4, 3), (5,), (3, 2, 2)])
@pytest.mark.parametrize(
    "penalty, value",
    [
        (L1Penalty(0.8), lambda w: 0.8 * np.abs(w).sum()),
        (ElasticPenalty(l1=0.8, l2=0.0), lambda w: 0.8 * np.abs(w).sum()),
        (GroupLassoPenalty(0.9), lambda w: 0.9 * group_norms(w)),
    ],
    ids=["l1", "elastic", "group_lasso"],
)
def test_step_minimises_its_definition(penalty, value, shape, run_onnx):
    weight = np.random.default_rng(1).normal(size=shape)
    found, stepped = step_of(penalty, weight, run_onnx)
    np.testing.assert_allclose(found, value(weight), rtol=1e-12)

    def objective(flat):
        moved = flat.reshape(shape)
        return ((moved - weight) ** 2).sum() / 2 + RATE * value(moved)

    reached = objective(stepped.ravel())
    for start in (stepped.ravel(), weight.ravel()):
        best = scipy.optimize.minimize(
            objective, start, method="Powell", options={"xtol": 1e-10, "ftol": 1e-14}
        )
        assert reached <= best.fun + 1e-9
    assert reached < objective(weight.ravel())


def test_groups_are_rows(run_onnx):
    weight = WEIGHT.copy()
    weight[1] *= 1e-3
    _, stepped = step_of(GroupLassoPenalty(0.1), weight, run_onnx)
    assert not stepped[1].any() and np.abs(stepped[[0, 2, 3]]).min() > 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_norms_of_units_are_bounded(dtype, run_onnx):
    norms = np.linalg.norm(WEIGHT, axis=0)
    radius = float(np.median(norms))
    _, stepped = step_of(MaxNormPenalty(radius), WEIGHT.astype(dtype), run_onnx)
    np.testing.assert_allclose(np.linalg.norm(stepped, axis=0), np.minimum(norms, radius), rtol=1e-6)
    inside = norms <= radius
    np.testing.assert_array_equal(stepped[:, inside], WEIGHT.astype(dtype)[:, inside])


@pytest.mark.parametrize("zero", [GroupLassoPenalty(0.3), MaxNormPenalty(1.0), L1Penalty(0.1)], ids=repr)
def test_zero_stays_zero(zero, run_onnx):
    _, stepped = step_of(zero, np.zeros((3, 2)), run_onnx)
    np.testing.assert_array_equal(stepped, np.zeros((3, 2)))


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return StandardScaler().fit_transform(X).astype(np.float32), ((y - y.mean()) / y.std()).astype(np.float32)


CONSTANT = {"learning_rate": "constant"}


@pytest.mark.parametrize("kind", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
@pytest.mark.parametrize(
    "rate",
    [
        LearningRateSGD(eta0=0.2, **CONSTANT),
        LearningRateSGDNesterov(eta0=0.02, momentum=0.8, **CONSTANT),
        LearningRateSGDNesterov(eta0=0.02, momentum=0.8, nesterov=False, **CONSTANT),
    ],
    ids=repr,
)
def test_lasso_equals_scikit_learn(kind, rate, diabetes):
    """Full batches with a proximal step are ISTA: the same weights, the same exact zeros."""
    X, y = diabetes
    expected = Lasso(alpha=0.1, tol=1e-8).fit(X.astype(np.float64), y)
    trained = kind(
        LinearRegression(),
        learning_rate=rate,
        learning_penalty=L1Penalty(0.1),
        batch_size=len(X),
        max_iter=300,
        random_state=0,
    ).fit(X, y)
    coef = trained.trained_coef_["coef"].ravel()
    np.testing.assert_allclose(coef, expected.coef_, atol=1e-4)
    np.testing.assert_array_equal(coef == 0, expected.coef_ == 0)
    assert 0 < (coef == 0).sum() < coef.size
    objective = ((X @ expected.coef_ + expected.intercept_ - y) ** 2).mean() / 2 + 0.1 * np.abs(
        expected.coef_
    ).sum()
    np.testing.assert_allclose(trained.train_losses_[-1], objective, rtol=1e-4)


@pytest.mark.slow
def test_lasso_with_an_adaptive_rate(diabetes):
    """Elements have different rates, so that l1 acts by its gradient, which gives no exact zeros."""
    X, y = diabetes
    expected = Lasso(alpha=0.1, tol=1e-8).fit(X.astype(np.float64), y)
    trained = OrtGradientOptimizer(
        LinearRegression(),
        learning_rate=LearningRateAdam(eta0=0.001),
        learning_penalty=L1Penalty(0.1),
        batch_size=len(X),
        max_iter=2000,
        random_state=0,
    ).fit(X, y)
    np.testing.assert_allclose(trained.trained_coef_["coef"].ravel(), expected.coef_, atol=5e-3)


def test_a_group_lasso_needs_a_step(diabetes):
    trainer = OrtGradientOptimizer(LinearRegression(), learning_penalty="group_lasso", learning_rate="Adam")
    with pytest.raises(PluginError, match="GroupLassoPenalty requires a proximal step.*SGDNesterov"):
        trainer.fit(*diabetes)


@pytest.mark.parametrize("names", ["coef_", "ridge.coef_", "coef", ["co*"], "I0_coef"])
def test_weights_are_selected_by_name(names, diabetes):
    X, y = diabetes
    found = []
    for penalty in (None, L2Penalty(5.0, weights=names)):
        trainer = OrtGradientOptimizer(make_pipeline(Ridge()), learning_penalty=penalty, random_state=0)
        found.append(np.abs(trainer.fit(X, y).trained_coef_["coef"]).max())
    assert found[1] < 0.3 * found[0]


def test_a_named_intercept_is_penalised(diabetes):
    X, y = diabetes
    trainer = OrtGradientOptimizer(
        Ridge(), learning_penalty=L2Penalty(5.0, weights="intercept_"), max_iter=20, random_state=0
    ).fit(X, y + 3)
    assert abs(trainer.trained_coef_["intercept"].item()) < 1 < np.abs(y + 3).mean()


@pytest.mark.parametrize("names", ["typo", "coefs_[0]", ["coef_", "typo"]])
def test_names_without_matches(names, diabetes):
    trainer = OrtGradientOptimizer(Ridge(), learning_penalty=L2Penalty(5.0, weights=names))
    with pytest.raises(PluginError, match="L2Penalty: weights=.* must name trained weights"):
        trainer.fit(*diabetes)
    assert not hasattr(trainer, "onnx_")


def test_subgradients_give_no_zeros(diabetes):
    X, y = diabetes
    trained = OrtGradientOptimizer(
        LinearRegression(), learning_penalty=L1Penalty(0.1, proximal=False), max_iter=20, random_state=0
    ).fit(X, y)
    assert (trained.trained_coef_["coef"] != 0).all()


@pytest.mark.parametrize(
    "rate", [LearningRateSGDNesterov(1e-3), LearningRateAdam(1e-3)], ids=lambda rate: type(rate).__name__
)
@pytest.mark.parametrize(
    "penalty", [ElasticPenalty(0.05, 0.01), GroupLassoPenalty(0.02), MaxNormPenalty(0.5)], ids=repr
)
def test_both_estimators_train_equally(penalty, rate, diabetes):
    if penalty.needs_step and rate.proximal_scale is None:
        rate = LearningRateSGD(1e-3)
    X, y = diabetes
    weights = []
    for kind in (OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer):
        model = MLPRegressor(hidden_layer_sizes=(5,), random_state=0)
        trained = kind(
            model, learning_rate=rate, learning_penalty=penalty, max_iter=3, batch_size=40, random_state=0
        ).fit(X, y)
        weights.append(trained.trained_coef_)
    for name, array in weights[0].items():
        np.testing.assert_allclose(array, weights[1][name], rtol=1e-3, atol=1e-5)


def test_features_are_selected(diabetes):
    X, y = diabetes
    X = np.hstack([X, np.random.RandomState(0).normal(size=X.shape).astype(np.float32)])
    penalty = GroupLassoPenalty(0.02, weights="coefs_0")
    trained = OrtGradientOptimizer(
        MLPRegressor(hidden_layer_sizes=(8,), random_state=0),
        learning_rate=LearningRateSGD(0.1, learning_rate="constant"),
        learning_penalty=penalty,
        max_iter=400,
        batch_size=len(X),
        random_state=0,
    ).fit(X, y)
    rows = np.abs(trained.trained_coef_["coefs_0"]).sum(axis=1)
    assert (rows[10:] == 0).sum() > (rows[:10] == 0).sum()
    assert (trained.trained_coef_["coefs_1"] != 0).all()


@pytest.mark.parametrize(
    "patterns, name, expected",
    [
        (None, "I0_coef", True),
        ("coef", "I0_coef", True),
        ("I0_*", "I0_coef", True),
        (["b", "c*"], "I0_coef", True),
        ("coef", "I0_coef1", False),
        ("coefs_[*]", "coefs_[12]", True),
        ("coefs_[1]", "coefs_1", False),
        ([], "I0_coef", False),
    ],
)
def test_chosen_weights(patterns, name, expected):
    assert L2Penalty(weights=patterns).applies_to(False, name) is expected
    assert L2Penalty(weights=patterns).applies_to(True, name) is (expected and patterns is not None)


@pytest.mark.parametrize(
    "penalty",
    [L1Penalty(-1.0), L2Penalty(np.inf), ElasticPenalty(l1="x"), GroupLassoPenalty(-0.1), MaxNormPenalty(0.0),
     L1Penalty(proximal="yes"), L2Penalty(weights=[1]), L2Penalty(intercept=3)],
    ids=repr,
)  # fmt: skip
def test_invalid_parameters(penalty):
    with pytest.raises(PluginError, match=f"{type(penalty).__name__}: "):
        resolve_penalty(penalty)
