"""Reject graphs for which onnxruntime-training's C++ builder is wrong or terminates the process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto

from ..exceptions import GradientError
from ..graphs import TensorType, node_inputs, opset_versions, subgraphs, value_types
from ..graphs.nodes import attributes_of
from ..graphs.view import GraphView
from .ort_rewrites.gradient_path import gradient_nodes, is_float
from .rounding import reject_rounding

__all__ = ["check_supported"]


class _Known(NamedTuple):
    """Properties of a graph that the checks read."""

    types: Mapping[str, TensorType]
    reached: set[str]
    read: set[str]
    value: Callable[[str], np.ndarray | None]

    def shape(self, name: str) -> tuple | None:
        """Return the shape of a tensor, or None if its rank is unknown."""
        return self.types[name].shape if name in self.types else None

    def is_whole(self, name: str) -> bool:
        """Return whether all dimensions of a tensor are positive numbers."""
        shape = self.shape(name)
        return shape is not None and all(isinstance(dim, int) and dim > 0 for dim in shape)


def check_supported(model: ModelProto, outputs: Sequence[str], wrt: Sequence[str]) -> None:
    """Raise an error if the gradient of the C++ builder is known to be wrong or not to run."""
    for node in model.graph.node:
        if any(True for _ in subgraphs(node)):
            raise GradientError(
                f"onnxruntime-training does not differentiate graphs with {node.op_type} "
                f"(node {node.name!r}): it can terminate the process. Use gradient='rules'."
            )
    reject_rounding(model, outputs, wrt)
    types = value_types(model)
    nodes = gradient_nodes(model, outputs, wrt, types)
    known = _Known(
        types,
        set(wrt).union(*(node.output for node in nodes)),
        set(outputs).union(*(node_inputs(node) for node in nodes)),
        GraphView(model).value,
    )
    for node in nodes:
        _check_kernel(node, types, opset_versions(model).get("", 0))
        check = _CHECKS.get(node.op_type)
        reason = check and check(node, known, attributes_of(node))
        if reason:
            raise GradientError(
                f"onnxruntime-training gives a wrong gradient for {node.op_type} (node {node.name!r}): "
                f"{reason}."
            )


def _check_kernel(node: NodeProto, types: Mapping[str, TensorType], opset: int) -> None:
    kind = types[node.output[0]].elem_type if node.output[0] in types else None
    foreign = node.domain not in ("", "ai.onnx") and node.op_type in _BY_NAME
    if node.op_type in _NO_KERNEL or foreign:
        raise GradientError(
            f"onnxruntime-training has no correct gradient of {node.op_type} (node {node.name!r}) that runs. "
            "Use gradient='rules'."
        )
    of_many = node.op_type == "MatMul" and any(
        name in types and len(types[name].shape or ()) > 2 for name in node.input
    )
    old = node.op_type == "SoftmaxCrossEntropyLoss" and opset < 15  # its gradient is written with CastLike
    if kind == TensorProto.DOUBLE and (node.op_type in _SINGLE or of_many or old):
        raise GradientError(
            f"onnxruntime-training has no float64 form of the gradient of {node.op_type} (node {node.name!r})"
            ". Use gradient='rules'."
        )


def _differ(one: tuple | None, other: tuple | None) -> bool:
    """Return whether two shapes are known to differ; possibly different ones were expanded before."""
    if one is None or other is None:
        return False
    known = [(a, b) for a, b in zip(one, other, strict=False) if isinstance(a, int) and isinstance(b, int)]
    return len(one) != len(other) or any(a != b for a, b in known)


def _product(node: NodeProto, known: _Known, attributes: Mapping[str, Any]) -> str | None:
    # vectors of known rank were replaced by matrices; a left one of unknown rank does not run
    right = node.input[1]
    return f"the rank of {right!r} is unknown" if known.shape(right) is None else None


def _choice(node: NodeProto, known: _Known, attributes: Mapping[str, Any]) -> str | None:
    output = known.shape(node.output[0])
    for name in node.input:
        differs = is_float(known.types.get(name)) and name in known.reached
        if differs and _differ(known.shape(name), output):
            return f"its operand {name!r} is broadcast; expand it to the shape of the result"
    return None


def _power(node: NodeProto, known: _Known, attributes: Mapping[str, Any]) -> str | None:
    if node.input[1] in known.reached:
        return f"its exponent {node.input[1]!r} has a gradient"
    return _choice(node, known, attributes)


def _class_weights(node: NodeProto, known: _Known, attributes: Mapping[str, Any]) -> str | None:
    reached = len(node.input) > 2 and node.input[2] in known.reached
    return f"its class weights {node.input[2]!r} have a gradient" if reached else None


def _dropout(node: NodeProto, known: _Known, attributes: Mapping[str, Any]) -> str | None:
    computed = len(node.input) > 2 and known.value(node.input[2]) is None
    return f"its mode {node.input[2]!r} is not constant" if computed else None


def _split(node: NodeProto, known: _Known, attributes: Mapping[str, Any]) -> str | None:
    return None if known.read.issuperset(node.output) else "one of its outputs is not used"


def _scatter(node: NodeProto, known: _Known, attributes: Mapping[str, Any]) -> str | None:
    reduction = attributes.get("reduction", b"none")
    # values added to constants have the gradient of values that replace them
    right = reduction == b"none" or (reduction == b"add" and node.input[0] not in known.reached)
    return None if right else "it combines the values that it scatters"


def _convolution(node: NodeProto, known: _Known, attributes: Mapping[str, Any]) -> str | None:
    if attributes.get("auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID"):
        return "auto_pad is not supported; use pads instead"
    return "the rank of its input is unknown" if known.shape(node.input[0]) is None else None


def _average_pool(node: NodeProto, known: _Known, attributes: Mapping[str, Any]) -> str | None:
    # other poolings were replaced by convolutions
    return "its sizes are rounded up, chosen by auto_pad, or unknown"


def _normalization(node: NodeProto, known: _Known, attributes: Mapping[str, Any]) -> str | None:
    # others were replaced by simpler operators
    return "it is in training mode, of unknown rank, or its scale has more axes than it normalizes"


def _slice(node: NodeProto, known: _Known, attributes: Mapping[str, Any]) -> str | None:
    steps = known.value(node.input[4]) if len(node.input) > 4 and node.input[4] else np.ones(1)
    return None if steps is not None and (steps > 0).all() else "its steps are negative or not constant"


def _pad(node: NodeProto, known: _Known, attributes: Mapping[str, Any]) -> str | None:
    return "its axes, or its rank, are not known" if len(node.input) > 3 and node.input[3] else None


def _gather_nd(node: NodeProto, known: _Known, attributes: Mapping[str, Any]) -> str | None:
    if known.is_whole(node.input[0]):
        return None
    return "its kernel terminates the process for empty inputs, and its sizes are unknown"


_CHECKS: dict[str, Callable[[NodeProto, _Known, Mapping[str, Any]], str | None]] = {
    "AveragePool": _average_pool,
    "Conv": _convolution,
    "Dropout": _dropout,
    "GatherND": _gather_nd,
    "BatchNormalization": _normalization,
    "LayerNormalization": _normalization,
    "MatMul": _product,
    "Pad": _pad,
    "Pow": _power,
    "ScatterElements": _scatter,
    "ScatterND": _scatter,
    "Slice": _slice,
    "SoftmaxCrossEntropyLoss": _class_weights,
    "Split": _split,
    "Where": _choice,
}
#: Operators whose gradient has no CPU kernel, or one for few forms, or is specific to a model or to several
#: machines.
_NO_KERNEL = set(
    "ATen BiasGelu BitmaskDropout ConcatTraining ConvTranspose FakeQuant FastGelu FlattenAndUnpad "
    "GRU GRUTraining LSTM LSTMTraining MatMulBnb4 MegatronF MegatronG MultiHeadAttention PadAndUnflatten "
    "PythonOp QuickGelu "
    "Recv Resize ScaledSum Send ShrunkenGather SimplifiedLayerNormalization SoftmaxCrossEntropy "
    "SoftmaxCrossEntropyLossInternal SparseSoftmaxCrossEntropy".split()
)
#: Operators that the builder identifies by name, regardless of their domain.
_BY_NAME = set(
    "Abs Add AveragePool BatchNormalization Cast Clip Concat Conv Cos Div Dropout Erf Exp Expand Flatten "
    "Gather GatherElements GatherND Gemm GlobalAveragePool Identity LayerNormalization LeakyRelu Log "
    "LogSoftmax MatMul Max MaxPool Min Mul Neg Pad Pow Reciprocal ReduceL2 ReduceLogSumExp ReduceMean "
    "ReduceSum Relu Reshape ScatterElements ScatterND Sigmoid Sin Slice Softmax SoftmaxCrossEntropyLoss "
    "Split Sqrt Squeeze Sub Tanh Tile TopK Transpose Trilu Unsqueeze Where".split()
)
#: Operators whose gradient has a float32 kernel only.
_SINGLE = {"Concat", "Relu", "Sin"}
