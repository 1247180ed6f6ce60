"""The score of a wrapper is that of the wrapped estimator, also during the training."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import BisectingKMeans, KMeans
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA, LatentDirichletAllocation
from sklearn.ensemble import StackingClassifier, StackingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import (
    GammaRegressor,
    LogisticRegression,
    LogisticRegressionCV,
    PoissonRegressor,
    RANSACRegressor,
    Ridge,
    TweedieRegressor,
)
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn import OrtGradientOptimizer
from ortlearn.quiet import quiet

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4)).astype(np.float32)
COUNTS = RNG.poisson(np.exp(X[:, 0])).astype(np.float64) + 1
CLASSES = (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)
WEIGHTS = np.linspace(0.2, 3, len(X))
SMALL = {"learning_rate": 1e-4, "max_iter": 2, "warm_start": True, "random_state": 0}
D2 = [PoissonRegressor(), GammaRegressor(), TweedieRegressor(power=1.5), TweedieRegressor(power=3)]


class Doubled(Ridge):
    """A regressor with a score of its own."""

    def score(self, X, y, sample_weight=None):
        return 2 * super().score(X, y, sample_weight)


@pytest.mark.parametrize(
    "model",
    [
        *D2,
        TweedieRegressor(power=0),
        make_pipeline(StandardScaler(), PoissonRegressor()),
        FrozenEstimator(PoissonRegressor().fit(X, COUNTS)),
        MultiOutputRegressor(PoissonRegressor()),  # R2
        TransformedTargetRegressor(PoissonRegressor(), func=np.sqrt, inverse_func=np.square),  # R2
        Doubled(),
    ],
    ids=str,
)
@pytest.mark.parametrize("sample_weight", [None, WEIGHTS], ids=["plain", "weighted"])
def test_scores_of_regressors(model, sample_weight, optimizer):
    y = np.stack([COUNTS, COUNTS + 1], axis=1) if isinstance(model, MultiOutputRegressor) else COUNTS
    trained = optimizer(clone(model).fit(X, y), **SMALL).fit(X, y)
    expected = trained.to_sklearn().score(X, y, sample_weight)
    assert trained.score(X, y, sample_weight) == pytest.approx(expected, abs=1e-5)


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    "model, y",
    [
        (PCA(2), "outputs"),
        (make_pipeline(StandardScaler(), PCA(2)), "outputs"),
        (LatentDirichletAllocation(2, random_state=0, max_iter=3), "outputs"),
        (BisectingKMeans(4, random_state=0), None),
        (KMeans(4, random_state=0, n_init=1), None),
        (GaussianMixture(2, random_state=0), None),
        (GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, scoring="neg_log_loss", cv=2), CLASSES),
        (GridSearchCV(PoissonRegressor(), {"alpha": [0.1, 1.0]}, cv=2), COUNTS),
        (RANSACRegressor(PoissonRegressor(), min_samples=50, random_state=0), COUNTS),
    ],
    ids=lambda value: type(value).__name__,
)
def test_scores_of_others(model, y, optimizer):
    samples = np.abs(X)
    model.fit(samples, None if isinstance(y, str) else y)
    y = model.transform(samples) if isinstance(y, str) else y
    trained = optimizer(model, warm_start=True, max_iter=3, random_state=0).fit(samples, y)
    assert trained.score(samples, y) == pytest.approx(trained.to_sklearn().score(samples, y), rel=1e-4)


def test_scores_of_cross_validated_classifiers():
    options = {"Cs": [0.1, 1.0], "cv": 2, "scoring": "neg_log_loss"}
    with quiet(FutureWarning):  # of defaults that scikit-learn is about to change
        model = LogisticRegressionCV(**options).fit(X, CLASSES)
    trained = OrtGradientOptimizer(model, warm_start=True, random_state=0).fit(X, CLASSES)
    for weights in ({}, {"sample_weight": WEIGHTS}):
        expected = trained.to_sklearn().score(X, CLASSES, **weights)
        assert trained.score(X, CLASSES, **weights) == pytest.approx(expected, abs=1e-5)
        assert expected < 0


@pytest.mark.parametrize("model", [PoissonRegressor(), make_pipeline(StandardScaler(), PoissonRegressor())])
def test_scores_of_validation_samples(model, optimizer):
    trained = optimizer(model, learning_rate=0.01, max_iter=4, validation_every=1, random_state=0)
    trained.fit(X[:80], COUNTS[:80], X_val=X[80:], y_val=COUNTS[80:], sample_weight_val=WEIGHTS[80:])
    assert len(set(trained.validation_scores_)) == 4
    expected = trained.to_sklearn().score(X[80:], COUNTS[80:], sample_weight=WEIGHTS[80:])
    assert trained.validation_scores_[-1] == pytest.approx(expected, abs=1e-5)


def test_early_stopping_by_d2():
    stopping = {
        "early_stopping": True,
        "scoring": None,
        "validation_every": 1,
        "n_iter_no_change": 3,
        "tol": 0.01,
    }
    trained = OrtGradientOptimizer(
        PoissonRegressor(), learning_rate=0.01, max_iter=30, random_state=0, **stopping
    )
    trained.fit(X[:80], COUNTS[:80], X_val=X[80:], y_val=COUNTS[80:])
    assert trained.score(X[80:], COUNTS[80:]) == pytest.approx(max(trained.validation_scores_), abs=1e-6)


def test_search_by_d2():
    trainer = OrtGradientOptimizer(PoissonRegressor(), learning_rate="LBFGS", learning_penalty="auto")
    found, expected = (cross_val_score(model, X, COUNTS, cv=3) for model in (trainer, PoissonRegressor()))
    np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.slow
def test_weights_that_a_score_does_not_take():
    samples = np.abs(X)
    model = LatentDirichletAllocation(2, random_state=0, max_iter=3).fit(samples)
    Y = model.transform(samples)
    options = {"warm_start": True, "validation_every": 1, "max_iter": 2, "learning_rate": 1e-6}
    trained = OrtGradientOptimizer(model, keep_better=False, random_state=0, **options)
    trained.fit(samples, Y, WEIGHTS, X_val=samples, y_val=Y, sample_weight_val=WEIGHTS)
    assert len(trained.validation_losses_) == 2 and not trained.validation_scores_
    with pytest.raises(ValueError, match="score of LatentDirichletAllocation takes no sample_weight"):
        trained.score(samples, Y, sample_weight=WEIGHTS)


@pytest.mark.parametrize("model", [PCA(2), make_pipeline(StandardScaler(), PCA(2))], ids=["pca", "pipeline"])
def test_weights_of_a_mean_log_likelihood(model):
    model.fit(X)
    trained = OrtGradientOptimizer(model, **SMALL).fit(X, model.transform(X))
    expected = np.average(trained.to_sklearn().score_samples(X), weights=WEIGHTS)
    assert trained.score(X, sample_weight=WEIGHTS) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("kind", [StackingRegressor, StackingClassifier])
def test_methods_of_a_stacking_with_the_default_last_estimator(kind, optimizer):
    members = [("a", Ridge() if kind is StackingRegressor else LogisticRegression())]
    y = COUNTS if kind is StackingRegressor else CLASSES
    trained = optimizer(kind(members), random_state=0).fit(X, y)  # unfitted, it has no predict
    written = trained.to_sklearn()
    np.testing.assert_allclose(trained.predict(X), written.predict(X), rtol=1e-4)
    assert hasattr(trained, "predict_proba") == (kind is StackingClassifier)
