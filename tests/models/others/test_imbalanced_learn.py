"""Pipelines and ensembles of imbalanced-learn, whose samplers act in a fit only."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.ensemble import AdaBoostClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import ConversionError
from ortlearn.testing import check_model

pytest.importorskip("imblearn")
from imblearn.ensemble import (  # noqa: E402
    BalancedBaggingClassifier,
    BalancedRandomForestClassifier,
    EasyEnsembleClassifier,
    RUSBoostClassifier,
)
from imblearn.over_sampling import SMOTE  # noqa: E402
from imblearn.pipeline import make_pipeline  # noqa: E402
from imblearn.under_sampling import RandomUnderSampler  # noqa: E402

STUMP = DecisionTreeClassifier(max_depth=2, random_state=0)


def pipeline():
    """Return a pipeline with samplers between its steps."""
    samplers = SMOTE(random_state=0), RandomUnderSampler(random_state=0)
    return make_pipeline(StandardScaler(), samplers[0], PCA(3), samplers[1], LogisticRegression())


def test_pipeline(samples, run, retrain):
    X, y = samples.X, samples.y > 6
    fitted = pipeline().fit(X, y)
    check_model(fitted, X, run=run)
    trained = retrain(fitted, X, y, learning_rate="SGD")
    assert trained.weights_to_train_["coef"] == "logisticregression: coef_"
    assert list(trained.to_sklearn().named_steps) == list(fitted.named_steps)


def test_training_does_not_resample(samples):
    X, y = samples.X, samples.y > 6
    weights = np.where(y, 3.0, 1.0)
    model = OrtGradientOptimizer(pipeline(), learning_rate="LBFGS", learning_penalty="auto", random_state=0)
    shares = [model.fit(X, y, **params).predict_proba(X)[:, 1] for params in ({}, {"sample_weight": weights})]
    # at the minimum of the log loss, mean probabilities are the shares of the labels
    np.testing.assert_allclose(shares[0].mean(), y.mean(), atol=1e-3)
    np.testing.assert_allclose(
        np.average(shares[1], weights=weights), np.average(y, weights=weights), atol=1e-3
    )


@pytest.mark.parametrize("labels", ["two", "three"])
@pytest.mark.parametrize(
    "model",
    [
        BalancedRandomForestClassifier(2, max_depth=2, random_state=0),
        BalancedBaggingClassifier(STUMP, n_estimators=2, random_state=0),
        BalancedBaggingClassifier(LogisticRegression(), n_estimators=2, max_features=0.5, random_state=0),
        EasyEnsembleClassifier(2, estimator=AdaBoostClassifier(STUMP, n_estimators=2), random_state=0),
        RUSBoostClassifier(STUMP, n_estimators=2, random_state=0),
    ],
    ids=["forest", "bagging", "linear", "easy", "boosting"],
)
def test_ensembles(model, labels, samples, run):
    check_model(model.fit(samples.X, getattr(samples, labels)), samples.X[:20], run=run)


def test_a_pipeline_that_ends_with_a_sampler_is_refused(samples):
    with pytest.raises(ConversionError, match="which is not a model"):
        OrtGradientOptimizer(make_pipeline(StandardScaler(), RandomUnderSampler())).fit(
            samples.X, samples.two
        )


def test_search(samples):
    trainer = OrtGradientOptimizer(pipeline(), random_state=0, max_iter=10)
    grid = {"estimator__pca__n_components": [1, 4], "estimator__smote__k_neighbors": [2, 3]}
    search = GridSearchCV(trainer, grid, cv=2).fit(samples.X, samples.two)
    assert search.best_params_["estimator__pca__n_components"] == 4
