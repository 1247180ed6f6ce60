"""Nearest neighbours: graph, training and write-back."""

import numpy as np
import pytest
from sklearn import neighbors
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import NoTrainableWeightError
from ortlearn.graphs import TensorType
from ortlearn.models import all_covered, write_model
from ortlearn.runtime.devices import Device
from ortlearn.runtime.sessions import make_session
from ortlearn.testing import check_model
from ortlearn.trainable.conversion import to_trainable

RNG = np.random.RandomState(0)
X = RNG.normal(size=(30, 3))
NEW = RNG.normal(size=(12, 3))
Y = X @ [1.0, -2.0, 0.5]
SEVERAL = np.column_stack([Y, X[:, 0]])
THREE = np.digitize(Y, [-1, 1])
LABELS = np.column_stack([THREE, Y > 0]).astype(int)
METRICS = [
    *[{"metric": m} for m in ("euclidean", "sqeuclidean", "l1", "l2", "cityblock", "chebyshev", "cosine")],
    *[{"p": p} for p in (1, 1.5, 2, 3)],
    {"p": 3, "metric_params": {"w": np.array([1.0, 2.0, 0.5])}},
]


def trained(model):
    """Return the attributes that are trained by default."""
    written = write_model(model, {"X": TensorType(1, (None, X.shape[1]))})
    return sorted(p.attribute for p in written.parameters.values() if not p.reason)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("metric", METRICS, ids=str)
def test_regression(metric, weights):
    algorithm = "brute" if metric.get("metric") in ("cosine", "sqeuclidean", "l1", "l2") else "auto"
    model = neighbors.KNeighborsRegressor(3, weights=weights, algorithm=algorithm, **metric).fit(X, Y)
    check_model(model, NEW)
    assert trained(model) == (["_y"] if weights == "uniform" else ["_fit_X", "_y"])


@pytest.mark.parametrize("algorithm", ["kd_tree", "ball_tree", "brute"])
@pytest.mark.parametrize("name", ["KNeighborsRegressor", "RadiusNeighborsRegressor"])
def test_several_outputs(name, algorithm):
    kind = {"n_neighbors": 4} if name.startswith("K") else {"radius": 3.0}
    model = getattr(neighbors, name)(weights="distance", algorithm=algorithm, **kind).fit(X, SEVERAL)
    check_model(model, NEW)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_samples_within_a_radius(weights):
    model = neighbors.RadiusNeighborsRegressor(3.0, weights=weights).fit(X, Y)
    check_model(model, NEW)
    assert trained(model) == (["_y"] if weights == "uniform" else ["_fit_X", "_y"])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["KNeighborsRegressor", "RadiusNeighborsRegressor"])
def test_training_samples_predict_themselves_with_distance_weights(name, dtype):
    samples = np.concatenate([X, X[:3]])
    y = np.arange(33.0)
    model = getattr(neighbors, name)(weights="distance").fit(samples, y)
    elem_type = 1 if dtype == np.float32 else 11
    graph = write_model(model, {"X": TensorType(elem_type, (None, 3))}, dtype).model
    found = make_session(graph, Device("cpu")).run(None, {"X": samples.astype(dtype)})[0]
    np.testing.assert_allclose(found.ravel(), model.predict(samples), rtol=1e-6)


@pytest.mark.parametrize(
    "y", [THREE, LABELS, Y > 0, np.array(["a", "b", "c"])[THREE]], ids="three labels two text".split()
)
@pytest.mark.parametrize("name", ["KNeighborsClassifier", "RadiusNeighborsClassifier"])
def test_votes_by_distance(name, y):
    kind = {"n_neighbors": 4} if name.startswith("K") else {"radius": 3.0}
    model = getattr(neighbors, name)(weights="distance", **kind).fit(X, y)
    check_model(model, NEW)
    assert trained(model) == ["_fit_X"]


@pytest.mark.parametrize("name", ["KNeighborsClassifier", "RadiusNeighborsClassifier"])
def test_votes_have_no_parameters(name):
    kind = {"n_neighbors": 4} if name.startswith("K") else {"radius": 3.0}
    model = getattr(neighbors, name)(**kind).fit(X, THREE)
    with pytest.raises(NoTrainableWeightError, match="counts votes"):
        to_trainable(model, X=X)
    vote = VotingClassifier([("near", model), ("line", LogisticRegression())], voting="soft").fit(X, THREE)
    check_model(vote, NEW)


def test_distances():
    model = neighbors.NearestNeighbors(n_neighbors=4).fit(X)
    graph = write_model(model, {"X": TensorType(11, (None, 3))}, np.float64).model
    found = make_session(graph, Device("cpu")).run(None, {"X": NEW})[0]
    np.testing.assert_allclose(found, model.kneighbors(NEW)[0], rtol=1e-10)
    assert trained(model) == ["_fit_X"]


@pytest.mark.parametrize("mode", ["distance", "connectivity"])
def test_a_graph_of_neighbours(mode):
    model = neighbors.KNeighborsTransformer(mode=mode, n_neighbors=4).fit(X)
    graph = write_model(model, {"X": TensorType(11, (None, 3))}, np.float64).model
    found = make_session(graph, Device("cpu")).run(None, {"X": NEW})[0]
    np.testing.assert_allclose(found, model.transform(NEW).toarray(), rtol=1e-10)
    assert trained(model) == (["_fit_X"] if mode == "distance" else [])


@pytest.mark.parametrize("mode", ["distance", "connectivity"])
def test_a_graph_of_samples_within_a_radius(mode):
    model = neighbors.RadiusNeighborsTransformer(mode=mode, radius=1.5).fit(X)
    assert 0 < model.transform(NEW).nnz < 12 * 30
    graph = write_model(model, {"X": TensorType(11, (None, 3))}, np.float64).model
    found = make_session(graph, Device("cpu")).run(None, {"X": NEW})[0]
    np.testing.assert_allclose(found, model.transform(NEW).toarray(), rtol=1e-10)
    assert trained(model) == (["_fit_X"] if mode == "distance" else [])


def test_local_outlier_factor():
    model = neighbors.LocalOutlierFactor(5, novelty=True, contamination=0.2).fit(X)
    check_model(model, NEW)
    assert trained(model) == ["_lrd"]
    assert not all_covered(neighbors.LocalOutlierFactor(5).fit(X))


def test_other_metrics_and_weights_have_no_definition():
    assert not all_covered(neighbors.KNeighborsRegressor(metric="canberra").fit(X, Y))
    assert not all_covered(neighbors.KNeighborsRegressor(weights=lambda d: 1 / (1 + d)).fit(X, Y))
    outliers = neighbors.RadiusNeighborsClassifier(outlier_label="most_frequent").fit(X, THREE)
    assert not all_covered(outliers)


@pytest.mark.parametrize("y", [Y, SEVERAL], ids=["one", "two"])
@pytest.mark.parametrize("algorithm", ["kd_tree", "brute"])
def test_duplicate_samples_share_one_target(y, algorithm):
    """Predictions do not depend on which of several equal samples is the nearest."""
    chosen = np.random.RandomState(0).randint(0, 30, 90)
    model = neighbors.KNeighborsRegressor(4, algorithm=algorithm).fit(X[chosen], y[chosen])
    check_model(model, NEW)
    options = {"learning_rate": 0.5, "max_iter": 3, "dtype": "float64", "random_state": 0}
    ours = OrtGradientOptimizer(model, warm_start=True, **options).fit(NEW, NEW[:, : np.ndim(y)] + 1)
    back = ours.to_sklearn()
    assert len(ours.trained_coef_["y"]) == len(set(chosen)) and np.abs(back._y - model._y).max() > 0.1
    np.testing.assert_allclose(back.predict(X), ours.predict(X).reshape(back.predict(X).shape), atol=1e-9)
