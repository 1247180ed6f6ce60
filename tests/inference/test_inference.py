"""predict, predict_proba, decision_function, score, losses and onnx_ are consistent."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, log_loss, r2_score
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

STILL = {"learning_rate": 1e-30, "warm_start": True, "max_iter": 1}
CLASSIFIERS = {
    "binary": ("cancer", LogisticRegression()),
    "multinomial": ("wine", LogisticRegression()),
    "binary_mlp": ("cancer", MLPClassifier((4,), max_iter=3, random_state=0)),
    "mlp": ("wine", make_pipeline(StandardScaler(), MLPClassifier((4,), max_iter=3, random_state=0))),
}


@pytest.fixture(params=list(CLASSIFIERS))
def classifier_case(request, fit_quietly):
    """Return a fitted classifier and its data."""
    data, model = CLASSIFIERS[request.param]
    X, y = request.getfixturevalue(data)
    return fit_quietly(model, X, y), X, y


def test_untrained_classifier_equals_scikit_learn(classifier_case, optimizer):
    model, X, y = classifier_case
    ours = optimizer(model, **STILL).fit(X, y)
    np.testing.assert_array_equal(ours.predict(X), model.predict(X))
    np.testing.assert_allclose(ours.predict_proba(X), model.predict_proba(X), atol=1e-5)
    np.testing.assert_allclose(ours.losses(X, y).mean(), log_loss(y, model.predict_proba(X)), rtol=1e-4)
    if hasattr(model, "decision_function"):
        np.testing.assert_allclose(
            ours.decision_function(X), model.decision_function(X), rtol=1e-4, atol=1e-4
        )


def test_trained_classifier_is_consistent(classifier_case, optimizer, run_onnx):
    model, X, y = classifier_case
    ours = optimizer(model, learning_rate=0.05, max_iter=3, random_state=0).fit(X, y)
    p, z = ours.predict_proba(X), ours.decision_function(X)
    assert p.shape == (len(X), len(ours.classes_))
    assert z.shape == ((len(X),) if len(ours.classes_) == 2 else p.shape)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(ours.classes_[p.argmax(axis=1)], ours.predict(X))
    soft = 1 / (1 + np.exp(-z)) if z.ndim == 1 else np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(p[:, 1] if z.ndim == 1 else p, soft, atol=1e-5)
    np.testing.assert_allclose(ours.losses(X, y).mean(), log_loss(y, p), rtol=1e-3)
    assert ours.losses(X, y).shape == (len(X),)
    assert ours.score(X, y) == accuracy_score(y, ours.predict(X))
    weights = np.arange(len(X))
    assert ours.score(X, y, weights) == accuracy_score(y, ours.predict(X), sample_weight=weights)
    outputs = list(run_onnx(ours.onnx_, X).values())
    np.testing.assert_array_equal(outputs[0], ours.predict(X))
    np.testing.assert_allclose(outputs[1], p, atol=1e-6)


@pytest.mark.parametrize(
    "regressor", [Ridge(), MLPRegressor(hidden_layer_sizes=(4,), max_iter=3, random_state=0)]
)
def test_regressor(regressor, optimizer, diabetes_units, fit_quietly, run_onnx):
    X, y = diabetes_units
    model = fit_quietly(regressor, X, y)
    still = optimizer(model, **STILL).fit(X, y)
    np.testing.assert_allclose(still.predict(X), model.predict(X), rtol=1e-4, atol=1e-5)
    ours = optimizer(model, learning_rate=0.01, max_iter=5, random_state=0).fit(X, y)
    predicted = ours.predict(X)
    np.testing.assert_allclose(ours.losses(X, y), (predicted - y) ** 2 / 2, rtol=1e-3, atol=1e-6)
    assert ours.score(X, y) == r2_score(y, predicted)
    (output,) = run_onnx(ours.onnx_, X).values()
    np.testing.assert_allclose(output.ravel(), predicted, rtol=1e-6)


def test_one_sample_and_many(optimizer, cancer):
    X, y = cancer
    model = optimizer(LogisticRegression(), max_iter=2, random_state=0).fit(X, y)
    alone = np.concatenate([model.predict_proba(X[i : i + 1]) for i in range(5)])
    np.testing.assert_allclose(alone, model.predict_proba(X)[:5], atol=1e-6)


def test_batches_larger_than_the_data(optimizer, cancer):
    X, y = cancer[0][:7], cancer[1][:7]
    model = optimizer(LogisticRegression(), max_iter=2, batch_size=100, random_state=0).fit(X, y)
    assert model.n_iter_ == 2 and model.predict(X).shape == (7,)
