"""Lazy predictions equal those of one machine, and are computed per partition on request."""

import dask
import dask.array as da
import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline

from ortlearn.distributed import DaskOrtGradientOptimizer
from tests.distributed.shards import cut

#: Trainings on a cluster, half a minute in all.
pytestmark = pytest.mark.slow

SIZES = [200, 0, 150, 250]


def trained(client, estimator, X, y, **options):
    options = {"max_iter": 3, "random_state": 0, "learning_rate": 0.01, **options}
    model = DaskOrtGradientOptimizer(estimator, client=client, **options)
    return model.fit(cut(X, SIZES), None if y is None else cut(y, SIZES))


def assert_lazy(found, expected):
    for lazy, known in zip(*((x if isinstance(x, list) else [x]) for x in (found, expected)), strict=True):
        assert isinstance(lazy, da.Array)
        assert lazy.shape == known.shape and lazy.dtype == known.dtype
        assert lazy.chunks[0] == (200, 150, 250)
        assert np.array_equal(lazy.compute(), known)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_log_proba", "decision_function"])
def test_methods_of_a_classifier(client, classes, method):
    X, y = classes
    model = trained(client, LogisticRegression(), X, y)
    expected = getattr(model, method)(X)
    assert isinstance(expected, np.ndarray)
    assert_lazy(getattr(model, method)(cut(X, SIZES)), expected)


def test_several_columns_of_labels(client, regression):
    X, _ = regression
    y = (X[:, :2] > 0).astype(int)
    model = trained(client, MLPClassifier(hidden_layer_sizes=4, random_state=0), X, y, learning_rate="Adam")
    for method in ("predict", "predict_proba"):
        assert_lazy(getattr(model, method)(cut(X, SIZES)), getattr(model, method)(X))
    assert model.score(cut(X, SIZES), cut(y, SIZES)) == pytest.approx(model.score(X, y))
    values = X[:, :2] @ np.array([[1.0, 0.5], [0.0, 2.0]], np.float32)
    model = trained(client, LinearRegression(), X, values)
    assert_lazy(model.predict(cut(X, SIZES)), model.predict(X))
    assert model.score(cut(X, SIZES), cut(values, SIZES)) == pytest.approx(model.score(X, values), rel=1e-5)


def test_transformers_and_clusters(client, regression):
    X, y = regression
    model = trained(client, PCA(2), X, X[:, :2], learning_rate="Adam")
    assert_lazy(model.transform(cut(X, SIZES)), model.transform(X))
    model = trained(client, KMeans(3, n_init=1, random_state=0), X, None)
    assert_lazy(model.predict(cut(X, SIZES)), model.predict(X))
    assert model.score(cut(X, SIZES)) == pytest.approx(model.score(X), rel=1e-5)
    model = trained(client, make_pipeline(PCA(2), LinearRegression()), X, y)
    assert_lazy(model.predict(cut(X, SIZES)), model.predict(X))
    assert not hasattr(model, "predict_proba")


def test_predictions_are_lazy(client, regression):
    X, y = regression
    model = trained(client, LinearRegression(), X, y)
    computed = []

    def load(part):
        computed.append(len(part))
        return part

    lazy = model.predict(cut(X, SIZES).map_blocks(load, meta=X[:0]))
    assert not computed
    part = lazy.blocks[2].compute(scheduler="synchronous")
    assert computed == [250] and np.array_equal(part, model.predict(X[350:]))
    delayed = model.predict([dask.delayed(load)(X[:10])])
    assert computed == [250] and np.array_equal(
        delayed[0].compute(scheduler="synchronous"), model.predict(X[:10])
    )


def test_scores_are_weighted(client, regression, classes):
    weight = np.random.default_rng(0).random(600)
    for (X, y), estimator in ((regression, LinearRegression()), (classes, LogisticRegression())):
        model = trained(client, estimator, X, y)
        found = model.score(cut(X, SIZES), cut(y, SIZES), cut(weight, SIZES))
        assert found == pytest.approx(model.score(X, y, weight), rel=1e-5)
        assert found != pytest.approx(model.score(X, y), rel=1e-5)
