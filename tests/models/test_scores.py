"""Every definition: the trained score is what scikit-learn computes, and parameters come back as they are."""

from itertools import combinations

import numpy as np
import pytest
from scipy.special import expit, softmax

from ortlearn import plugins
from ortlearn.graphs import TensorType, extract_model
from ortlearn.models import all_covered, write_model, write_parameters
from ortlearn.training.devices import Device
from ortlearn.training.sessions import make_session
from tests.model_zoo.cases import catalogue
from tests.model_zoo.measurement import Measurement

CASES = catalogue()
NAMES = sorted(
    info.name.rpartition(".")[2]
    for info in plugins.list_plugins(plugins.MODELS)
    if info.distribution == "ortlearn"
)
#: Definitions without a case of their own, or whose score is not what a method returns, and why.
ELSEWHERE = {
    "AdaBoostClassifier": "shares of votes, which scikit-learn does not compute: see test_trees",
    "CountVectorizer": "documents: see test_text",
    "HalvingGridSearchCV": "the definition of GridSearchCV",
    "HalvingRandomSearchCV": "the definition of GridSearchCV",
    "IsotonicRegression": "one column only: see test_trees and test_definitions",
    "NearestNeighbors": "it predicts nothing",
    "TfidfVectorizer": "documents: see test_text",
}
#: Where the first case has two classes, and the score one column.
DATA = {"OneVsOneClassifier": "classes"}


def fitted(name):
    """Return a fitted estimator of a class, and rows of numbers."""
    for case in CASES.values():
        if case.estimator == name and case.name.endswith(DATA.get(name, "")):
            found = Measurement(case)
            found.fits()
            X = np.asarray(found.rows.X)
            if X.dtype.kind in "fi" and all_covered(found.model):
                return found.model, X.astype(np.float32).astype(np.float64)
    raise AssertionError(f"the catalogue has no case of {name} with rows of numbers and a definition")


def write(model, X):
    return write_model(model, {"X": TensorType(11, (None, X.shape[1]))}, np.float64)


def score_of(written, X):
    graph = extract_model(written.model, [written.scores.score])
    return make_session(graph, Device("cpu")).run(None, {"X": X})[0]


def predicted(scores, score):
    """Return what raw scores say of probabilities or predictions."""
    if scores.link == "softmax":
        return softmax(score, axis=1)
    if scores.link == "log":
        return np.exp(score)
    if scores.link == "identity":
        return score
    shares = expit(score)
    return (
        np.hstack([1 - shares, shares]) if score.shape[1] == 1 else shares / shares.sum(axis=1, keepdims=True)
    )


def expected(model, X, scores, found):
    """Return the raw scores, or what follows from them, by scikit-learn; and the same of the graph."""
    name = type(model).__name__
    if scores.task == "transformation":
        values = model.transform(X)
        return values.toarray() if hasattr(values, "toarray") else values, found
    if scores.task == "regression":
        return model.predict(X), predicted(scores, found)
    if scores.task == "unsupervised" and hasattr(model, "score_samples"):
        return -model.score_samples(X), found
    if scores.task == "unsupervised":
        return model.transform(X)[np.arange(len(X)), model.predict(X)] ** 2, found
    if scores.task == "multilabel" and hasattr(model, "predict_proba"):
        shares = model.predict_proba(X)
        columns = [output[:, 1] for output in shares] if isinstance(shares, list) else shares.T
        return np.column_stack(columns), expit(found)
    if name == "OneVsOneClassifier":
        return sums_of_pairs(model, X), found
    if name == "VotingClassifier":  # of votes that have no gradient
        return np.mean([member.predict_proba(X) for member in model.estimators_], axis=0), softmax(
            found, axis=1
        )
    if hasattr(model, "predict_proba"):
        right = model.predict_proba(X)
        inside = right.min(axis=1) > 0.03  # where no probability is raised to the lowest one
        rows = inside if inside.any() else slice(None)
        return right[rows], predicted(scores, found)[rows]
    return model.decision_function(X), found


def sums_of_pairs(model, X):
    """Return the sum of the decisions for each class."""
    total = np.zeros((len(X), len(model.classes_)))
    for (first, second), member in zip(
        combinations(range(total.shape[1]), 2), model.estimators_, strict=True
    ):
        total[:, second] += member.decision_function(X)
        total[:, first] -= member.decision_function(X)
    return total


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ELSEWHERE])
def test_what_is_trained_is_what_scikit_learn_computes(name):
    model, X = fitted(name)
    written = write(model, X)
    found = score_of(written, X)
    right, found = expected(model, X, written.scores, found)
    # the error function of a Gaussian process is an approximation in scikit-learn too
    atol = 2e-4 if name == "GaussianProcessClassifier" else 2e-5
    assert np.size(right) > 0
    np.testing.assert_allclose(np.reshape(found, np.shape(right)), right, rtol=1e-6, atol=atol)
    values = {key: parameter.value() for key, parameter in written.parameters.items()}
    again = write(write_parameters(model, written.parameters, values), X)
    for key, value in values.items():
        np.testing.assert_allclose(again.parameters[key].value(), value, rtol=1e-9, atol=1e-12, err_msg=key)


def test_every_definition_has_a_case_or_a_reason():
    assert set(ELSEWHERE) < set(NAMES)
    assert set(NAMES) <= {case.estimator for case in CASES.values()} | set(ELSEWHERE)
