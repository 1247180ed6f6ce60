"""Projections: PCA, random projections, kernel PCA and partial least squares."""

import numpy as np
import pytest
from sklearn import decomposition
from sklearn.cross_decomposition import CCA, PLSSVD, PLSCanonical, PLSRegression
from sklearn.linear_model import Ridge
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.neural_network import BernoulliRBM
from sklearn.pipeline import make_pipeline
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from ortlearn.graphs import TensorType, initializer_arrays
from ortlearn.models import all_covered, write_model, write_parameters
from ortlearn.testing import check_model

RNG = np.random.RandomState(0)
X = RNG.normal(size=(40, 4)) + 0.3
Y = X @ [1.0, -2.0, 0.5, 0.0] + 0.1 * RNG.normal(size=40)
SEVERAL = np.column_stack([Y, X[:, 0]])
KERNELS = ["linear", "poly", "rbf", "sigmoid", "cosine"]


def expressions(model):
    """Return the names of the trained parameters as users see them."""
    written = write_model(model, {"X": TensorType(1, (None, X.shape[1]))})
    found = [p for p in written.parameters.values() if not p.reason]
    return sorted(p.expression for p in found)


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (decomposition.PCA(2), ["components_", "mean_"]),
        (decomposition.PCA(2, whiten=True), ["components_", "explained_variance_", "mean_"]),
        (decomposition.IncrementalPCA(2), ["components_", "mean_"]),
        (decomposition.TruncatedSVD(2, random_state=0), ["components_"]),
        (decomposition.FastICA(2, random_state=0), ["components_", "mean_"]),
        (GaussianRandomProjection(2, random_state=0), ["components_"]),
        (GaussianRandomProjection(2, compute_inverse_components=True, random_state=0), ["components_"]),
        (SparseRandomProjection(2, density=1.0, random_state=0), ["components_"]),
        (SparseRandomProjection(2, density=0.6, random_state=0), ["components_.data"]),
        (BernoulliRBM(3, random_state=0), ["components_", "intercept_hidden_"]),
    ],
    ids=str,
)
def test_linear_projections(model, names):
    check_model(model.fit(X), X)
    assert expressions(model) == names


def test_write_back_of_sparse_components():
    model = SparseRandomProjection(3, density=0.5, compute_inverse_components=True, random_state=0).fit(X)
    written = write_model(model, {"X": TensorType(1, (None, 4))})
    before = model.components_.toarray()
    trained = write_parameters(model, written.parameters, {"data": 2 * model.components_.data})
    np.testing.assert_allclose(trained.components_.toarray(), 2 * before)
    np.testing.assert_allclose(trained.inverse_components_, model.inverse_components_ / 2)
    np.testing.assert_array_equal(model.components_.toarray(), before)


def test_neighborhood_components():
    check_model(NeighborhoodComponentsAnalysis(2, random_state=0).fit(X, Y > 0), X)


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernel_pca(kernel):
    model = decomposition.KernelPCA(2, kernel=kernel, gamma=0.2, coef0=0.5).fit(X)
    check_model(model, X + 0.01)
    centerer = ["_centerer.K_fit_all_", "_centerer.K_fit_rows_"]
    assert expressions(model) == ["X_fit_", *centerer, "eigenvectors_ / sqrt(eigenvalues_)"]


def test_kernel_pca_with_an_eigenvalue_of_zero():
    samples = np.column_stack([X[:, :2], X[:, :1]])
    model = decomposition.KernelPCA(3, eigen_solver="dense").fit(samples)
    model.eigenvalues_[2] = 0.0
    check_model(model, samples)


def test_kernel_pca_of_a_callable_kernel_is_not_covered():
    model = decomposition.KernelPCA(2, kernel=lambda a, b: float(a @ b)).fit(X)
    assert not all_covered(model)


@pytest.mark.parametrize("y", [Y, SEVERAL], ids=["one", "two"])
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("kind", [PLSRegression, PLSCanonical, CCA])
def test_partial_least_squares(kind, y, scale):
    model = kind(1 if y.ndim == 1 else 2, scale=scale).fit(X, y)
    check_model(model, X)
    assert expressions(model) == ["_x_mean", "coef_", "intercept_"]


@pytest.mark.parametrize("n_components", [1, 2])
@pytest.mark.parametrize("scale", [True, False])
def test_singular_vectors_of_two_sets_of_features(n_components, scale):
    model = PLSSVD(n_components, scale=scale).fit(X, SEVERAL)
    check_model(model, X)
    assert expressions(model) == ["_x_mean", "_x_std", "x_weights_"]


@pytest.mark.parametrize("kind", [PLSRegression, PLSCanonical, CCA])
def test_steps_before_the_last_have_the_parameters_of_transform_only(kind):
    first = kind(2).fit(X, SEVERAL)
    model = make_pipeline(first, Ridge().fit(first.transform(X), Y))
    written = write_model(model, {"X": TensorType(1, (None, 4))})
    present = [written.parameters[name].attribute for name in initializer_arrays(written.model)]
    assert present == ["_x_mean", "_x_std", "x_rotations_", "coef_", "intercept_"]
    assert len(written.model.graph.node) == 6
    check_model(model, X)
    names = {parameter.attribute: name for name, parameter in written.parameters.items()}
    changed = {names["_x_std"]: 2 * first._x_std, names["x_rotations_"]: 3 * first.x_rotations_}
    trained = write_parameters(model, written.parameters, changed)[0]
    np.testing.assert_allclose(trained._x_std, 2 * first._x_std)
    np.testing.assert_allclose(trained.x_rotations_, 3 * first.x_rotations_)


def test_write_back_updates_the_mixing_matrix():
    model = decomposition.FastICA(2, random_state=0).fit(X)
    written = write_model(model, {"X": TensorType(1, (None, 4))}, np.float64)
    trained = write_parameters(model, written.parameters, {"components": 2 * model.components_.T})
    np.testing.assert_allclose(trained.mixing_, model.mixing_ / 2)
