"""Output types that onnx does not infer, according to the specifications of the operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from onnx import NodeProto, TensorProto, defs, helper, shape_inference

from ...graphs import TensorType, make_value_info, value_types
from ...graphs.nodes import attribute
from .dimensions import broadcast_shapes

__all__ = ["HIDDEN", "OTHER_TYPES"]


def _same(node: NodeProto, inputs: Sequence, opsets: Any) -> list:
    return [inputs[0]]


def _with_sum(node: NodeProto, inputs: Sequence, opsets: Any) -> list:
    return [inputs[0], None, None, inputs[0]]


def _float(node: NodeProto, inputs: Sequence, opsets: Any) -> list:
    return [TensorType(TensorProto.FLOAT, inputs[0].shape)]


def _pairs(node: NodeProto, inputs: Sequence, opsets: Any) -> list:
    sizes = [None if known is None or known.shape is None else known.shape[0] for known in inputs]
    return [TensorType(inputs[0].elem_type, tuple(sizes))]


def _product(node: NodeProto, inputs: Sequence, opsets: Any) -> list:
    ranks = [0 if known is None or known.shape is None else len(known.shape) for known in inputs]
    return [TensorType(inputs[0].elem_type, None if min(ranks) < 2 else (None,) * max(ranks))]


def _quantised(node: NodeProto, inputs: Sequence, opsets: Any) -> list:
    zero = inputs[2] if len(inputs) > 2 else None
    return [TensorType(TensorProto.UINT8 if zero is None else zero.elem_type, inputs[0].shape)]


def _broadcast(node: NodeProto, inputs: Sequence, opsets: Any) -> list:
    shapes = [None if known is None else known.shape for known in (inputs[0], inputs[3])]
    return [TensorType(inputs[0].elem_type, broadcast_shapes(shapes))]


def _columns(node: NodeProto, inputs: Sequence, opsets: Any) -> list:
    shape = inputs[0].shape
    return [TensorType(inputs[0].elem_type, None if shape is None else (*shape[:-1], attribute(node, "N")))]


def _float_product(node: NodeProto, inputs: Sequence, opsets: Any) -> list:
    return [TensorType(TensorProto.FLOAT, _product(node, inputs[:2], opsets)[0].shape)]


def _rows(node: NodeProto, inputs: Sequence, opsets: Any) -> list:
    """Return the types of an embedding: the axes of the indices, then the columns of the table."""
    table = inputs[2]
    if table is None or table.shape is None or inputs[0].shape is None:
        return []
    y = TensorType(table.elem_type, (*inputs[0].shape, table.shape[1]))
    return [y, TensorType(TensorProto.INT32, inputs[0].shape[:1]), y]


def _attention(node: NodeProto, inputs: Sequence, opsets: Any) -> list:
    """Return the type of attention: the axes of the queries, with the columns of the values."""
    x, sizes = inputs[0], attribute(node, "qkv_hidden_sizes")
    if x.shape is None or len(x.shape) != 3:
        return []
    columns = x.shape[2]
    if node.op_type == "Attention":
        weights = inputs[1].shape if inputs[1] is not None else None
        columns = weights[1] // 3 if weights is not None and isinstance(weights[1], int) else None
        columns = sizes[2] if sizes else columns
    elif node.op_type == "MultiHeadAttention" and len(inputs) > 2 and inputs[2] is not None:
        value = inputs[2].shape
        columns = value[2] if value is not None and len(value) == 3 else None
    elif node.op_type == "GroupQueryAttention" and isinstance(columns, int) and inputs[1] is None:
        heads, groups = attribute(node, "num_heads"), attribute(node, "kv_num_heads")
        columns = columns // (heads + 2 * groups) * heads
    return [TensorType(x.elem_type, (*x.shape[:2], columns))]


def _standard_attention(node: NodeProto, inputs: Sequence, opsets: Any) -> list:
    """Return the types of Attention of onnx: y, the present keys and values, and the scores."""
    q, k, v = (None if known is None else known.shape for known in inputs[:3])
    if q is None or k is None or v is None or any(inputs[4:5]):
        return []
    shapes = [(*q[:3], v[-1]), k, v, (*q[:3], k[-2])]
    if len(q) == 3:
        heads, groups = attribute(node, "q_num_heads", 0), max(1, attribute(node, "kv_num_heads", 1))
        sizes = [shape[2] // groups if isinstance(shape[2], int) else None for shape in (k, v)]
        present = [(shape[0], groups, shape[1], size) for shape, size in zip((k, v), sizes, strict=True)]
        shapes = [
            (*q[:2], None if sizes[1] is None else sizes[1] * heads),
            *present,
            (q[0], heads, q[1], k[1]),
        ]
    return [TensorType(inputs[0].elem_type, shape) for shape in shapes]


def _of_length(node: NodeProto, inputs: Sequence, opsets: Any) -> list:
    """Return the type of a tensor whose rank is the length of a computed shape."""
    length = inputs[1].shape if inputs[1] is not None else None
    if length is None or len(length) != 1 or not isinstance(length[0], int):
        return []
    return [TensorType(inputs[0].elem_type, (None,) * length[0])]


def _standard(op_type: str) -> Callable:
    """Return the output type of a fused operator, which is that of its first part, a standard operator."""

    def infer(node: NodeProto, inputs: Sequence, opsets: Any) -> list:
        known = {a.name for a in defs.get_schema(op_type).attributes.values()}
        plain = helper.make_node(op_type, node.input[:3], ["y"])
        plain.attribute.extend(a for a in node.attribute if a.name in known)
        read = {name: t for name, t in zip(node.input[:3], inputs, strict=False) if name and t is not None}
        infos = [make_value_info(name, known_type) for name, known_type in read.items()]
        graph = helper.make_graph([plain], "part", infos, [])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opsets[""])])
        return [value_types(shape_inference.infer_shapes(model), infer=False).get("y")]

    return infer


_MS, HIDDEN = "com.microsoft", "ortlearn.hidden"
#: Functions that return the types of the first outputs from a node, its input types and the opsets.
OTHER_TYPES: dict[tuple[str, str], Callable] = {
    ("", "Reshape"): _of_length,
    ("", "SimplifiedLayerNormalization"): _same,
    (HIDDEN, "Attention"): _standard_attention,
    (_MS, "Attention"): _attention,
    (_MS, "BiasAdd"): _same,
    (_MS, "BiasGelu"): _same,
    (_MS, "BiasSoftmax"): _same,
    (_MS, "CDist"): _pairs,
    (_MS, "DequantizeLinear"): _float,
    (_MS, "EmbedLayerNormalization"): _rows,
    (_MS, "FastGelu"): _same,
    (_MS, "FusedConv"): _standard("Conv"),
    (_MS, "FusedGemm"): _standard("Gemm"),
    (_MS, "FusedMatMul"): _product,
    (_MS, "Gelu"): _same,
    (_MS, "GemmFastGelu"): _standard("MatMul"),
    (_MS, "GroupNorm"): _same,
    (_MS, "Inverse"): _same,
    (_MS, "GroupQueryAttention"): _attention,
    (_MS, "MatMulIntegerToFloat"): _float_product,
    (_MS, "MatMulNBits"): _columns,
    (_MS, "MultiHeadAttention"): _attention,
    (_MS, "QLinearAdd"): _broadcast,
    (_MS, "QLinearLeakyRelu"): _same,
    (_MS, "QLinearMul"): _broadcast,
    (_MS, "QLinearSigmoid"): _same,
    (_MS, "QuantizeLinear"): _quantised,
    (_MS, "QuickGelu"): _same,
    (_MS, "RotaryEmbedding"): _same,
    (_MS, "SkipLayerNormalization"): _with_sum,
    (_MS, "SkipSimplifiedLayerNormalization"): _with_sum,
    (_MS, "TransposeMatMul"): _product,
    (_MS, "Trilu"): _same,
    ("ai.onnx.ml", "Imputer"): _same,
    ("ai.onnx.ml", "Normalizer"): _float,
    ("ai.onnx.ml", "Scaler"): _float,
}
