"""Gaussian processes: predictions as scikit-learn's for every kernel, several classes, training."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Kernel,
    Matern,
    NormalizedKernelMixin,
    PairwiseKernel,
    RationalQuadratic,
    StationaryKernelMixin,
    WhiteKernel,
)

from ortlearn import OrtGradientOptimizer
from ortlearn.conversion import sklearn_to_onnx, to_trainable
from ortlearn.exceptions import ConversionError
from ortlearn.graphs import initializer_arrays
from ortlearn.learning_rates import LearningRateAdam
from ortlearn.models import distances

RNG = np.random.default_rng(0)
X, ROWS = RNG.normal(size=(30, 3)), RNG.normal(size=(12, 3))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=30)
ROWS[0] = X[0]  # a distance of zero

KERNELS = {
    "none": None,
    "rbf": 2.0 * RBF(1.5),
    "one length for each column": RBF([1.0, 2.0, 0.5]) + WhiteKernel(0.1),
    **{f"matern {nu}": Matern([0.7, 1.5, 2.0], nu=nu) for nu in (0.5, 1.5, 2.5, np.inf)},
    "rational quadratic": RationalQuadratic(0.7, 1.5),
    "power": (1.0 * RationalQuadratic()) ** 1.5,
    "periodic": ExpSineSquared(1.0, 3.0) * RBF(1.0) + WhiteKernel(1.0),
    "dot product": DotProduct(1.2) + WhiteKernel(0.3),
    "constant and noise": ConstantKernel(2.0) * RBF() + ConstantKernel(0.5) + WhiteKernel(0.3),
    **{
        f"pairwise {metric}": PairwiseKernel(metric=metric, gamma=0.4) + WhiteKernel(1.0)
        for metric in ("linear", "poly", "rbf", "laplacian", "cosine")
    },
    "pairwise sigmoid": PairwiseKernel(metric="sigmoid", gamma=0.4) + WhiteKernel(30.0),
    "options": PairwiseKernel(metric="poly", pairwise_kernels_kwargs={"degree": 2, "coef0": 0.5})
    + WhiteKernel(),
}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_regressor(run_onnx, name, dtype):
    model = GaussianProcessRegressor(KERNELS[name], alpha=0.05, optimizer=None, normalize_y=True).fit(
        X, Y + 3
    )
    (found,) = run_onnx(sklearn_to_onnx(model, 3, dtype), ROWS.astype(dtype))
    assert found.dtype == dtype and found.shape == (12, 1)
    # the newest onnxruntime fuses a product with its scale, which it keeps in float32
    tolerance = 1e-4 if dtype == np.float32 else 1e-7
    np.testing.assert_allclose(found[:, 0], model.predict(ROWS), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", KERNELS)
def test_classifier_of_two(run_onnx, name):
    model = GaussianProcessClassifier(KERNELS[name], optimizer=None).fit(X, np.where(Y > 0, "yes", "no"))
    label, probabilities = run_onnx(sklearn_to_onnx(model, 3), ROWS.astype(np.float32))
    # the coefficients of the approximated integral reach 3500: seven digits become four
    np.testing.assert_allclose(probabilities, model.predict_proba(ROWS), atol=1e-3)
    assert label.tolist() == model.predict(ROWS).tolist()


@pytest.mark.parametrize("names", [[0, 1, 2], [5, -3, 8], ["a", "b", "c"]])
def test_classifier_of_three(run_onnx, names):
    data, y = load_iris(return_X_y=True)
    data, y = data[::5], np.array(names)[y[::5]]
    model = GaussianProcessClassifier(1.0 * RBF(), optimizer=None).fit(data, y)
    label, probabilities = run_onnx(sklearn_to_onnx(model, 4), data.astype(np.float32))
    np.testing.assert_allclose(probabilities, model.predict_proba(data), atol=1e-3)
    assert label.tolist() == model.predict(data).tolist()


def test_several_targets(run_onnx):
    targets = np.stack([Y, 5 - 2 * Y], axis=1)
    model = GaussianProcessRegressor(alpha=0.05, normalize_y=True).fit(X, targets)
    (found,) = run_onnx(sklearn_to_onnx(model, 3), ROWS.astype(np.float32))
    np.testing.assert_allclose(found, model.predict(ROWS), rtol=1e-4, atol=1e-4)


def test_many_rows_by_a_product(run_onnx, monkeypatch):
    monkeypatch.setattr(distances, "EXACT", 10)
    model = GaussianProcessRegressor(Matern(nu=2.5), alpha=0.05, optimizer=None).fit(X + 20, Y)
    onx = sklearn_to_onnx(model, 3)
    assert "ReduceSumSquare" in {node.op_type for node in onx.graph.node}
    (found,) = run_onnx(onx, (ROWS + 20).astype(np.float32))
    np.testing.assert_allclose(found[:, 0], model.predict(ROWS + 20), rtol=1e-4, atol=1e-4)


class Mine(StationaryKernelMixin, NormalizedKernelMixin, Kernel):
    """A kernel of a user."""

    def __init__(self):
        pass

    def __call__(self, X, Y=None, eval_gradient=False):
        return np.eye(len(X)) if Y is None else np.zeros((len(X), len(Y)))


@pytest.mark.parametrize("kernel, said", [(Matern(nu=0.8), "Bessel"), (Mine(), "no form in ONNX"),
                                          (PairwiseKernel(metric="chi2"), "no form in ONNX")])  # fmt: skip
def test_kernels_without_a_form(kernel, said):
    model = GaussianProcessRegressor(kernel, alpha=0.1, optimizer=None).fit(np.abs(X), Y)
    with pytest.raises(ConversionError, match=said):
        sklearn_to_onnx(model, 3)


def test_one_against_one_has_no_probabilities():
    data, y = load_iris(return_X_y=True)
    model = GaussianProcessClassifier(optimizer=None, multi_class="one_vs_one").fit(data[::5], y[::5])
    with pytest.raises(ConversionError, match="one_vs_rest"):
        sklearn_to_onnx(model, 4)


def test_what_is_trained():
    model = GaussianProcessRegressor(1.0 * RBF(1.0), alpha=0.05, optimizer=None).fit(X, Y)
    trainable = to_trainable(model)
    attributes = {trainable.weights[name].attribute for name in trainable.trained}
    assert {"alpha_", "X_train_"} <= attributes
    # equal numbers, yet one initializer for each hyper-parameter
    scales = [
        name
        for name in initializer_arrays(trainable.model)
        if "length_scale" in name or "constant_value" in name
    ]
    assert len(scales) == 2 and not set(scales) & set(trainable.trained)


@pytest.mark.needs_training
@pytest.mark.parametrize("gradient", ["rules", "ort"])
@pytest.mark.parametrize("kernel", [RBF(3.0), Matern(3.0, nu=2.5)], ids=["rbf", "matern"])
def test_a_process_improves_its_objective(diabetes, gradient, kernel):
    rows, y = diabetes.X_train[:150], diabetes.y_train[:150]
    model = GaussianProcessRegressor(kernel + WhiteKernel(0.5), optimizer=None).fit(rows, y)
    trained = OrtGradientOptimizer(
        model, warm_start=True, learning_rate=LearningRateAdam(eta0=1e-3), max_iter=20, batch_size=30,
        gradient=gradient, random_state=0,
    )  # fmt: skip
    trained.fit(rows, y)
    before, after = (np.mean((fitted.predict(rows) - y) ** 2) for fitted in (model, trained))
    assert after < 0.99 * before


@pytest.mark.needs_training
@pytest.mark.parametrize("gradient", ["rules", "ort"])
def test_a_classifier_improves_its_objective(breast_cancer, gradient):
    rows, y = breast_cancer.X_train[:120], breast_cancer.y_train[:120]
    model = GaussianProcessClassifier(1.0 * RBF(4.0), optimizer=None).fit(rows, y)
    trained = OrtGradientOptimizer(
        model, warm_start=True, learning_rate=LearningRateAdam(eta0=0.02), max_iter=20, batch_size=30,
        gradient=gradient, random_state=0,
    )  # fmt: skip
    trained.fit(rows, y)
    before, after = (
        -np.mean(np.log(fitted.predict_proba(rows)[np.arange(120), y])) for fitted in (model, trained)
    )
    assert after < 0.9 * before
