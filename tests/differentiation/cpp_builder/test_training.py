"""Both estimators train linear models and networks with the C++ builder as with the rules."""

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet, LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import GradientError

pytestmark = pytest.mark.needs_training

X = np.random.default_rng(0).normal(size=(40, 3))
SCORES = X @ [1.0, -2.0, 0.5]
LABELS = {
    "values": SCORES,
    "columns": np.stack([SCORES, X[:, 0]], axis=1),
    "counts": np.exp(SCORES / 3).round(),
    "two": SCORES > 0,
    "three": np.digitize(SCORES, [-1, 1]),
}


def network(cls, sizes, activation="relu"):
    return cls(hidden_layer_sizes=sizes, activation=activation, random_state=0, max_iter=5)


#: Models, their labels, and whether the builder has all gradients in float64.
MODELS = [
    (LinearRegression(), "values", True),
    (LinearRegression(), "columns", True),
    (Ridge(), "values", True),
    (ElasticNet(alpha=0.1), "values", True),
    (PoissonRegressor(), "counts", True),
    (LogisticRegression(), "two", True),
    (LogisticRegression(), "three", True),
    (network(MLPRegressor, (5, 4), activation="tanh"), "values", True),
    (network(MLPRegressor, (5,), activation="logistic"), "columns", True),
    (network(MLPRegressor, (5, 4)), "values", False),
    (network(MLPClassifier, (5,), activation="tanh"), "two", True),
    (network(MLPClassifier, (5,)), "three", False),
]


def trained(cls, model, labels, gradient, weighted=False, **options):
    options = {"random_state": 0, "max_iter": 4, "keep_better": False, **options}
    weights = np.linspace(0.5, 1.5, len(X)) if weighted else None
    return cls(model, gradient=gradient, **options).fit(X, LABELS[labels], sample_weight=weights)


@pytest.mark.sweep(13)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "options",
    [{"learning_rate": 0.01}, {"learning_rate": "LBFGS"}, {"batch_size": 7}, {"dtype": "float64"}],
    ids=str,
)
@pytest.mark.parametrize("cls", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
@pytest.mark.parametrize("model, labels, in_float64", MODELS, ids=str)
def test_equal_to_the_rules(model, labels, in_float64, cls, options):
    if "dtype" in options:  # the gradient of the mean of the losses is right in float32 only
        with pytest.raises(GradientError, match="right in float32 only"):
            trained(cls, model, labels, "ort", **options)
        options = {**options, "weighted": True}
        if not in_float64:
            with pytest.raises(GradientError, match="Relu .* right in float32 only"):
                trained(cls, model, labels, "ort", **options)
            return
    found, expected = (trained(cls, model, labels, gradient, **options) for gradient in ("ort", "rules"))
    tolerance = 1e-9 if "dtype" in options else 1e-4
    for name, value in expected.trained_coef_.items():
        np.testing.assert_allclose(found.trained_coef_[name], value, rtol=tolerance, atol=tolerance)
