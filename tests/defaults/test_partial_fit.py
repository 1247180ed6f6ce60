"""Penalties of models in partial_fit are relative to all samples, not to a batch."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_wine
from sklearn.linear_model import GammaRegressor, LinearRegression, LogisticRegression, PoissonRegressor, Ridge

from ortlearn import OrtGradientOptimizer

X, Y = load_diabetes(return_X_y=True)


def stream(model, X, y, passes, **options):
    """Return an estimator trained by partial_fit on chunks of 50 samples, in several passes."""
    trainer = OrtGradientOptimizer(model, random_state=0)
    for _ in range(passes):
        for start in range(0, len(X), 50):
            trainer.partial_fit(X[start : start + 50], y[start : start + 50], **options)
    return trainer


@pytest.mark.slow
def test_known_total_weight_gives_the_model_of_all_samples():
    expected = Ridge(alpha=3.0).fit(X, Y)
    found = stream(Ridge(alpha=3.0), X, Y, 40, total_weight=len(X))
    assert found.penalty_.l2 == pytest.approx(3.0 / (2 * len(X)))
    assert np.abs(found.predict(X) - expected.predict(X)).mean() < 0.1 * Y.std()


def test_penalty_is_relative_to_the_samples_so_far():
    trainer = OrtGradientOptimizer(Ridge(alpha=3.0), random_state=0).partial_fit(X[:50], Y[:50])
    assert trainer.penalty_.l2 == pytest.approx(3.0 / 100)
    trainer.partial_fit(X[50:100], Y[50:100])
    assert trainer.penalty_.l2 == pytest.approx(3.0 / 200)


@pytest.mark.slow
def test_unscaled_features():
    wine, classes = load_wine(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(wine))
    found = stream(LogisticRegression(), wine[order], classes[order], 10, classes=[0, 1, 2])
    assert found.score(wine, classes) > 0.95


@pytest.mark.parametrize("total_weight", [0, -1.0, float("inf"), float("nan")])
def test_invalid_total_weight(total_weight):
    with pytest.raises(ValueError, match="total_weight"):
        OrtGradientOptimizer(Ridge()).partial_fit(X, Y, total_weight=total_weight)


@pytest.mark.slow
def test_mean_of_labels_is_learned():
    rng = np.random.default_rng(0)
    features = rng.uniform(size=(300, 4))
    labels = features @ [1.0, 2.0, -1.0, 0.5] + 100
    assert stream(Ridge(0.01), features, labels, 20, total_weight=300).score(features, labels) > 0.9


@pytest.mark.parametrize("scale", [1.0, 1e5])
@pytest.mark.parametrize("model", [PoissonRegressor(alpha=1e-3), GammaRegressor(alpha=1e-3)])
def test_logarithms_start_at_the_mean_of_the_labels(model, scale):
    features = np.random.default_rng(0).normal(size=(500, 3))
    labels = scale * np.exp(3.0 + features @ [0.3, -0.2, 0.1])
    assert stream(model, features, labels, 2).score(features, labels) > 0.9


@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie"])
@pytest.mark.parametrize("method", ["fit", "fit_stream"])
def test_logarithms_of_large_labels_are_learned(method, loss):
    features = np.random.default_rng(0).normal(size=(300, 3))
    labels = 1e8 * np.exp(3.0 + features @ [0.3, -0.2, 0.1])
    trainer = OrtGradientOptimizer(LinearRegression(), learning_loss=loss, random_state=0)
    assert getattr(trainer, method)(features, labels).score(features, labels) > 0.9
