"""All definitions: scores equal those of scikit-learn, and unchanged parameters are written back."""

from itertools import combinations

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.cross_decomposition import PLSRegression
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    PairwiseKernel,
    RationalQuadratic,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import HalvingGridSearchCV, HalvingRandomSearchCV
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline

from benchmarks.model_zoo.cases import catalogue
from benchmarks.model_zoo.measurement import Measurement
from ortlearn import plugins
from ortlearn.graphs import TensorType, extract_model
from ortlearn.models import all_covered, write_model, write_parameters
from ortlearn.runtime.devices import Device
from ortlearn.runtime.sessions import make_session

CASES = catalogue()
NAMES = sorted(
    info.name.rpartition(".")[2]
    for info in plugins.list_plugins(plugins.MODELS)
    if info.distribution == "ortlearn" and info.name.startswith("sklearn.")  # tests/models/others has more
)
RNG = np.random.RandomState(0)
SAMPLES = RNG.normal(size=(60, 3)).astype(np.float32).astype(np.float64)
VALUES = SAMPLES @ [1.0, -2.0, 0.5] + 0.1 * RNG.normal(size=60)
#: Estimators that are not in the catalogue, with samples.
OWN = {
    "HalvingGridSearchCV": (
        lambda: HalvingGridSearchCV(Ridge(), {"alpha": [1, 9]}, cv=2, random_state=0),
        SAMPLES,
    ),
    "HalvingRandomSearchCV": (
        lambda: HalvingRandomSearchCV(Ridge(), {"alpha": [1, 9]}, cv=2, random_state=0),
        SAMPLES,
    ),
}
#: Estimators that are only members of others.
PARTS = {"_ConstantPredictor"}
#: Definitions whose score no method returns, of documents or images, or of members.
ELSEWHERE = PARTS | {
    "AdaBoostClassifier",
    "CountVectorizer",
    "FeatureHasher",
    "HashingVectorizer",
    "NearestNeighbors",
    "PatchExtractor",
    "TfidfVectorizer",
}
#: The data to use if the first case has two classes, and one column of scores.
DATA = {"OneVsOneClassifier": "classes"}


def fitted(name):
    """Return a fitted estimator of a class, and numeric samples."""
    if name in OWN:
        make, X = OWN[name]
        return make().fit(X, VALUES), X
    for case in CASES.values():
        if case.estimator == name and case.name.endswith(DATA.get(name, "")):
            found = Measurement(case)
            found.fits()
            X = np.asarray(found.samples.X)
            if X.dtype.kind in "fi" and all_covered(found.model):
                return found.model, X.astype(np.float32).astype(np.float64)
    raise AssertionError(f"the catalogue has no case of {name} with rows of numbers and a definition")


def write(model, X):
    return write_model(model, {"X": TensorType(11, (None, X.shape[1]))}, np.float64)


def run(written, tensors, X):
    graph = extract_model(written.model, tensors)
    return make_session(graph, Device("cpu")).run(None, {"X": X})


def outputs(scores):
    """Return the output tensor of each method."""
    found = {"transform": scores.transformed, "predict_proba": scores.probabilities}
    found |= {"predict": scores.prediction, "decision_function": scores.decision}
    return {method: tensor for method, tensor in found.items() if tensor and isinstance(tensor, str)}


def predicted(scores, score):
    """Return probabilities or predictions from raw scores."""
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
    """Return scores or predictions of scikit-learn, and the same from the scores of the graph."""
    name = type(model).__name__
    if scores.task == "transformation":
        values = model.transform(X)
        return values.toarray() if hasattr(values, "toarray") else values, found
    if scores.task == "regression":
        return model.predict(X), predicted(scores, found)
    if scores.task == "unsupervised" and hasattr(model, "score_samples"):
        return -model.score_samples(X), found
    if scores.task == "unsupervised" and hasattr(model, "inverse_transform"):
        missed = X - model.inverse_transform(model.transform(X))
        return 0.5 * np.square(missed).sum(axis=1), found
    if name == "Birch":  # its labels are those of clusters of subclusters
        return model.transform(X).min(axis=1) ** 2, found
    if scores.task == "unsupervised":
        return np.square(X - model.cluster_centers_[model.predict(X)]).sum(axis=1), found
    if scores.task == "multilabel" and hasattr(model, "predict_proba"):
        shares = model.predict_proba(X)
        columns = [output[:, 1] for output in shares] if isinstance(shares, list) else shares.T
        return np.column_stack(columns), expit(found)
    if name == "OneVsOneClassifier":
        return sums_of_pairs(model, X), found
    if name == "OutputCodeClassifier":
        return closeness_of_words(model, X), found
    if name == "VotingClassifier":  # hard votes have no gradient
        return np.mean([member.predict_proba(X) for member in model.estimators_], axis=0), softmax(
            found, axis=1
        )
    if hasattr(model, "predict_proba"):
        right = model.predict_proba(X)
        inside = right.min(axis=1) > 0.03  # other probabilities may be clipped
        samples = inside if inside.any() else slice(None)
        return right[samples], predicted(scores, found)[samples]
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


def closeness_of_words(model, X):
    """Return minus the squared distances to the code words, without the term that all have in common."""
    decisions = np.column_stack([member.decision_function(X) for member in model.estimators_])
    distances = np.square(decisions[:, None] - model.code_book_).sum(axis=2)
    return np.square(decisions).sum(axis=1, keepdims=True) - distances


def assert_write_back_keeps_parameters(model, written, X):
    """Check that writing back unchanged parameters does not change a model."""
    values = {key: parameter.value(model) for key, parameter in written.parameters.items()}
    copy = write_parameters(model, written.parameters, values)
    again = write(copy, X)
    for key, value in values.items():
        found = again.parameters[key].value(copy)
        np.testing.assert_allclose(found, value, rtol=1e-9, atol=1e-12, err_msg=key)


@pytest.mark.sweep(41)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ELSEWHERE])
def test_scores_and_outputs(name):
    model, X = fitted(name)
    written = write(model, X)
    tensors = outputs(written.scores)
    score, *others = run(written, [written.scores.score, *tensors.values()], X)
    right, found = expected(model, X, written.scores, score)
    # the error function of a Gaussian process is an approximation in scikit-learn too
    near = {"rtol": 1e-6, "atol": 2e-5}
    assert np.size(right) > 0
    np.testing.assert_allclose(np.reshape(found, np.shape(right)), right, **near)
    for method, found in zip(tensors, others, strict=True):
        if hasattr(model, method):
            right = getattr(model, method)(X)
            right = right.toarray() if hasattr(right, "toarray") else np.asarray(right)
            np.testing.assert_allclose(found.reshape(right.shape), right, **near, err_msg=method)
    assert_write_back_keeps_parameters(model, written, X)


@pytest.mark.parametrize(
    "model",
    [
        *(
            GaussianProcessRegressor(kernel, alpha=30.0, optimizer=None)
            for kernel in (
                RationalQuadratic(1.5, 0.7),
                ExpSineSquared(1.5, 2.5),
                DotProduct(0.7) + ConstantKernel(0.6),
                PairwiseKernel(0.3, metric="rbf"),
            )
        ),
        make_pipeline(LinearDiscriminantAnalysis(), LogisticRegression()),
        make_pipeline(LinearDiscriminantAnalysis("eigen"), LogisticRegression()),
        make_pipeline(PLSRegression(2), Ridge()),
        NearestNeighbors(n_neighbors=3),
    ],
    ids=str,
)
def test_write_back_of_parameters_that_the_catalogue_lacks(model):
    y = np.digitize(VALUES, [-1, 1]) if "Discriminant" in str(model) else VALUES
    X = SAMPLES
    for step in model[:-1] if hasattr(model, "steps") else ():
        X = step.fit(X, y).transform(X)  # PLSRegression.fit_transform transforms y too
    (model[-1] if hasattr(model, "steps") else model).fit(X, y)
    assert_write_back_keeps_parameters(model, write(model, SAMPLES), SAMPLES)


def test_every_definition_has_a_case():
    known = {case.estimator for case in CASES.values()}
    assert ELSEWHERE < set(NAMES) <= known | set(OWN) | ELSEWHERE
