"""Gaussian mixtures and k-means: graph, training and write-back."""

import numpy as np
import pytest
from sklearn.cluster import BisectingKMeans, KMeans, MiniBatchKMeans
from sklearn.linear_model import Ridge
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.pipeline import make_pipeline

from ortlearn import OrtGradientOptimizer
from ortlearn.graphs import TensorType, extract_model
from ortlearn.models import write_model, write_parameters
from ortlearn.testing import check_model

RNG = np.random.RandomState(0)
X = np.vstack([RNG.normal(size=(40, 3)), RNG.normal(size=(40, 3)) @ np.diag([2.0, 0.5, 1.0]) + 3.0])
KINDS = {
    "mixture": GaussianMixture,
    "processes": BayesianGaussianMixture,
    "dirichlet": lambda **params: BayesianGaussianMixture(
        weight_concentration_prior_type="dirichlet_distribution", **params
    ),
}
COVARIANCES = ["full", "tied", "diag", "spherical"]

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def written(model):
    return write_model(model, {"X": TensorType(11, (None, 3))}, np.float64)


def computed(graph, tensor, run):
    return run(extract_model(graph.model, [tensor]), {"X": X})[0]


@pytest.mark.parametrize("n_components", [1, 3])
@pytest.mark.parametrize("covariance_type", COVARIANCES)
@pytest.mark.parametrize("kind", KINDS)
def test_mixtures(kind, covariance_type, n_components, run):
    model = KINDS[kind](
        n_components=n_components, covariance_type=covariance_type, max_iter=5, random_state=0
    ).fit(X)
    check_model(model, X, run=run)
    graph = written(model)
    likelihoods = computed(graph, graph.scores.likelihood, run)
    np.testing.assert_allclose(likelihoods, model.score_samples(X)[:, None], rtol=1e-9)
    np.testing.assert_array_equal(computed(graph, graph.scores.score, run), -likelihoods)


@pytest.mark.parametrize("covariance_type", COVARIANCES)
def test_write_back_updates_the_covariances(covariance_type):
    model = GaussianMixture(2, covariance_type=covariance_type, random_state=0).fit(X)
    graph = written(model)
    values = {"precisions_cholesky": 1.1 * graph.parameters["precisions_cholesky"].value(model)}
    changed = write_parameters(model, graph.parameters, values)
    np.testing.assert_allclose(changed.precisions_, 1.21 * model.precisions_)
    np.testing.assert_allclose(changed.covariances_, model.covariances_ / 1.21)


@pytest.mark.parametrize("covariance_type", COVARIANCES)
def test_variances_stay_above_a_bound(covariance_type):
    """Without reg_covar the likelihood has no maximum if a column is binary."""
    rng = np.random.default_rng(0)
    samples = np.column_stack([rng.normal(size=(200, 2)), rng.integers(0, 2, 200)])
    if covariance_type in ("tied", "spherical"):
        samples = np.round(samples * [0, 0, 1])  # no feature of a component has a variance
    mixture = GaussianMixture(2, covariance_type=covariance_type, random_state=0).fit(samples)
    options = {"learning_rate": "LBFGS", "warm_start": True, "keep_better": False, "dtype": "float64"}
    trained = OrtGradientOptimizer(mixture, max_iter=200, **options).fit(samples).to_sklearn()
    factors = trained.precisions_cholesky_
    diagonal = (
        factors if factors.ndim < 2 or covariance_type == "diag" else np.diagonal(factors, axis1=-2, axis2=-1)
    )
    assert diagonal.max() <= np.sqrt(2 / mixture.reg_covar)
    assert np.isfinite(trained.score(samples)) and trained.score(samples) >= mixture.score(samples)


def test_names_and_constraints():
    shares = {"log(weights_)": "kept on the simplex", "means_": None}
    triangular, positive = "kept triangular, the diagonal positive", "kept positive"
    for covariance_type in COVARIANCES:
        text = triangular if covariance_type in ("full", "tied") else positive
        parameters = written(GaussianMixture(2, covariance_type=covariance_type).fit(X)).parameters.values()
        found = {p.expression: p.constraint and p.constraint.text for p in parameters}
        assert found == {**shares, "precisions_cholesky_": text}


@pytest.mark.parametrize("kind", [KMeans, MiniBatchKMeans])
def test_clusters(kind, run):
    model = kind(4, n_init=1, random_state=0).fit(X)
    check_model(model, X, run=run)
    graph = written(model)
    squares = computed(graph, graph.scores.score, run)
    np.testing.assert_allclose(squares, model.transform(X).min(axis=1, keepdims=True) ** 2, rtol=1e-9)


@pytest.mark.parametrize("n_clusters", [1, 2, 6])
def test_bisecting_k_means(n_clusters, run):
    model = BisectingKMeans(n_clusters, random_state=0).fit(X)
    check_model(model, X, run=run)
    graph = written(model)
    squares = computed(graph, graph.scores.score, run)
    expected = np.square(X - model.cluster_centers_[model.predict(X)]).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(squares, expected, rtol=1e-9)
    values = {"cluster_centers": model.cluster_centers_ + 0.3}
    changed = write_parameters(model, graph.parameters, values)
    np.testing.assert_array_equal(computed(written(changed), graph.scores.label, run), changed.predict(X))
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_steps_write_only_the_required_outputs(run):
    model = make_pipeline(KMeans(4, n_init=1, random_state=0), Ridge()).fit(X, X[:, 0])
    check_model(model, X, run=run, rtol=1e-6)
    assert not {"ArgMin", "GatherElements"} & {node.op_type for node in written(model).model.graph.node}
