"""Matérn kernels: accurate at all distances, for every smoothness."""

import math

import numpy as np
import pytest
from onnx import helper
from scipy.special import gammaln, kve

from ortlearn.graphs import GraphBuilder, TensorType
from ortlearn.models.formulas.special_functions import matern
from ortlearn.testing import check_gradient_rule

SMOOTHNESS = [0.1, 0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 3.3, 3.5, 4.5, 5.5, 7.0, 12.3, 50.0]


def graph_of(nu, dtype):
    """Return the graph of a kernel, from squared distances."""
    elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    op = GraphBuilder(dtype=dtype, types={"squares": TensorType(elem_type, (1, None))})
    op.node("Identity", matern(op, "squares", nu), outputs=["kernel"])
    values = [helper.make_tensor_value_info(name, elem_type, [1, None]) for name in ("squares", "kernel")]
    graph = helper.make_graph(op.nodes, "kernel", values[:1], values[1:], op.initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def exact(nu, distances):
    """Return the kernel by the Bessel function of scipy."""
    z = math.sqrt(2 * nu) * distances
    return np.exp((1 - nu) * math.log(2) - gammaln(nu) + nu * np.log(z) + np.log(kve(nu, z)) - z)


@pytest.mark.parametrize("nu", SMOOTHNESS)
def test_values(nu, run_onnx):
    distances = np.geomspace(1e-15, 300 / math.sqrt(2 * nu), 200)
    expected = exact(nu, distances)
    known = np.isfinite(expected)  # scipy's function overflows near zero
    assert known.mean() > 0.4
    (found,) = run_onnx(graph_of(nu, np.float64), squares=distances[np.newaxis] ** 2)
    np.testing.assert_allclose(found[0, known], expected[known], rtol=1e-9)
    (single,) = run_onnx(graph_of(nu, np.float32), squares=(distances[np.newaxis] ** 2).astype(np.float32))
    np.testing.assert_allclose(single[0, known], expected[known], rtol=0, atol=5e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("nu", SMOOTHNESS)
def test_zero_and_large_distances(nu, dtype, run_onnx):
    """scikit-learn uses the machine epsilon for a distance of zero; the kernel underflows at large ones."""
    squares = np.array([[0.0, 1e8, 1e12, 1e30, np.inf, np.nan]], dtype=dtype)
    (found,) = run_onnx(graph_of(nu, dtype), squares=squares)
    at_zero = exact(nu, np.finfo(float).eps) if nu < 1 else 1.0
    np.testing.assert_allclose(
        found[0], [at_zero, 0, 0, 0, 0, np.nan], rtol=1e-9 if dtype == np.float64 else 5e-5, atol=1e-20
    )


@pytest.mark.parametrize("nu", SMOOTHNESS)
def test_gradients(nu):
    squares = np.array([[0.1, 0.3, 1.0, 5.0, 30.0]])  # near zero the gradient of a rough kernel is infinite
    check_gradient_rule(graph_of(nu, np.float64), squares, wrt=[0], rtol=1e-6, atol=1e-9)


def test_elementary_kernels_have_no_table():
    sizes = {nu: len(graph_of(nu, np.float64).graph.node) for nu in (0.5, 1.5, 2.5, 4.5, np.inf)}
    assert max(sizes.values()) < 20 < len(graph_of(3.4, np.float64).graph.node)
