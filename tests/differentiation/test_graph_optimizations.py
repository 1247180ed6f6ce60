"""Derivatives computed with and without graph optimizations of onnxruntime, which must agree.

Operators stand alone, and behind Transposes, with which onnxruntime fuses products.
"""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnxruntime.capi.onnxruntime_pybind11_state import (
    Fail,
    InvalidGraph,
    NotImplemented,
    RuntimeException,
)

from ortlearn.differentiation import onnx_derivative
from ortlearn.exceptions import ConversionError
from ortlearn.graphs import copy_model
from tests.differentiation.evaluation import run_at_level
from tests.differentiation.linear_algebra_records import LINEAR_ALGEBRA
from tests.differentiation.models import parse
from tests.differentiation.records import RECORDS
from tests.differentiation.test_rules import node_model, wanted

FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE)
#: Numbers of exchanges of the last two axes of every input: 0 is a Transpose that keeps their order.
EXCHANGES = (0, 1, 2)


def behind_transposes(model, feeds, exchanges):
    """Transpose every floating-point input of two or more axes, so that the operator reads equal values."""
    model, feeds = copy_model(model), dict(feeds)
    nodes, names = [], {}
    for value in model.graph.input:
        kind = value.type.tensor_type
        perm = list(range(len(kind.shape.dim)))
        if kind.elem_type not in FLOATS or len(perm) < 2:
            continue
        if exchanges:
            perm[-2:] = perm[:-3:-1]
        name = value.name
        for number in range(max(exchanges, 1)):
            names[value.name] = f"{value.name}_{number}"
            nodes.append(helper.make_node("Transpose", [name], [names[value.name]], perm=perm))
            name = names[value.name]
        if exchanges == 1:
            feeds[value.name] = np.ascontiguousarray(np.swapaxes(feeds[value.name], -1, -2))
            dims = [copy_model_dim(dim) for dim in kind.shape.dim]
            del kind.shape.dim[:]
            kind.shape.dim.extend([dims[axis] for axis in perm])
    for node in model.graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
    nodes += model.graph.node
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model, feeds


def copy_model_dim(dim):
    return type(dim).FromString(dim.SerializeToString())


def seeds(onx, model, feeds):
    rng = np.random.default_rng(1)
    results = run_at_level(model, feeds, "DISABLE_ALL")
    values = {f"{o.name}_grad": value for o, value in zip(model.graph.output, results, strict=True)}
    kinds = {v.name: helper.tensor_dtype_to_np_dtype(v.type.tensor_type.elem_type) for v in onx.graph.input}
    new = [name for name in kinds if name not in feeds]
    return {name: np.asarray(rng.normal(size=values[name].shape), kinds[name]) for name in new}


def assert_levels_agree(onx, feeds):
    expected = run_at_level(onx, feeds, "DISABLE_ALL")
    for level in ("ENABLE_BASIC", "ENABLE_ALL"):
        for got, array in zip(run_at_level(onx, feeds, level), expected, strict=True):
            assert got.shape == array.shape
            largest = np.abs(array[np.isfinite(array)]).max(initial=1)
            np.testing.assert_allclose(got, array, rtol=1e-3, atol=1e-4 * largest, err_msg=level)


def check(record, opset, dtype, symbolic, exchanges):
    """Compare the levels for the first derivative, and for the second."""
    if not record.kernel:  # some of these terminate the process
        return 0
    model, feeds, names = node_model(record, opset, dtype, symbolic)
    wrt = wanted(record, feeds, names)
    if exchanges is not None:
        model, feeds = behind_transposes(model, feeds, exchanges)
    try:
        run_at_level(model, feeds, "DISABLE_ALL")
    except (Fail, InvalidGraph, NotImplemented, RuntimeException):
        return 0  # onnxruntime does not run the operator itself
    onx = onnx_derivative(model, [], wrt)
    feeds |= seeds(onx, model, feeds)
    try:
        assert_levels_agree(onx, feeds)
    except NotImplemented as error:
        assert "FusedMatMul" not in str(error)
        return 0
    # ConvActivationFusion of 1.19 terminates the process if a branch reads the result of a Conv.
    in_branch = record.op_type == "LpPool" and opset == 13
    if record.second and dtype == np.float32 and not in_branch:
        both = [*wrt, *(v.name for v in onx.graph.input if v.name.endswith("_grad"))]
        try:
            second = onnx_derivative(onx, [], both)
        except ConversionError as error:  # opening refuses a ReduceProd of the empty shape of a scalar
            assert "of an empty tensor" in str(error)
            return 1
        assert_levels_agree(second, feeds | seeds(second, onx, feeds))
    return 1


@pytest.mark.slow
@pytest.mark.sweep(2)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("exchanges", EXCHANGES)
def test_products_behind_transposes(exchanges, dtype):
    products = [record for record in LINEAR_ALGEBRA if record.op_type in ("MatMul", "Gemm")]
    compared = [check(record, record.opsets[-1], dtype, record.symbolic, exchanges) for record in products]
    assert sum(compared) == len(products) > 20


@pytest.mark.slow
@pytest.mark.sweep(0, slow=1)
@pytest.mark.parametrize("exchanges", [None, *EXCHANGES])
def test_all_operators(exchanges):
    """About two minutes."""
    compared = [
        check(record, opset, np.float32, record.symbolic, exchanges)
        for record in RECORDS
        for opset in {record.opsets[0], record.opsets[-1]}
    ]
    for record in RECORDS:
        check(record, record.opsets[-1], np.float64, record.symbolic, exchanges)
    assert sum(compared) > 0.85 * len(compared)


VECTORS = {
    "transposed matrix": "t = Transpose <perm = [1, 0]> (x) y = MatMul (t, v)",
    "stack of transposed matrices": "e = Unsqueeze (x, zero) t = Transpose <perm = [0, 2, 1]> (e) "
    "y = MatMul (t, v)",
    "without perm": "t = Transpose (x) y = MatMul (t, v)",
}


@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("name", VECTORS)
def test_transposed_matrix_times_a_vector(name, kind):
    """onnxruntime computes the product itself wrongly, whose values the derivative reads."""
    text = VECTORS[name].replace("y =", "p =") + " y = Tanh (p)"
    model = parse(f"g ({kind}[3, 2] x, {kind}[3] v) => ({kind}[A] y) <int64[1] zero = {{0}}> {{ {text} }}")
    if "stack" in name:
        model.graph.output[0].type.tensor_type.shape.dim.add()
    dtype = np.float32 if kind == "float" else np.float64
    rng = np.random.default_rng(0)
    feeds = {"x": rng.normal(size=(3, 2)).astype(dtype), "v": rng.normal(size=3).astype(dtype)}
    onx = onnx_derivative(model)
    assert_levels_agree(onx, feeds | seeds(onx, model, feeds))


def test_transpose_that_keeps_the_order_of_axes():
    model = parse("""g (float[N,2] x, float[2,2] w) => (float[N,2] y)
        { t = Transpose <perm = [0, 1]> (x) y = MatMul (t, w) }""")
    feeds = {"x": np.array([[1, 2], [3, 5]], np.float32), "w": np.eye(2, dtype=np.float32)}
    feeds["y_grad"] = np.array([[1, 0], [0, 0]], np.float32)
    for level in ("DISABLE_ALL", "ENABLE_BASIC", "ENABLE_ALL"):
        found = run_at_level(onnx_derivative(model, inputs=["w"]), feeds, level)
        np.testing.assert_array_equal(found[0], [[1, 0], [2, 0]])
