"""Add low-rank adapters to a graph."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, helper, numpy_helper

from ...graphs import GraphBuilder, graph_names, node_inputs, opset_versions
from ...graphs.editing import renamed_node, with_fields
from ...graphs.nodes import attribute, captured_names, copy_node
from .adapters import Adapter


def with_adapters(
    model: ModelProto,
    adapters: Sequence[Adapter],
    shapes: Mapping[str, Sequence[int]],
    as_inputs: bool = False,
) -> ModelProto:
    """Return a graph with adapters A and B of zeros, as optional inputs if ``as_inputs``."""
    # A product x W becomes x W + scale (x A) B, whose gradient does not involve W. Weights of convolutions,
    # and weights that several nodes read, become W + scale A B.
    graph, adapted = model.graph, {adapter.weight: adapter for adapter in adapters}
    names = graph_names(graph) | {name for adapter in adapters for name in (adapter.a, adapter.b)}
    op = GraphBuilder(opset_versions(model).get("", 18), existing_names=names, prefix="lora_")
    types = _element_types(model, adapted)
    reads = [name for node in graph.node for name in (*node.input, *captured_names(node)) if name in adapted]
    renamed: dict[str, str] = {}
    for node in graph.node:
        read = sorted(node_inputs(node) & adapted.keys())
        if len(read) == 1 and reads.count(read[0]) == 1 and _is_product(node, adapted[read[0]]):
            _write_product(op, node, adapted[read[0]], types[read[0]])
            continue
        for name in read:
            if name not in renamed:
                renamed[name] = _write_sum(op, adapted[name], shapes[name], types[name])
        op.nodes.append(renamed_node(node, {name: renamed[name] for name in read}))
    zeros = [
        numpy_helper.from_array(np.zeros(shape, types[adapter.weight]), name)
        for adapter in adapters
        for name, shape in zip((adapter.a, adapter.b), adapter.shapes, strict=True)
    ]
    infos = [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in zeros if as_inputs]
    constants = [*graph.initializer, *zeros, *op.initializers]
    return with_fields(model, node=op.nodes, initializer=constants, input=[*graph.input, *infos])


def _element_types(model: ModelProto, names: Collection[str]) -> dict[str, Any]:
    """Return the NumPy types of initializers or constants of the main graph."""
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.output[0] in names:
            tensors[node.output[0]] = attribute(node, "value")
    return {name: helper.tensor_dtype_to_np_dtype(tensors[name].data_type) for name in names}


def _is_product(node: NodeProto, adapter: Adapter) -> bool:
    """Return whether a node computes x W, or x W' for a transposed adapter."""
    if node.domain not in ("", "ai.onnx") or node.op_type not in ("Gemm", "MatMul"):
        return False
    return node.input[1] == adapter.weight and bool(attribute(node, "transB", 0)) == adapter.transposed


def _write_product(op: GraphBuilder, node: NodeProto, adapter: Adapter, dtype: Any) -> None:
    """Append x W + scale (x A) B, with the bias of the node."""
    x, scale = node.input[0], adapter.scale * attribute(node, "alpha", 1.0)
    inner = op.MatMul(op.Transpose(x, perm=[1, 0]) if attribute(node, "transA", 0) else x, adapter.a)
    inner = inner if scale == 1.0 else op.Mul(inner, op.constant(np.asarray(scale, dtype)))
    base = copy_node(node, outputs=[op.unique("base")])
    op.nodes.append(base)
    op.Add(base.output[0], op.MatMul(inner, adapter.b), outputs=[node.output[0]])


def _write_sum(op: GraphBuilder, adapter: Adapter, shape: Sequence[int], dtype: Any) -> str:
    """Append W + scale A B, and return its name."""
    a, b = adapter.a, adapter.b
    if adapter.scale != 1.0:
        a = op.Mul(a, op.constant(np.asarray(adapter.scale, dtype)))
    if adapter.transposed:
        rank = len(adapter.matrix)
        perm = [*range(rank - 2), rank - 1, rank - 2]
        product = op.MatMul(op.Transpose(b, perm=perm), op.Transpose(a, perm=perm))
    else:
        product = op.MatMul(a, b)
    product = product if adapter.matrix == tuple(shape) else op.Reshape(product, list(shape))
    return op.Add(adapter.weight, product)
