"""Kernel ridge regression and kernel approximations: graph, training and write-back."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.decomposition import KernelPCA
from sklearn.kernel_approximation import (
    AdditiveChi2Sampler,
    Nystroem,
    PolynomialCountSketch,
    RBFSampler,
    SkewedChi2Sampler,
)
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import KERNEL_PARAMS
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KernelCenterer

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import NoTrainableWeightError, ObjectiveWarning
from ortlearn.graphs import TensorType
from ortlearn.learning_rates import LearningRateSGD
from ortlearn.models import all_covered, objective_of, write_model, write_parameters
from ortlearn.models.formulas import kernels
from ortlearn.testing import check_model
from ortlearn.trainable.conversion import to_trainable
from ortlearn.trainable.from_estimator import sklearn_to_onnx

RNG = np.random.RandomState(0)
X = np.abs(RNG.normal(size=(40, 3))) + 0.1
NEW = np.abs(RNG.normal(size=(9, 3))) + 0.2  # not samples of the fit, where distances have no derivative
Y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * RNG.normal(size=40)
SEVERAL = np.column_stack([Y, 5 - 2 * Y])
#: Every kernel of scikit-learn, with parameters other than its defaults.
OPTIONS = {"gamma": 0.3, "coef0": 0.5, "degree": 2.0}
KERNELS = {name: {k: OPTIONS[k] for k in sorted(names)} for name, names in KERNEL_PARAMS.items()}
#: Kernels whose matrices are not positive definite.
INDEFINITE = ("additive_chi2", "sigmoid")


def written(model, n_columns=3, dtype=np.float64):
    return write_model(model, {"X": TensorType(11 if dtype == np.float64 else 1, (None, n_columns))}, dtype)


def trained(model, n_columns=3):
    """Return the attributes that are trained by default."""
    found = written(model, n_columns).parameters.values()
    return sorted(p.attribute for p in found if not p.reason)


def test_all_kernels_of_scikit_learn_are_supported():
    assert kernels.PAIRWISE == KERNELS.keys() | {"precomputed"}


@pytest.mark.parametrize("y", [Y, SEVERAL], ids=["one", "two"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_kernel_ridge(kernel, y, run):
    alpha = 200.0 if kernel in INDEFINITE else 0.5
    model = KernelRidge(alpha=alpha, kernel=kernel, **KERNELS[kernel]).fit(X, y)
    check_model(model, NEW, run=run)
    assert trained(model) == ["X_fit_", "dual_coef_"]
    assert objective_of(model, len(X)) is None


@pytest.mark.parametrize("kernel", ["poly", "rbf", "laplacian"])
def test_defaults_depend_on_the_number_of_features(kernel, run):
    check_model(KernelRidge(alpha=0.5, kernel=kernel).fit(X, Y), NEW, run=run)
    check_model(Nystroem(kernel, n_components=3, random_state=0).fit(X), NEW, run=run, rtol=1e-6)


def test_fractional_powers(run):
    check_model(KernelRidge(alpha=0.5, kernel="polynomial", degree=2.5).fit(X, Y), NEW, run=run)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_sparse_fits(kernel, run):
    for model in (KernelRidge(alpha=0.5, kernel=kernel), Nystroem(kernel, n_components=3, random_state=0)):
        check_model(model.fit(csr_array(X), Y), NEW, run=run)
    check_model(KernelPCA(2, kernel=kernel).fit(csr_array(X)), NEW, run=run)


def test_kernel_pca_of_a_precomputed_kernel(run):
    check_model(KernelPCA(2, kernel="precomputed").fit(X @ X.T), NEW @ X.T, run=run)


@pytest.mark.parametrize("kernel", ["chi2", "additive_chi2"])
def test_zeros_of_histograms(kernel, run_onnx):
    """A feature that is zero in both samples adds nothing."""
    samples, new = X.copy(), NEW.copy()
    samples[::2, 0] = new[::2, 0] = new[0] = 0.0
    model = Nystroem(kernel, n_components=3, random_state=0, **KERNELS[kernel]).fit(samples)
    (found,) = run_onnx(written(model).model, new)
    np.testing.assert_allclose(found, model.transform(new), rtol=1e-9)


def test_precomputed_kernels(run):
    model = KernelRidge(alpha=0.5, kernel="precomputed").fit(X @ X.T, Y)
    check_model(model, NEW @ X.T, run=run)
    assert trained(model, len(X)) == ["dual_coef_"]
    plain = KernelRidge(alpha=0.5, kernel="linear").fit(X, Y)
    np.testing.assert_allclose(model.dual_coef_, plain.dual_coef_)
    options = {"max_iter": 3, "warm_start": True, "keep_better": False, "dtype": "float64"}
    options |= {"learning_rate": LearningRateSGD(1e-3), "shuffle": False, "weights_to_train": ["dual_coef_"]}
    with pytest.warns(ObjectiveWarning, match="alpha"):
        before = OrtGradientOptimizer(model, **options).fit(X @ X.T, Y)
    with pytest.warns(ObjectiveWarning, match="alpha"):
        inside = OrtGradientOptimizer(plain, **options).fit(X, Y)
    np.testing.assert_allclose(before.predict(NEW @ X.T), inside.predict(NEW), rtol=1e-6)
    with pytest.raises(ValueError, match="features"):
        before.predict(X)


def test_early_stopping_of_an_unfitted_precomputed_kernel_requires_validation_data():
    gram, options = X @ X.T, {"early_stopping": True, "max_iter": 3, "random_state": 0}
    for model in (
        KernelRidge(kernel="precomputed"),
        make_pipeline(KernelPCA(2, kernel="precomputed"), Ridge()),
    ):
        with pytest.raises(ValueError, match="pass X_val"):
            OrtGradientOptimizer(model, **options).fit(gram, Y)
        for start, others in ((model, {"X_val": NEW @ X.T, "y_val": Y[:9]}), (clone(model).fit(gram, Y), {})):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ours = OrtGradientOptimizer(start, **options).fit(gram, Y, **others)
            assert ours.predict(NEW @ X.T).shape == (9,)


def test_callable_kernels_are_not_covered():
    own = {"kernel": lambda a, b: float(a @ b)}
    for model in (KernelRidge(**own), Nystroem(n_components=3, **own)):
        assert not all_covered(model.fit(X, Y))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_features_far_from_zero(kernel, dtype, run_onnx):
    """Kernels of distances stay accurate if differences are small relative to the features."""
    far = (X + 1e4).astype(np.float32).astype(np.float64)
    model = KernelRidge(alpha=0.5, kernel=kernel, gamma=0.5).fit(far, Y)
    new = (NEW + 1e4).astype(np.float32)
    (found,) = run_onnx(sklearn_to_onnx(model, 3, dtype), new.astype(dtype))
    expected = model.predict(new.astype(np.float64))
    np.testing.assert_allclose(found.ravel(), expected, rtol=1e-3 if dtype == np.float32 else 1e-5)


def test_shapes_of_predictions():
    model = KernelRidge(alpha=0.5, kernel="rbf").fit(X, Y)
    for y in (Y, Y[:, np.newaxis], SEVERAL):
        start = model if y is not SEVERAL else KernelRidge(alpha=0.5, kernel="rbf").fit(X, y)
        options = {"max_iter": 2, "warm_start": True, "learning_rate": "SGD", "learning_penalty": None}
        with pytest.warns(ObjectiveWarning):
            ours = OrtGradientOptimizer(start, **options).fit(X, y)
        assert ours.predict(X).shape == ours.to_sklearn().predict(X).shape == y.shape


@pytest.mark.parametrize("kernel", KERNELS)
def test_nystroem(kernel, run):
    model = Nystroem(kernel, n_components=3, random_state=0, **KERNELS[kernel]).fit(X)
    check_model(model, NEW, run=run, rtol=1e-6)
    assert trained(model) == ["components_", "normalization_"]


def test_nystroem_of_more_parameters(run):
    given = Nystroem("poly", kernel_params={"degree": 2, "coef0": 0.5}, n_components=3, random_state=0)
    check_model(given.fit(X), NEW, run=run, rtol=1e-6)
    check_model(Nystroem("chi2", n_components=3, random_state=0).fit(X), NEW, run=run)
    computed = Nystroem("precomputed", n_components=40, random_state=0).fit(X @ X.T + np.eye(40))
    check_model(computed, NEW @ X.T, run=run)


@pytest.mark.parametrize("kernel", ["chi2", "additive_chi2"])
def test_trained_components_stay_nonnegative(kernel):
    """scikit-learn rejects negative values for these kernels."""
    model = make_pipeline(Nystroem(kernel, n_components=5, random_state=0), Ridge()).fit(X, Y)
    options = {"weights_to_train": "*", "warm_start": True, "learning_rate": "SGD", "max_iter": 30}
    ours = OrtGradientOptimizer(model, keep_better=False, random_state=0, **options).fit(X, 9 * Y)
    samples = ours.to_sklearn()[0].components_
    assert samples.min() >= 0 and not np.allclose(samples, model[0].components_)
    np.testing.assert_allclose(ours.predict(NEW), ours.to_sklearn().predict(NEW), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    "model", [RBFSampler(gamma=0.7), RBFSampler(gamma="scale"), SkewedChi2Sampler(skewedness=0.05)], ids=str
)
def test_random_fourier_features(model, run):
    model = model.set_params(n_components=4, random_state=0).fit(X)
    check_model(model, NEW, run=run)
    assert trained(model) == ["random_offset_", "random_weights_"]


@pytest.mark.parametrize(
    "model",
    [
        *(AdditiveChi2Sampler(sample_steps=steps) for steps in (1, 2, 3)),
        AdditiveChi2Sampler(sample_steps=5, sample_interval=0.3),
        *(
            PolynomialCountSketch(degree=d, n_components=n, random_state=d)
            for d in (1, 2, 4)
            for n in (1, 6, 7)
        ),
        PolynomialCountSketch(degree=3, gamma=0.4, coef0=1.5, n_components=9, random_state=0),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_maps_without_parameters(model, dtype, run_onnx):
    samples = NEW.copy()
    samples[2, 1] = samples[3] = 0.0
    graph = written(model.fit(X), dtype=dtype)
    found = run_onnx(graph.model, samples.astype(dtype))[0]
    assert not graph.parameters and found.dtype == dtype
    tolerance = 2e-5 if dtype == np.float32 else 1e-11
    np.testing.assert_allclose(found, model.transform(samples), rtol=tolerance, atol=tolerance)
    with pytest.raises(NoTrainableWeightError):
        to_trainable(model, X=X)
    check_model(make_pipeline(model, Ridge()).fit(X, Y), NEW)


def test_gradients_pass_through_maps_without_parameters(run):
    for first, second in (
        (Nystroem(n_components=1, random_state=0), AdditiveChi2Sampler()),
        (RBFSampler(n_components=3, random_state=0), PolynomialCountSketch(n_components=5, random_state=0)),
    ):
        model = make_pipeline(first, second, Ridge())
        graph = to_trainable(model.fit(X, Y), "*", X=X)
        assert {"Sin", "MatMul"} & {node.op_type for node in graph.model.graph.node}
        check_model(model, NEW, run=run)


def test_a_centred_kernel(run):
    model = KernelCenterer().fit(X @ X.T)
    check_model(model, NEW @ X.T, run=run)
    assert trained(model, len(X)) == ["K_fit_all_", "K_fit_rows_"]


def test_sparse_samples_are_written_back_dense():
    model = KernelRidge(alpha=0.5).fit(csr_array(X), Y)
    result = write_parameters(model, written(model).parameters, {"X_fit": 2 * X})
    np.testing.assert_allclose(result.predict(NEW), 2 * model.predict(NEW))
