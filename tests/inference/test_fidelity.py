"""A warning reports the difference between a graph and scikit-learn."""

import re
import warnings

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.svm import NuSVC

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import FidelityWarning
from ortlearn.inference.fidelity import SAMPLES, differences
from ortlearn.inference.running import Inference
from ortlearn.problem.problem import Problem

X, CLASSES = load_iris(return_X_y=True)
X = X.astype(np.float32)
STILL = {"warm_start": True, "max_iter": 1, "learning_rate": 1e-30}


def runner_of(model, y):
    configuration = OrtGradientOptimizer(model, **STILL)._configuration()
    problem = Problem.of(configuration, X, y)
    return Inference(problem, problem.trainable.model, configuration.runtime)


@pytest.mark.parametrize("changed", [True, False])
def test_difference_of_values(changed):
    model = Ridge().fit(X, X[:, 0] * 2)
    runner = runner_of(model, X[:, 0] * 2)
    if changed:
        model.intercept_ += np.float32(0.5)
    found = differences(runner, model, X, X)
    if not changed:
        assert not found
        return
    (fault,) = found
    assert fault.category is FidelityWarning
    assert re.search(r"ONNX model of Ridge differs from scikit-learn's predict by up to 0\.0", fault.reason)
    assert f"{SAMPLES} of {SAMPLES} compared samples" in fault.reason


def test_difference_of_probabilities():
    model = LogisticRegression(max_iter=500).fit(X, CLASSES)
    runner = runner_of(model, CLASSES)
    model.coef_[0] *= 3
    (fault,) = differences(runner, model, X, X)
    assert re.search("predict_proba by up to .* at sample [0-9]+ ", fault.reason)


def test_fit_compares_few_samples(monkeypatch):
    model = KNeighborsRegressor().fit(X, X[:, 0])
    seen = []
    monkeypatch.setattr(
        KNeighborsRegressor, "predict", lambda self, samples: seen.append(samples) or samples[:, 0] + 9
    )
    with pytest.warns(FidelityWarning, match="KNeighborsRegressor"):
        OrtGradientOptimizer(model, weights_to_train="_y", dtype="float32", **STILL).fit(X, X[:, 0])
    (samples,) = seen
    assert len(samples) == SAMPLES


def test_equal_infinite_predictions():
    model = TransformedTargetRegressor(Ridge(), func=np.log, inverse_func=np.exp, check_inverse=False)
    model.fit(X, X[:, 0])
    model.regressor_.intercept_ = np.float32(1e4)
    with np.errstate(over="ignore"):
        assert not differences(runner_of(model, X[:, 0]), model, X, X, X[:, 0])


def test_decisions_of_large_coefficients_are_compared():
    """Kernels cancel, so that votes of pairs tie differently in float32, although most classes agree."""
    rng = np.random.RandomState(5)
    samples = rng.normal(size=(60, 4))
    y = rng.randint(0, 4, 60)
    model = NuSVC(nu=0.3, kernel="linear").fit(samples, y)
    assert np.abs(model.dual_coef_).max() > 1e4
    with pytest.warns(FidelityWarning, match="NuSVC differs from scikit-learn's decision_function by up to"):
        OrtGradientOptimizer(model, dtype="float32", **STILL).fit(samples, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FidelityWarning)
        ours = OrtGradientOptimizer(model, dtype="float64", **STILL).fit(samples, y)
    np.testing.assert_allclose(ours.decision_function(samples), model.decision_function(samples), atol=1e-6)
