"""Linear equations, and tables of float64."""

import numpy as np
import pytest
from onnx import checker, helper, numpy_helper, parser

from ortlearn.graphs import initializer_arrays
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


def test_equations_of_a_computed_matrix_stay():
    model = parser.parse_model("""<ir_version: 8, opset_import: ["": 18, "com.microsoft": 1]>
        g (float[3,3] a, float[3,N] x) => (float[3,N] y) { y = com.microsoft.Solve (a, x) }""")
    assert rewrite_forms(model) is model


TABLE = """<ir_version: 8, opset_import: ["": 18]> g ({0}[N] x, int64[N] i) => ({0}[N] y)
    <double[3] table = {{0.1, 2, 3}}> {{ t = Gather (table, i) s = Cast <to = {1}> (t) y = Add (s, x) }}"""


def test_a_table_of_float64(run_onnx):
    model = parser.parse_model(TABLE.format("float", 1))
    plain = rewrite_forms(model)
    checker.check_model(plain, full_check=True)
    assert initializer_arrays(plain)["table"].dtype == np.float32
    feeds = {"x": np.ones(4, np.float32), "i": np.array([0, 2, 1, 0])}
    np.testing.assert_array_equal(run_onnx(plain, **feeds)[0], run_onnx(model, **feeds)[0])


def test_a_table_of_a_float64_graph_stays():
    model = parser.parse_model(TABLE.format("double", 11))
    assert rewrite_forms(model) is model


def test_a_table_read_otherwise_stays():
    model = parser.parse_model(TABLE.format("float", 1))
    model.graph.node.append(helper.make_node("Neg", ["table"], ["z"]))
    assert rewrite_forms(model) is model
