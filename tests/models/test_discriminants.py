"""Discriminant analysis and nearest centroids: graph, training and write-back."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import ConversionError
from ortlearn.graphs import TensorType
from ortlearn.models import write_model
from ortlearn.testing import check_model
from ortlearn.trainable.conversion import to_trainable

RNG = np.random.RandomState(0)
X = RNG.normal(size=(90, 4)) + 0.3
THREE = np.digitize(X[:, 0] - X[:, 1] ** 2, [-1.5, 0.0])
TEXT = np.array(["low", "mid", "top"])[THREE]


@pytest.mark.parametrize("y", [THREE > 0, THREE, TEXT], ids=["two", "three", "text"])
@pytest.mark.parametrize(
    "model",
    [
        LinearDiscriminantAnalysis(),
        LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.2),
        LinearDiscriminantAnalysis(solver="eigen"),
        QuadraticDiscriminantAnalysis(),
        QuadraticDiscriminantAnalysis(reg_param=0.1, priors=None),
    ],
    ids=str,
)
def test_definitions(model, y, run):
    check_model(model.fit(X, y), X, run=run)


@pytest.mark.parametrize("n_components", [None, 1])
@pytest.mark.parametrize("solver", ["svd", "eigen"])
def test_linear_discriminants_as_a_transformer(solver, n_components, run):
    steps = LinearDiscriminantAnalysis(solver=solver, n_components=n_components), LogisticRegression()
    model = make_pipeline(*steps).fit(X, THREE)
    check_model(model, X, run=run)
    written = write_model(model, {"X": TensorType(11, (None, 4))}, np.float64)
    shift = ["xbar_"] if solver == "svd" else []
    found = [p.expression for p in written.parameters.values() if p.step == "lineardiscriminantanalysis"]
    assert found == [*shift, "scalings_"]


def test_a_solver_without_transform_is_refused():
    model = make_pipeline(LinearDiscriminantAnalysis(solver="lsqr"), LogisticRegression())
    model.steps = [(name, step.fit(X, THREE)) for name, step in model.steps]
    with pytest.raises(ConversionError, match="does not transform"):
        write_model(model, {"X": TensorType(1, (None, 4))})


def test_a_classifier_has_no_weights_of_transform():
    trainable = to_trainable(LinearDiscriminantAnalysis().fit(X, THREE))
    assert trainable.declared
    assert set(trainable.origins().values()) == {"coef_", "intercept_"}
    assert not {"xbar", "scalings"} & set(trainable.original_names.values())


def test_names_and_constraints():
    written = write_model(QuadraticDiscriminantAnalysis().fit(X, THREE), {"X": TensorType(1, (None, 4))})
    found = {p.expression: p.constraint and p.constraint.text for p in written.parameters.values()}
    assert found == {
        **{f"means_[{i}]": None for i in range(3)},
        **{f"rotations_[{i}]": None for i in range(3)},
        **{f"scalings_[{i}]": "kept positive" for i in range(3)},
        "priors_": "kept on the simplex",
    }


def written(model):
    return write_model(model, {"X": TensorType(11, (None, 4))}, np.float64)


SIZES = np.array([1.0, 5.0, 0.2, 30.0])


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
@pytest.mark.parametrize("priors", ["uniform", "empirical", "given"])
@pytest.mark.parametrize("shrink_threshold", [None, 0.3])
@pytest.mark.parametrize("y", [THREE > 0, THREE, TEXT], ids=["two", "three", "text"])
def test_nearest_centroids(y, shrink_threshold, priors, metric, run):
    """Features differ in scale, so that scaled distances predict other classes than plain ones."""
    shares = {"given": np.array([0.7, 0.2, 0.1])[: len(set(y))]}.get(priors, priors)
    shares = shares if isinstance(shares, str) else list(shares / shares.sum())
    model = NearestCentroid(metric=metric, shrink_threshold=shrink_threshold, priors=shares).fit(X * SIZES, y)
    check_model(model, X * SIZES, run=run)
    found = {p.attribute for p in written(model).parameters.values() if not p.reason}
    deviations = {"within_class_std_dev_"} if metric == "euclidean" or priors != "uniform" else set()
    assert found == {"centroids_", *deviations, *({"class_prior_"} if priors != "uniform" else ())}


def test_centroids_of_a_feature_that_is_constant_in_each_class(run):
    samples = np.column_stack([X, THREE])
    with pytest.warns(UserWarning, match="zero standard deviation"):
        model = NearestCentroid(priors="empirical").fit(samples, THREE)
    assert model.within_class_std_dev_[-1] == 0
    check_model(model, samples + 0.1, run=run)


def test_centroids_of_sparse_samples(run):
    check_model(NearestCentroid(priors="empirical").fit(csr_array(X), THREE), X, run=run)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_methods_of_centroids(metric):
    model = NearestCentroid(metric=metric).fit(X, THREE)
    ours = OrtGradientOptimizer(model, warm_start=True, max_iter=5, random_state=0).fit(X, THREE)
    for method in ("decision_function", "predict_proba"):
        assert hasattr(ours, method) == hasattr(model, method) == (metric == "euclidean")
    assert ours.score(X, THREE) >= model.score(X, THREE)
    assert ours.predict(X).tolist() == ours.to_sklearn().predict(X).tolist()


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_equal_distances_go_to_the_first_class(metric, run_onnx):
    model = NearestCentroid(metric=metric).fit([[0.0], [0.2], [2.0], [1.8]], ["b", "b", "a", "a"])
    graph = write_model(model, {"X": TensorType(11, (None, 1))}, np.float64).model
    between = model.centroids_.mean(axis=0, keepdims=True)
    assert run_onnx(graph, between)[0].tolist() == model.predict(between).tolist() == ["a"]
