"""Weights before a rounding operator are rejected, or trained straight through."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import numpy_helper

from ortlearn.estimators import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import GradientError
from tests.differentiation.models import parse

ESTIMATORS = [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer]
BACKENDS = ["auto", "rules", pytest.param("ort", marks=pytest.mark.needs_training)]


def model_of(nodes):
    return parse(
        f"""g (float[N,2] X) => (float[N,1] y) <float[2,1] w = {{0.3, -0.2}}, float s = {{0.05}}> {{
        {nodes} y = MatMul (X, v) }}""",
        18,
    )


QUANTISED = """z = Constant <value = int8 {0}> () q = QuantizeLinear (w, s, z)
    v = DequantizeLinear (q, s, z)"""
CAST = "k = Cast <to = 7> (w) v = Cast <to = 1> (k)"
HALF = "k = Cast <to = 10> (w) v = Cast <to = 1> (k)"


def data():
    X = np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)
    return X, X @ np.array([1.0, -2.0], dtype=np.float32)


def fitted(cls, nodes, **options):
    options = {"max_iter": 30, "learning_rate": 0.05, "random_state": 0, "warm_start": True, **options}
    return cls(model_of(nodes), ["w"], **options).fit(*data())


@pytest.mark.parametrize("cls", ESTIMATORS)
@pytest.mark.parametrize("gradient", BACKENDS)
@pytest.mark.parametrize("nodes, name", [(QUANTISED, "QuantizeLinear"), (CAST, "Cast")])
def test_rounded_weights_are_rejected(cls, gradient, nodes, name):
    with pytest.raises(GradientError, match=f"{name}.*straight_through=True"):
        fitted(cls, nodes, gradient=gradient)


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_rounded_weights_are_trained_straight_through(cls):
    found = fitted(cls, QUANTISED, straight_through=True)
    np.testing.assert_allclose(found.trained_coef_["w"].ravel(), [1, -2], atol=0.1)
    assert found.train_losses_[-1] < 0.05 * found.train_losses_[0]


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_weights_in_float16_are_trained(cls):
    found = fitted(cls, HALF, gradient="rules")
    np.testing.assert_allclose(found.trained_coef_["w"].ravel(), [1, -2], atol=0.05)


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_straight_through_needs_rules(cls):
    with pytest.raises(ValueError, match="requires the built-in rules"):
        fitted(cls, QUANTISED, gradient="ort", straight_through=True)


def test_exported_model_rounds():
    found = fitted(OrtGradientOptimizer, QUANTISED, straight_through=True)
    (weights,) = [numpy_helper.to_array(t) for t in found.onnx_.graph.initializer if t.name == "w"]
    X, _ = data()
    expected = X @ (np.clip(np.round(weights / 0.05), -128, 127) * 0.05)
    np.testing.assert_allclose(found.predict(X), expected.ravel(), rtol=1e-4, atol=1e-5)
