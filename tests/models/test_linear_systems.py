"""Solutions of symmetric positive definite systems, and the digamma function."""

import numpy as np
import pytest
from onnx import TensorProto, helper
from scipy.special import psi

from ortlearn.graphs import GraphBuilder
from ortlearn.models.formulas.linear_systems import solve_positive
from ortlearn.models.formulas.special_functions import digamma
from ortlearn.testing import check_gradient_rule

RNG = np.random.default_rng(0)


def model_of(op, inputs, outputs, elem_type=TensorProto.DOUBLE):
    """Return the model of a builder, given shapes of inputs and ranks of outputs."""
    given = [helper.make_tensor_value_info(name, elem_type, shape) for name, shape in inputs.items()]
    results = [helper.make_tensor_value_info(name, elem_type, [None] * rank) for name, rank in outputs]
    graph = helper.make_graph(op.nodes, "system", given, results, initializer=op.initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def solved(dtype, size, width, *leading):
    """Return a graph that solves a system, and a random matrix and right-hand side."""
    op = GraphBuilder(18, dtype=dtype, existing_names=["matrix", "right"])
    solution, pivots = solve_positive(op, "matrix", "right", size, width)
    logarithm = op.ReduceSum(op.Log(op.Concat(*pivots, axis=-1)), [-2, -1], keepdims=0)
    shapes = {"matrix": [*leading, size, size], "right": [*leading, size, width]}
    outputs = [(solution, len(leading) + 2), (logarithm, len(leading))]
    elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    factor = RNG.normal(size=shapes["matrix"])
    matrix = factor @ np.swapaxes(factor, -1, -2) + 0.1 * np.eye(size)
    return model_of(op, shapes, outputs, elem_type), matrix, RNG.normal(size=shapes["right"])


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-10), (np.float32, 1e-3)])
@pytest.mark.parametrize(
    ("size", "width", "leading"), [(1, 1, ()), (3, 2, ()), (12, 1, (5,)), (4, 3, (2, 3))]
)
def test_solutions_and_determinants_equal_numpy(run_onnx, dtype, tolerance, size, width, leading):
    model, matrix, right = solved(dtype, size, width, *leading)
    solution, logarithm = run_onnx(model, matrix.astype(dtype), right.astype(dtype))
    expected = np.linalg.solve(matrix, right)
    np.testing.assert_allclose(solution, expected, rtol=0, atol=tolerance * np.abs(expected).max())
    np.testing.assert_allclose(logarithm, np.linalg.slogdet(matrix)[1], rtol=tolerance, atol=tolerance)


def test_badly_scaled_and_nearly_singular_systems(run_onnx):
    model, _, right = solved(np.float64, 6, 1)
    orthogonal = np.linalg.qr(RNG.normal(size=(6, 6)))[0]
    for eigenvalues in (np.logspace(-4, 4, 6), np.logspace(-8, 0, 6)):
        matrix = (orthogonal * eigenvalues) @ orthogonal.T
        solution = run_onnx(model, matrix, right)[0]
        condition = eigenvalues.max() / eigenvalues.min()
        gap = np.abs(solution - np.linalg.solve(matrix, right)).max() / np.abs(solution).max()
        assert gap < 10 * condition * np.finfo(np.float64).eps


@pytest.mark.parametrize(("size", "width", "leading"), [(1, 2, ()), (4, 2, ()), (3, 1, (2,))])
def test_gradients_equal_finite_differences(size, width, leading):
    model, matrix, right = solved(np.float64, size, width, *leading)
    check_gradient_rule(model, matrix, right, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-11), (np.float32, 1e-5)])
def test_digamma_equals_scipy(run_onnx, dtype, tolerance):
    op = GraphBuilder(18, dtype=dtype, existing_names=["x"])
    model = model_of(
        op, {"x": [None]}, [(digamma(op, "x"), 1)], helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    )
    x = np.concatenate([np.logspace(-6, 6, 200), [1.0, 1.4616321449683622, 2.0]]).astype(dtype)
    found, expected = run_onnx(model, x)[0], psi(x.astype(np.float64))
    assert (np.abs(found - expected) / np.maximum(1, np.abs(expected))).max() < tolerance
    if dtype == np.float64:
        check_gradient_rule(model, np.array([0.1, 0.7, 2.5, 40.0]), rtol=1e-5)
