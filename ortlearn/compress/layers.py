"""Layers of a network whose weights can be integers: products and convolutions with stored weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import NodeProto, TensorProto

from ..graphs.nodes import attribute
from ..graphs.view import GraphView
from ..onnx_files.weights import LEARNED

__all__ = ["PASSING", "Layer", "find_layers", "output_axis"]

#: Operators that a layer can be quantised with.
PRODUCTS = ("Conv", "Gemm", "MatMul")
#: Operators that integer kernels compute together with the layer before them.
ACTIVATIONS = ("Relu", "Clip")
#: Operators that copy or select values, so that their outputs have the scale of their inputs.
PASSING = ("Flatten", "Identity", "MaxPool", "Reshape", "Squeeze", "Transpose", "Unsqueeze")


@dataclass(frozen=True)
class Layer:
    """A product or a convolution, with its bias and the activation that follows."""

    name: str
    op_type: str
    source: str
    weight: str
    axis: int  # of the output channels in the weight
    output: str  # of the node
    product: str  # after the bias
    end: str  # after the activation
    bias: str = ""
    later: str = ""  # output of an activation after the rounding, which has the same scale

    @property
    def is_added(self) -> bool:
        """Whether a separate node adds the bias."""
        return self.product != self.output

    def by_channel(self, n_axes: int) -> list[int]:
        """Return the shape in which one number per output channel multiplies the weight."""
        return [-1 if axis == self.axis else 1 for axis in range(n_axes)]


def output_axis(node: NodeProto) -> int:
    """Return the axis of the output channels in the weight of a product or a convolution."""
    return 0 if node.op_type == "Conv" or attribute(node, "transB", 0) else 1


def find_layers(view: GraphView) -> tuple[dict[str, Layer], dict[str, str]]:
    """Return the layers by their weights, and the reasons of other operators with weights."""
    layers: dict[str, Layer] = {}
    left: dict[str, str] = {}
    for node in view.nodes:
        positions = LEARNED.get(("" if node.domain == "ai.onnx" else node.domain, node.op_type), {})
        stored = [name for i, name in enumerate(node.input) if i in positions and _is_stored(view, name)]
        if not stored:
            continue
        name = node.name or node.output[0]
        reason = _obstacle(view, node)
        if reason:
            left[name] = reason
        else:
            layers[node.input[1]] = _layer(view, node, name)
    return layers, left


def _obstacle(view: GraphView, node: NodeProto) -> str:
    """Return why a node cannot be quantised; empty if it can."""
    if node.op_type not in PRODUCTS or node.domain not in ("", "ai.onnx"):
        return f"the operator {node.op_type} has no integer form here"
    weight = view.initializers.get(node.input[1])
    if weight is None:
        return "its second operand is computed"
    if weight.data_type != TensorProto.FLOAT:
        return "its weight is not float32"
    if view.value(node.input[0]) is not None:
        return "its first operand is stored"
    if node.op_type != "Conv" and len(weight.dims) != 2:
        return f"its weight has {len(weight.dims)} axes"
    if len(view.readers[node.input[1]]) > 1 or node.input[1] in view.captured:
        return "other operators read its weight"
    if node.op_type == "Gemm" and (
        attribute(node, "transA", 0) or {attribute(node, "alpha", 1.0), attribute(node, "beta", 1.0)} != {1.0}
    ):
        return "the Gemm has transA, alpha or beta"
    if (
        len(node.input) > 2
        and node.input[2]
        and not _is_bias(view, node.input[2], weight.dims[output_axis(node)])
    ):
        return "its bias is computed, shared or not one number per channel"
    return ""


def _layer(view: GraphView, node: NodeProto, name: str) -> Layer:
    """Return the layer of a node."""
    weight = view.initializers[node.input[1]]
    output = product = node.output[0]
    bias = "".join(node.input[2:])
    following = _only_reader(view, output)
    if node.op_type == "MatMul" and following is not None and following.op_type == "Add":
        other = following.input[1 - list(following.input).index(output)]
        if _is_bias(view, other, weight.dims[1]):
            bias, product = other, following.output[0]
    end, following = product, _only_reader(view, product)
    if following is not None and following.op_type in ACTIVATIONS:
        end = following.output[0]
    source, own, axis = node.input[0], node.input[1], output_axis(node)
    return Layer(name, node.op_type, source, own, axis, output, product, end, bias)


def _only_reader(view: GraphView, name: str) -> NodeProto | None:
    """Return the only node that reads a tensor."""
    return view.readers[name][0] if view.read_once(name) and name not in view.captured else None


def _is_stored(view: GraphView, name: str) -> bool:
    tensor = view.initializers.get(name)
    return tensor is not None and tensor.data_type in (TensorProto.FLOAT, TensorProto.DOUBLE)


def _is_bias(view: GraphView, name: str, channels: int) -> bool:
    """Return whether a tensor is stored with one number per channel, along the last axis, for one node."""
    tensor = view.initializers.get(name)
    if tensor is None or tensor.data_type != TensorProto.FLOAT or len(view.readers[name]) > 1:
        return False
    return int(np.prod(tensor.dims)) == channels and (not tensor.dims or tensor.dims[-1] == channels)
