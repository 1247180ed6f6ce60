"""Gradients of graphs that declare no shapes, compared with those of the same graphs with known shapes."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from ortlearn.differentiation.gradient_model import gradient_model
from ortlearn.exceptions import GradientError
from ortlearn.graphs import copy_model
from tests.differentiation.evaluation import run
from tests.differentiation.models import parse
from tests.differentiation.records import RECORDS
from tests.differentiation.test_rules import node_model, wanted

FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE)


def with_loss(model, weighted):
    """Return a model whose only output is the sum of its outputs, or of their products with weights."""
    model = copy_model(model)
    graph, totals = model.graph, []
    for value in graph.output:
        kind = value.type.tensor_type.elem_type
        if kind not in FLOATS:
            continue
        name = value.name
        if weighted:
            graph.input.append(helper.make_tensor_value_info(f"{name}_weight", kind, None))
            graph.node.append(helper.make_node("Mul", [name, f"{name}_weight"], [f"{name}_weighted"]))
            name += "_weighted"
        graph.node.append(helper.make_node("ReduceSum", [name], [f"{name}_sum"], keepdims=0))
        graph.node.append(helper.make_node("Cast", [f"{name}_sum"], [f"{name}_total"], to=TensorProto.DOUBLE))
        totals.append(f"{name}_total")
    graph.node.append(helper.make_node("Sum", totals, ["loss"]))
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info("loss", TensorProto.DOUBLE, []))
    return model


def without_shapes(model, feeds):
    """Declare no shapes."""
    for value in model.graph.input:
        value.type.tensor_type.ClearField("shape")
    return model, feeds


def behind_reshape(model, feeds):
    """Reshape every input to a shape that is an input."""
    graph, feeds = model.graph, dict(feeds)
    nodes = list(graph.node)
    for value in list(graph.input):
        if value.name in feeds:
            shape = f"{value.name}_shape"
            for node in nodes:
                node.input[:] = [f"{name}_reshaped" if name == value.name else name for name in node.input]
            nodes.insert(0, helper.make_node("Reshape", [value.name, shape], [f"{value.name}_reshaped"]))
            graph.input.append(helper.make_tensor_value_info(shape, TensorProto.INT64, [f"rank_{shape}"]))
            feeds[shape] = np.array(feeds[value.name].shape, np.int64)
    del graph.node[:]
    graph.node.extend(nodes)
    return model, feeds


def given_constants(model, feeds):
    """Declare no shapes, and take constants, such as shapes and axes, from inputs."""
    graph, feeds = model.graph, dict(feeds)
    for tensor in list(graph.initializer):
        graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, None))
        feeds[tensor.name] = numpy_helper.to_array(tensor)
        graph.initializer.remove(tensor)
    return without_shapes(model, feeds)


#: Operators whose rule needs the rank of an input, or sizes; it raises an error that says so.
REFUSED = set(
    """AffineGrid ArrayFeatureExtractor Attention AveragePool BatchNormalization BiasSoftmax BiasSplitGelu
    Compress Conv ConvTranspose Einsum EmbedLayerNormalization FusedConv FusedMatMul Gather GatherElements
    GatherND GemmFastGelu GlobalAveragePool GlobalLpPool GlobalMaxPool GridSample GroupNorm
    GroupQueryAttention InstanceNormalization LRN LayerNormalization LpPool MatMul MultiHeadAttention
    Normalizer OneHot Resize RoiAlign RotaryEmbedding SimplifiedLayerNormalization SoftmaxCrossEntropyLoss
    TensorScatter Tile TransposeMatMul""".split()
)


def check(record, opset, hide, weighted):
    """Compare the gradients of a loss with known shapes and with unknown ones."""
    model, feeds, names = node_model(record, opset)
    wrt = wanted(record, feeds, names)
    rng = np.random.default_rng(0)
    for value, result in zip(model.graph.output, run(model, feeds), strict=True):
        if weighted and value.type.tensor_type.elem_type in FLOATS:
            weight = rng.normal(size=result.shape)
            feeds[f"{value.name}_weight"] = np.asarray(weight, dtype=result.dtype)
    known = with_loss(model, weighted)
    hidden, given = hide(copy_model(known), feeds)
    try:
        onx = gradient_model(hidden, "loss", wrt)
    except GradientError as error:
        assert record.op_type in REFUSED and ("unknown" in str(error) or "must be known" in str(error))
        return
    rtol = 1e-4 if record.single else 1e-9
    expected = run(gradient_model(known, "loss", wrt), feeds)
    for got, array in zip(run(onx, given), expected, strict=True):
        assert got.shape == array.shape
        np.testing.assert_allclose(got, array, rtol=rtol, atol=rtol)


@pytest.mark.sweep(110, slow=110)
@pytest.mark.parametrize("record", [pytest.param(record, id=str(record)) for record in RECORDS])
def test_gradients_of_unknown_ranks(record):
    check(record, record.opsets[-1], given_constants, weighted=True)


@pytest.mark.slow
@pytest.mark.parametrize("place", [0, -1], ids=["first opset", "last opset"])
@pytest.mark.parametrize("weighted", [False, True], ids=["sum", "weighted"])
@pytest.mark.parametrize("hide", [without_shapes, behind_reshape, given_constants])
def test_all_forms(hide, weighted, place):
    """About ten seconds each."""
    for record in RECORDS:
        check(record, record.opsets[place], hide, weighted)


SUMS = {
    "mean after Neg": ("a = Neg (x) loss = ReduceMean <keepdims = 0> (a)", [[-1 / 6] * 3] * 2),
    "sum of Expand": ("a = Expand (x, s) loss = ReduceSum <keepdims = 0> (a)", [[4.0] * 3] * 2),
    "kept dimensions": ("a = Reshape (x, s) b = ReduceSum (a) loss = Squeeze (b)", [[1.0] * 3] * 2),
}


@pytest.mark.parametrize("name", SUMS)
def test_sum_over_all_axes_of_an_unknown_rank(name):
    nodes, expected = SUMS[name]
    model = parse(f"g (double[] x, int64[] s) => (double loss) {{ {nodes} }}")
    for value in model.graph.input:
        value.type.tensor_type.ClearField("shape")
    shape = [4, 2, 3] if "Expand" in name else [3, 2]
    feeds = {"x": np.ones((2, 3)), "s": np.array(shape)}
    grad = run(gradient_model(model, "loss", ["x"]), feeds)[1]
    np.testing.assert_allclose(grad, expected)
