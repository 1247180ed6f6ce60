"""Clusterings with centres: graph, training and write-back."""

import numpy as np
import pytest
from sklearn.cluster import AffinityPropagation, Birch, MeanShift
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import ConversionError
from ortlearn.graphs import TensorType
from ortlearn.models import objective_of, write_model, write_parameters
from ortlearn.testing import check_model

RNG = np.random.RandomState(0)
X = np.vstack([RNG.normal(size=(30, 2)) * 0.4 + centre for centre in ([0, 0], [3, 1], [0, 4])])
MODELS = {
    "MeanShift": MeanShift(bandwidth=1.2),
    "not all": MeanShift(bandwidth=1.2, cluster_all=False),
    "AffinityPropagation": AffinityPropagation(random_state=0),
    "Birch": Birch(threshold=0.5, n_clusters=3),
    "subclusters": Birch(threshold=0.5, n_clusters=None),
}


def written(model, dtype=np.float64):
    return write_model(model, {"X": TensorType(11 if dtype == np.float64 else 1, (None, 2))}, dtype)


@pytest.mark.parametrize("name", MODELS)
def test_definitions(name, run):
    model = MODELS[name].fit(X)
    check_model(model, X + 0.01, run=run)
    centers = "subcluster_centers_" if isinstance(model, Birch) else "cluster_centers_"
    assert [p.attribute for p in written(model).parameters.values()] == [centers]
    assert objective_of(model, len(X)) is None  # only KMeans minimises the inertia


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", MODELS)
def test_features_far_from_zero(name, dtype, run_onnx):
    far = (X + 1e3).astype(np.float32).astype(np.float64)
    model = MODELS[name].fit(far)
    label = run_onnx(written(model, dtype).model, far.astype(dtype))[0]
    assert label.tolist() == model.predict(far).tolist()


@pytest.mark.parametrize("name", MODELS)
def test_training_lowers_the_distances(name):
    model = MODELS[name].fit(X)
    options = {"warm_start": True, "max_iter": 20, "random_state": 0, "learning_rate": "Adam"}
    ours = OrtGradientOptimizer(model, **options).fit(X + 0.3)
    start = OrtGradientOptimizer(model, **(options | {"max_iter": 1, "learning_rate": 1e-20})).fit(X)
    assert ours.score(X + 0.3) > start.score(X + 0.3)
    assert ours.predict(X).tolist() == ours.to_sklearn().predict(X).tolist()
    assert hasattr(ours, "transform") == isinstance(model, Birch)


def test_equal_distances_go_to_the_first_centre(run_onnx):
    samples = np.array([[0.0], [2.0], [4.0]])
    model = MeanShift(bandwidth=0.5).fit(samples)
    between = np.array([[1.0], [3.0]])
    graph = write_model(model, {"X": TensorType(11, (None, 1))}, np.float64).model
    assert run_onnx(graph, between)[0].tolist() == model.predict(between).tolist()


def test_birch_as_a_step(run):
    model = make_pipeline(Birch(threshold=1.5, n_clusters=None), Ridge()).fit(X, X[:, 0])
    check_model(model, X + 0.01, run=run)


def test_write_back_updates_the_norms_of_subclusters():
    model = Birch(threshold=0.5).fit(X)
    moved = model.subcluster_centers_ + 10.0
    result = write_parameters(model, written(model).parameters, {"subcluster_centers": moved})
    # with the old norms, samples would be assigned to other subclusters
    assert result.predict(X + 10.0).tolist() == model.predict(X).tolist()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_affinities_without_centres():
    with pytest.raises(ConversionError, match="did not converge"):
        written(AffinityPropagation(max_iter=1, random_state=0).fit(X))
    with pytest.raises(ConversionError, match="precomputed"):
        written(AffinityPropagation(affinity="precomputed", random_state=0).fit(X @ X.T))
