"""Channels of a network that can be removed, with the slices of weights that belong to one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, NodeProto, numpy_helper

from ..graphs.editing import with_fields
from ..graphs.nodes import attribute
from ..graphs.view import GraphView
from .layers import PRODUCTS, output_axis

__all__ = ["Channels", "Slice", "find_channels", "without_channels"]

#: Operators that treat each channel alone.
BY_CHANNEL = (
    *("AveragePool", "Clip", "Dropout", "Elu", "Gelu", "GlobalAveragePool", "GlobalMaxPool", "HardSigmoid"),
    *("HardSwish", "Identity", "LeakyRelu", "MaxPool", "Mish", "Relu", "Selu", "Sigmoid", "Softplus", "Tanh"),
)
#: Operators with a second operand that may have a number for each channel.
BINARY = ("Add", "Div", "Mul", "PRelu", "Sub")


@dataclass(frozen=True)
class Slice:
    """Part of a stored tensor that belongs to one channel: a number of indices of an axis."""

    name: str
    axis: int
    width: int = 1

    def kept(self, array: np.ndarray, channels: np.ndarray) -> np.ndarray:
        """Return a tensor with some channels."""
        rows = (channels[:, None] * self.width + np.arange(self.width)).ravel()
        return np.ascontiguousarray(np.take(array, rows, axis=self.axis))


@dataclass(frozen=True)
class Channels:
    """Outputs of a layer, with the slices that compute them, and all that shrink with them."""

    name: str
    count: int
    into: tuple[Slice, ...]
    slices: tuple[Slice, ...]
    shapes: tuple[str, ...] = ()  # of Reshape, which become (0, -1)


class _Obstacle(Exception):
    """Why channels cannot be removed."""


def find_channels(model: ModelProto) -> tuple[list[Channels], dict[str, str]]:
    """Return the channels of each layer in the order of the nodes, and why those of other layers stay."""
    view, found, left = GraphView(model), list[Channels](), dict[str, str]()
    for node in view.nodes:
        if node.op_type not in PRODUCTS or node.domain not in ("", "ai.onnx"):
            continue
        try:
            found.append(_Walk(view).channels(node))
        except _Obstacle as obstacle:
            left[node.name or node.output[0]] = str(obstacle)
    return found, left


def without_channels(model: ModelProto, groups: Sequence[Channels], kept: Sequence[np.ndarray]) -> ModelProto:
    """Return a model that has some channels of each layer, with smaller weights."""
    view, arrays = GraphView(model), dict[str, np.ndarray]()
    for group, channels in zip(groups, kept, strict=True):
        for part in group.slices:
            array = arrays.get(part.name, view.value(part.name))
            assert array is not None
            arrays[part.name] = part.kept(array, channels)
        arrays |= dict.fromkeys(group.shapes, np.array([0, -1]))
    stored = [
        numpy_helper.from_array(arrays[tensor.name], tensor.name) if tensor.name in arrays else tensor
        for tensor in model.graph.initializer
    ]
    return with_fields(model, initializer=stored, value_info=[])


class _Walk:
    """Follow the channels of one layer to the layers that read them."""

    def __init__(self, view: GraphView) -> None:
        self.view, self.slices, self.into = view, list[Slice](), list[Slice]()
        self.shapes: list[str] = []

    def channels(self, node: NodeProto) -> Channels:
        """Return the channels of a layer."""
        count = self._stored(node.input[1], output_axis(node))
        if attribute(node, "group", 1) != 1:
            raise _Obstacle("it has groups")
        if len(node.input) > 2 and node.input[2]:
            self._stored(node.input[2], -1, count)
        self.into += self.slices
        rank = len(self.view.initializers[node.input[1]].dims) if node.op_type == "Conv" else 2
        if node.op_type == "MatMul" and len(self.view.op.shape(node.output[0]) or ()) != 2:
            raise _Obstacle("its output is not known to be a matrix")
        pending = [(node.output[0], 1, rank)]
        while pending:
            name, width, rank = pending.pop()
            if self.view.keeps_name(name):
                raise _Obstacle("its outputs are those of the model")
            for reader in self.view.readers.get(name, ()):
                pending += self._read(reader, name, count, width, rank)
        return Channels(node.input[1], count, tuple(self.into), tuple(self.slices), tuple(self.shapes))

    def _read(self, node: NodeProto, name: str, count: int, width: int, rank: int) -> list:
        """Add what shrinks in a node that reads channels; return its output unless it ends there."""
        kind, index = node.op_type, list(node.input).index(name)
        if kind in PRODUCTS and index == 0 and not attribute(node, "transA", 0):
            if attribute(node, "group", 1) != 1:
                raise _Obstacle(f"{node.op_type} with groups reads its outputs")
            self._stored(node.input[1], 1 - output_axis(node), count * width, width)
            return []
        if kind == "BatchNormalization" and index == 0 and width == 1:
            for other in node.input[1:5]:
                self._stored(other, 0, count)
        elif kind == "Flatten" and attribute(node, "axis", 1) == 1 or kind == "Reshape" and index == 0:
            sizes = self.view.op.shape(name) or ()
            shape = self.view.op.shape(node.output[0]) or ()
            inner = sizes[2:] if len(sizes) == rank else (None,)
            wide = width * int(np.prod([size if isinstance(size, int) else 0 for size in inner]))
            if not wide or len(shape) != 2 or shape[1] != count * wide:
                raise _Obstacle(f"the result of {kind} does not have a known number of columns per channel")
            if kind == "Reshape" and self.view.initializers.get(node.input[1]) is None:
                raise _Obstacle("the shape of Reshape is computed")
            self.shapes += node.input[1:]
            width, rank = wide, 2
        elif kind in BINARY and len(node.input) == 2:
            other = self.view.value(node.input[1 - index])
            if other is None:
                raise _Obstacle(f"{kind} joins its outputs with others")
            if other.size > 1:
                axis = other.ndim - rank + 1  # of the channels
                if width > 1 or axis < 0 or other.size != count or other.shape[axis] != count:
                    raise _Obstacle(f"{kind} has other numbers than one per channel")
                self._stored(node.input[1 - index], axis, count)
                self.into += self.slices[-1:] if kind == "Add" else []
        elif kind not in BY_CHANNEL:
            raise _Obstacle(f"{kind} reads its outputs")
        return [(node.output[0], width, rank)]

    def _stored(self, name: str, axis: int, size: int | None = None, width: int = 1) -> int:
        """Add a slice of a stored tensor, and return the size of its axis."""
        tensor = self.view.initializers.get(name)
        if tensor is None or len(self.view.readers[name]) > 1 or name in self.view.captured:
            raise _Obstacle(f"the tensor {name!r} is computed, or other operators read it")
        axis = axis % len(tensor.dims) if tensor.dims else 0
        if not tensor.dims or (size is not None and tensor.dims[axis] != size):
            raise _Obstacle(f"the tensor {name!r} does not have one index per channel")
        self.slices.append(Slice(name, axis, width))
        return tensor.dims[axis]
