"""Both estimators train the same weights from the same start and seed."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor

from ortlearn.learning_rates import LearningRateAdam, LearningRateSGD, LearningRateSGDNesterov
from ortlearn.penalties import ElasticPenalty
from tests.pairwise import pairwise

RATES = {
    "SGD": LearningRateSGD(eta0=0.02),
    "SGDNesterov": LearningRateSGDNesterov(eta0=0.005),
    "Momentum": LearningRateSGDNesterov(eta0=0.005, nesterov=False),
    "Adam": LearningRateAdam(eta0=0.005),
}
MLP = {"hidden_layer_sizes": (8,), "max_iter": 5, "random_state": 0}
MODELS = {
    "regression": ("two_outputs", LinearRegression()),
    "mlp_regression": ("diabetes_units", MLPRegressor(**MLP)),
    "binary": ("cancer", LogisticRegression()),
    "binary_mlp": ("cancer", MLPClassifier(**MLP)),
    "multiclass": ("wine", MLPClassifier(**MLP)),
}
OPTIONS = {"plain": {}, "penalty": {"learning_penalty": ElasticPenalty(l1=0.01, l2=0.02)}, "weighted": {}}


@pytest.mark.sweep(10)
@pairwise(rate=RATES, name=MODELS, option=OPTIONS)
def test_same_weights(rate, name, option, both, fit_quietly, request):
    data, model = MODELS[name]
    X, y = request.getfixturevalue(data)
    X, y = X[:155], y[:155]  # the last batch has five samples
    model = fit_quietly(model, X[::3], y[::3])
    sample_weight = np.random.RandomState(3).uniform(0, 2, len(X)) if option == "weighted" else None
    trained = [
        cls(
            model,
            learning_rate=RATES[rate],
            warm_start=True,
            max_iter=5,
            random_state=7,
            **OPTIONS[option],
        ).fit(X, y, sample_weight=sample_weight)
        for cls in both
    ]
    start = both[0](model, learning_rate=1e-30, warm_start=True, max_iter=1).fit(X, y).trained_coef_
    first, second = (t.trained_coef_ for t in trained)
    assert first.keys() == second.keys() == start.keys()
    for key in first:
        np.testing.assert_allclose(first[key], second[key], atol=1e-4, rtol=0)
        assert np.abs(first[key] - start[key]).max() > 1e-4  # trained
    np.testing.assert_allclose(trained[0].train_losses_, trained[1].train_losses_, rtol=1e-4)


def test_same_fresh_weights(both, wine):
    X, y = wine
    first, second = (
        cls(MLPClassifier(hidden_layer_sizes=(8,)), max_iter=3, random_state=1).fit(X, y).trained_coef_
        for cls in both
    )
    for key in first:
        np.testing.assert_allclose(first[key], second[key], atol=1e-4, rtol=0)


@pytest.mark.needs_training
@pytest.mark.parametrize("name", list(MODELS))
def test_same_weights_for_every_gradient(name, optimizer, fit_quietly, request):
    data, model = MODELS[name]
    X, y = request.getfixturevalue(data)
    model = fit_quietly(model, X[::3], y[::3])
    options = {
        "learning_rate": RATES["Adam"],
        "learning_penalty": "elastic",
        "warm_start": True,
        "max_iter": 2,
    }
    ort, rules = (
        optimizer(model, gradient=gradient, random_state=0, **options).fit(X, y).trained_coef_
        for gradient in ("ort", "rules")
    )
    for key in ort:
        np.testing.assert_allclose(ort[key], rules[key], atol=1e-4, rtol=0)
