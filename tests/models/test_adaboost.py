"""AdaBoostClassifier: predictions use votes, training uses probabilities."""

import numpy as np
import pytest
from sklearn.ensemble import AdaBoostClassifier
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from ortlearn import OrtGradientOptimizer
from ortlearn.graphs import TensorType, extract_model
from ortlearn.models import write_model
from ortlearn.testing import check_model
from ortlearn.trainable.explanation import explain

RNG = np.random.RandomState(0)
X = RNG.normal(size=(120, 4))
SCORE = X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=120)
TWO, THREE = (SCORE > 0).astype(int), np.digitize(SCORE, [-0.4, 0.4])
TEXT = np.array(["low", "mid", "top"])[THREE]
LEAVES = DecisionTreeClassifier(max_depth=2, min_samples_leaf=12)
MANY_LEAVES = DecisionTreeClassifier(splitter="random", max_features=1, max_leaf_nodes=34)


@pytest.mark.parametrize("y", [TWO, THREE, TEXT], ids=["two", "three", "text"])
@pytest.mark.parametrize(
    "member", [LEAVES, MANY_LEAVES, LogisticRegression(), GaussianNB()], ids=lambda m: type(m).__name__
)
def test_members(member, y, run):
    check_model(AdaBoostClassifier(member, n_estimators=5, random_state=0).fit(X, y), X, run=run)


@pytest.mark.parametrize("member", [None, Perceptron()], ids=["stumps", "without probabilities"])
def test_votes_in_float32(member):
    for y in (TWO, TEXT):
        model = AdaBoostClassifier(member, n_estimators=30, random_state=0).fit(X, y)
        still = OrtGradientOptimizer(model, warm_start=True, max_iter=1, learning_rate=1e-30).fit(X, y)
        np.testing.assert_array_equal(still.predict(3 * X), model.predict(3 * X))
        np.testing.assert_allclose(still.predict_proba(3 * X), model.predict_proba(3 * X), atol=1e-5)
        np.testing.assert_allclose(still.decision_function(3 * X), model.decision_function(3 * X), atol=1e-5)


@pytest.mark.parametrize("y", [THREE, THREE + 5.0, TEXT], ids=["numbers", "floats", "text"])
def test_labels_follow_the_votes_of_pairs(run, y):
    """A class with the largest sum of scores is not predicted without the most votes."""
    model = AdaBoostClassifier(SVC(C=100), n_estimators=3, random_state=0).fit(X, y)
    for member in model.estimators_:
        member.intercept_[:] += [0.0, 0.0, 8.0]
        member._intercept_ = member.intercept_
    largest = model.classes_[np.argmax(_sums_of_pairs(model.estimators_[0]), axis=1)]
    assert np.mean(largest != model.estimators_[0].predict(X)) > 0.1
    check_model(model, X, run=run)


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_trained_score(run, y):
    """The score is the decision of SAMME with (k p - 1) / (k - 1) for the vote of a member."""
    model = AdaBoostClassifier(LEAVES, n_estimators=5, random_state=0).fit(X, y)
    written = write_model(model, {"X": TensorType(11, (None, 4))}, np.float64)
    (score,) = run(extract_model(written.model, [written.scores.score]), {"X": X})
    k = len(model.classes_)
    votes = [(k * member.predict_proba(X) - 1) / (k - 1) for member in model.estimators_]
    mean = np.average(votes, axis=0, weights=model.estimator_weights_)
    np.testing.assert_allclose(score, mean[:, 1:] - mean[:, :1] if k == 2 else mean / (k - 1), atol=1e-12)


def _sums_of_pairs(member):
    """Return the sum of the scores of each class over its pairs."""
    pairs = member.set_params(decision_function_shape="ovo").decision_function(X)
    member.set_params(decision_function_shape="ovr")
    return pairs @ np.array([[1, -1, 0], [1, 0, -1], [0, 1, -1]])


def test_boosting_that_stops_early(run):
    y = (X[:, 0] > 0).astype(int)
    model = AdaBoostClassifier(n_estimators=5).fit(X, y)
    assert len(model.estimators_) == 1 < len(model.estimator_weights_)
    check_model(AdaBoostClassifier(LEAVES, n_estimators=5).fit(X, TWO), X, run=run)
    still = OrtGradientOptimizer(model, warm_start=True, max_iter=1, learning_rate=1e-30).fit(X, y)
    np.testing.assert_array_equal(still.predict(X), model.predict(X))


def test_trained_weights_stay_positive_and_are_written_back():
    model = AdaBoostClassifier(LEAVES, n_estimators=5, random_state=0).fit(X, THREE)
    reasons = {row.attribute: row.reason for row in explain(model).rows if row.trainable}
    assert reasons["estimator_weights_"] == "kept positive"
    trained = OrtGradientOptimizer(
        model, warm_start=True, learning_rate=0.1, max_iter=10, random_state=0
    ).fit(X, THREE)
    assert trained.train_losses_[-1] < trained.train_losses_[0]
    back = trained.to_sklearn()
    assert (back.estimator_weights_ > 0).all()
    assert np.abs(back.estimator_weights_ - model.estimator_weights_).max() > 1e-3
    np.testing.assert_allclose(back.predict_proba(X), trained.predict_proba(X), atol=1e-5)
