"""Under ``dtype="auto"``, a model is trained in float64 if float32 changes its predictions."""

import numpy as np
import pytest
from onnx import TensorProto
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import FidelityWarning, PrecisionWarning


@pytest.mark.slow
@pytest.mark.sweep(2)
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("rounded", ["features", "labels", "predictions"])
def test_float64_is_chosen_if_float32_is_not_precise_enough(rounded):
    Z = np.random.default_rng(0).normal(size=(200, 3))
    X, Y = 1.6e9 + 50 * Z, Z @ [1.0, 2.0, 3.0]
    samples, y = {"features": (X, Y), "labels": (Z, 1.6e9 + 50 * Y), "predictions": (100 * Z, Y)}[rounded]
    model = {"predictions": KernelRidge(alpha=1e-9, kernel="poly")}.get(rounded, LinearRegression())
    with pytest.warns(PrecisionWarning, match="trained in float64"):
        trained = OrtGradientOptimizer(clone(model).fit(samples, y), warm_start=True, random_state=0)
        trained.fit(samples, y)
    assert trained.onnx_.graph.input[0].type.tensor_type.elem_type == TensorProto.DOUBLE
    expected = clone(model).fit(samples, y).predict(samples)
    np.testing.assert_allclose(trained.predict(samples), expected, atol=1e-4 * np.std(y))
    trained.fit(samples, y)  # continues in the same type
    assert trained.onnx_.graph.input[0].type.tensor_type.elem_type == TensorProto.DOUBLE


@pytest.mark.filterwarnings("ignore::scipy.linalg.LinAlgWarning")
def test_the_nearer_type_is_chosen_if_both_differ():
    X, y = load_diabetes(return_X_y=True)
    X = X * 10.0 ** np.array([-6, -5, -3, -1, 0, 1, 3, 5, 7, 8])
    with pytest.warns(FidelityWarning):
        trainer = OrtGradientOptimizer(KernelRidge(), random_state=0).fit(X[:300], y[:300])
    assert trainer.score(X[300:], y[300:]) > KernelRidge().fit(X[:300], y[:300]).score(X[300:], y[300:]) - 0.5
