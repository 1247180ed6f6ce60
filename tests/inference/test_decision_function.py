"""decision_function equals scikit-learn's, or does not exist."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import ClassifierChain
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC, NuSVC

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer

SAMPLES, THREE = load_iris(return_X_y=True)
X = StandardScaler().fit_transform(SAMPLES[::2]).astype(np.float32).astype(np.float64)
THREE = THREE[::2]
TWO = (X[:, 1] + 0.3 * THREE > 0.2).astype(int)
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")  # SVC(probability=True) is deprecated


def logistic():
    return LogisticRegression(max_iter=500)


def boosting():
    return AdaBoostClassifier(n_estimators=3, random_state=0)


def stacked(final):
    return StackingClassifier([("a", logistic()), ("b", GaussianNB())], final_estimator=final, cv=2)


SAME = {
    "calibrated support vectors": SVC(probability=True, random_state=0),
    "one per pair": SVC(probability=True, random_state=0, decision_function_shape="ovo"),
    "nu": make_pipeline(StandardScaler(), NuSVC(nu=0.2, probability=True, random_state=0)),
    "ties": SVC(probability=True, random_state=0, break_ties=True),
    "support vectors": SVC(),
    "pairs": OneVsOneClassifier(logistic()),
    "pairs of probabilities": OneVsOneClassifier(GaussianNB()),
    "pairs of support vectors": OneVsOneClassifier(SVC()),
    "against the rest": OneVsRestClassifier(LinearSVC()),
    "calibrated, against the rest": OneVsRestClassifier(SVC(probability=True, random_state=0)),
    "boosting": boosting(),
    "boosted logistic": AdaBoostClassifier(logistic(), n_estimators=2, random_state=0),
    "search": GridSearchCV(boosting(), {"n_estimators": [3]}, cv=2),
    "bagging": BaggingClassifier(logistic(), n_estimators=3, random_state=0),
    "bagged columns": BaggingClassifier(logistic(), n_estimators=3, max_features=0.5, random_state=0),
    "bagged pipelines": BaggingClassifier(make_pipeline(StandardScaler(), logistic()), n_estimators=2),
    "stacked": stacked(RidgeClassifier()),
    "stacked boosting": stacked(boosting()),
    "stacked support vectors": stacked(SVC(probability=True, random_state=0)),
    "gradient boosting": GradientBoostingClassifier(n_estimators=3, random_state=0),
    "histograms": HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=5),
    "boosting, against the rest": OneVsRestClassifier(boosting()),
    "bagged boosting": BaggingClassifier(boosting(), n_estimators=2, random_state=0),
    "bagged decisions": BaggingClassifier(RidgeClassifier(), n_estimators=2, random_state=0),
    "discriminant": LinearDiscriminantAnalysis(),
    "sigmoids": SGDClassifier(loss="log_loss", random_state=0),
}
#: Models whose graphs have votes instead of decision values.
WITHOUT = {
    "votes": VotingClassifier([("a", logistic()), ("b", RidgeClassifier())]),
}


def converted(model, y, kind=OrtGradientOptimizer, dtype="float32"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
        options = {"learning_rate": 1e-30, "max_iter": 1, "random_state": 0, "dtype": dtype}
        return kind(model, warm_start=True, **options).fit(X, y)


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("name", SAME)
def test_equal_to_scikit_learn(name, y):
    model, number = SAME[name], list(SAME).index(name)
    kind = (OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer)[number % 2]
    ours = converted(model, y, kind)
    expected = model.decision_function(X)
    np.testing.assert_allclose(ours.decision_function(X), expected, rtol=1e-3, atol=2e-4)
    np.testing.assert_array_equal(ours.predict(X), model.predict(X))


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("name", ["calibrated support vectors", "boosting", "bagging", "pairs"])
def test_float64(name, y):
    ours = converted(SAME[name], y, dtype="float64")
    np.testing.assert_allclose(ours.decision_function(X), SAME[name].decision_function(X), atol=1e-5)


@pytest.mark.parametrize("name", WITHOUT)
def test_models_with_votes_have_no_decision_function(name):
    model = WITHOUT[name]
    ours = converted(model, THREE)
    assert not hasattr(ours, "decision_function")
    assert hasattr(ours, "predict_proba") == hasattr(model, "predict_proba")


def test_raw_scores_without_decision_function():
    ours = converted(RandomForestClassifier(3, max_depth=3, random_state=0), THREE)
    scores = np.log(np.maximum(ours.predict_proba(X), 0.1 / 3))
    np.testing.assert_allclose(ours.decision_function(X), scores, atol=1e-5)


LABELS = np.stack([TWO, THREE > 0], axis=1).astype(int)


@pytest.mark.slow
@pytest.mark.parametrize("wrap", [OneVsRestClassifier, ClassifierChain])
def test_multilabel(wrap):
    for member in (logistic(), LinearSVC(), boosting()):
        ours = converted(wrap(member), LABELS)
        np.testing.assert_allclose(ours.decision_function(X), ours.estimator.decision_function(X), atol=1e-3)
