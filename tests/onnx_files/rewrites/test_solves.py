"""Solve with a constant matrix, against NumPy."""

import numpy as np
import pytest
from onnx import numpy_helper, parser

from ortlearn.onnx_files.rewrites import rewrite_forms

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("lower", [0, 1])
@pytest.mark.parametrize("transposed", [0, 1])
def test_linear_equations(run_onnx, lower, transposed):
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 18, "com.microsoft": 1]>
        g (float[3,N] x) => (float[3,N] y)
        {{ y = com.microsoft.Solve <lower = {lower}, transposed = {transposed}> (matrix, x) }}""")
    matrix = (RNG.normal(size=(3, 3)) + 3 * np.eye(3)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(matrix, "matrix"))
    x = RNG.normal(size=(3, 5)).astype(np.float32)
    used = np.tril(matrix) if lower else matrix
    expected = np.linalg.solve(used.T if transposed else used, x)
    np.testing.assert_allclose(run_onnx(rewrite_forms(model), x)[0], expected, rtol=1e-4, atol=1e-6)


def test_computed_matrix_is_unchanged():
    model = parser.parse_model("""<ir_version: 8, opset_import: ["": 18, "com.microsoft": 1]>
        g (float[3,3] a, float[3,N] x) => (float[3,N] y) { y = com.microsoft.Solve (a, x) }""")
    assert rewrite_forms(model) is model
