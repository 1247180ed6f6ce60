"""Nonnegative matrix factorizations: transform, gradients and objective."""

import numpy as np
import pytest
from sklearn.decomposition import NMF, MiniBatchNMF

from ortlearn.estimators import OrtGradientOptimizer
from ortlearn.models import all_covered, objective_of
from ortlearn.penalties import ElasticPenalty
from ortlearn.testing import check_model, check_objective
from ortlearn.trainable.from_estimator import sklearn_to_onnx

RNG = np.random.RandomState(0)
X = RNG.gamma(1.0, size=(30, 2)) @ RNG.gamma(1.0, size=(2, 5)) + 0.1 * RNG.uniform(size=(30, 5))
ZEROS = X * (RNG.uniform(size=X.shape) < 0.8)
#: A tolerance that stops early, far from the minimum.
EARLY = {"tol": 1e-2}
MU = {"solver": "mu"}
MODELS = {
    "coordinates": (NMF, {}),
    "early": (NMF, EARLY),
    "one component": (NMF, {"n_components": 1}),
    "penalties": (NMF, {"alpha_W": 0.02, "l1_ratio": 0.4}),
    "few iterations": (NMF, {"max_iter": 300, "tol": 0.0, **MU}),
    "frobenius": (NMF, {**MU, **EARLY}),
    "kullback-leibler": (NMF, {**MU, **EARLY, "beta_loss": "kullback-leibler"}),
    "itakura-saito": (NMF, {**MU, **EARLY, "beta_loss": "itakura-saito"}),
    "between": (NMF, {**MU, **EARLY, "beta_loss": 1.5}),
    "small": (NMF, {**MU, **EARLY, "beta_loss": 0.5, "alpha_W": 0.01}),
    "large": (NMF, {**MU, **EARLY, "beta_loss": 3.0, "alpha_W": 0.01, "l1_ratio": 1.0}),
    "batches": (MiniBatchNMF, {}),
    "batches by kullback-leibler": (MiniBatchNMF, {"beta_loss": "kullback-leibler", "tol": 1e-3}),
    "batches by itakura-saito": (MiniBatchNMF, {"beta_loss": "itakura-saito", "alpha_W": 0.01}),
}


def fitted(name, X=X):
    kind, params = MODELS[name]
    return kind(**{"n_components": 2, "max_iter": 500, "random_state": 0, **params}).fit(X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", MODELS)
def test_transformed_samples(run_onnx, name):
    model, samples = fitted(name), X[:20] * 1.1
    if "itakura" not in name:
        samples[::3] = ZEROS[:20:3]
    samples = samples.astype(np.float32).astype(np.float64)
    expected = model.transform(samples)
    for dtype, tolerance in ((np.float64, 1e-8), (np.float32, 1e-3)):
        found = run_onnx(sklearn_to_onnx(model, dtype=dtype), samples.astype(dtype))[0]
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * expected.max())


@pytest.mark.sweep(9)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", [name for name in MODELS if name != "few iterations"])
def test_gradients_and_write_back(run, name):
    check_model(fitted(name), X[:12], run=run)


def test_a_component_of_zeros(run_onnx):
    model = fitted("coordinates")
    model.components_[1] = 0
    found = run_onnx(sklearn_to_onnx(model, dtype=np.float64), X)[0]
    np.testing.assert_allclose(found, model.transform(X), atol=1e-8)
    assert not found[:, 1].any()


@pytest.mark.parametrize("params", [{}, {"alpha_W": 0.01, "alpha_H": 0.02, "l1_ratio": 0.3}], ids=str)
def test_a_fit_minimises_the_objective(run, params):
    model = NMF(2, tol=1e-12, max_iter=100_000, random_state=0, **params).fit(X)
    check_objective(model, X, run=run)


def test_penalty_of_the_components():
    model = NMF(2, alpha_W=0.5, alpha_H=0.1, l1_ratio=0.2, random_state=0).fit(X)
    penalty = objective_of(model, 30).penalty
    assert isinstance(penalty, ElasticPenalty)
    np.testing.assert_allclose([penalty.l1, penalty.l2], [0.1 * 0.2, 0.5 * 0.1 * 0.8])


def test_training_lowers_the_error_with_nonnegative_components():
    start = NMF(2, tol=1.0, random_state=0).fit(X)
    start.components_ = start.components_ * RNG.uniform(0.5, 1.5, size=(2, 5))
    options = {"learning_rate": "LBFGS", "max_iter": 100, "random_state": 0}
    ours = OrtGradientOptimizer(start, warm_start=True, **options).fit(X)
    before, after = (np.square(X - m.transform(X) @ m.components_).sum() for m in (start, ours.to_sklearn()))
    assert after < 0.7 * before
    assert (ours.to_sklearn().components_ >= 0).all()


def test_coordinates_in_a_random_order_have_no_definition():
    assert not all_covered(NMF(2, shuffle=True, random_state=0).fit(X))
