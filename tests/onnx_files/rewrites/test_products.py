"""Products by a vector, some of which onnxruntime and its gradient builder compute wrongly."""

import numpy as np
import pytest
from onnx import checker, parser

from ortlearn.differentiation import gradient_of_loss
from ortlearn.graphs import initializer_arrays, make_inputs_of
from ortlearn.onnx_files.rewrites import rewrite_forms

X = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
V = np.array([1.0, -2.0, 0.5], np.float32)
W = np.array([1.0, -2.0, 0.5, 3.0], np.float32)


def model_of(text):
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {text}')


def test_product_of_a_transpose(run_onnx):
    model = model_of(
        "g (float[3,N] x) => (float[N] y) <float[3] v = {1, -2, 0.5}> { t = Transpose (x) y = MatMul (t, v) }"
    )
    plain = rewrite_forms(model)
    checker.check_model(plain, full_check=True)
    np.testing.assert_allclose(run_onnx(plain, X)[0], X.T @ V, rtol=1e-5)
    assert initializer_arrays(plain)["v"].shape == (3,)


def test_two_vectors(run_onnx):
    model = model_of("g (float[4] x) => (float y) <float[4] v = {1, -2, 0.5, 3}> { y = MatMul (x, v) }")
    np.testing.assert_allclose(run_onnx(rewrite_forms(model), X[0])[0], X[0] @ W, rtol=1e-5)


def test_products_of_matrices_are_unchanged():
    model = model_of("g (float[N,4] x, float[4,2] w) => (float[N,2] y) { y = MatMul (x, w) }")
    assert rewrite_forms(model) is model


@pytest.mark.needs_training
@pytest.mark.parametrize("backend", ["rules", "ort"])
def test_gradient(run_onnx, backend):
    model = model_of("""g (float[N,4] x) => (float loss) <float[4] v = {1, -2, 0.5, 3}>
        { y = MatMul (x, v) s = Mul (y, y) loss = ReduceSum <keepdims = 0> (s) }""")
    onx = gradient_of_loss(make_inputs_of(rewrite_forms(model), ["v"]), "loss", ["x", "v"], backend)
    _, dx, dv = run_onnx(onx, X, W)
    np.testing.assert_allclose(dv, 2 * X.T @ (X @ W), rtol=1e-5)
    np.testing.assert_allclose(dx, 2 * np.outer(X @ W, W), rtol=1e-5)
