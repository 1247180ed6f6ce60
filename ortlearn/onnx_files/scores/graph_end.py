"""A graph read from its outputs backwards, and the nodes appended to it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto

from ...graphs import TensorType, append_nodes, make_value_info
from ...graphs.editing import renamed_node, with_fields
from ...graphs.nodes import attribute, copy_node, needed_nodes
from ...graphs.view import GraphView
from ..simplify import is_idle

__all__ = ["APPENDED", "FLOATS", "GraphEnd"]

FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE)
#: How the names of appended nodes begin.
APPENDED = "head_"


class GraphEnd(GraphView):
    """A graph that is read from its outputs backwards, with the nodes that are appended to it."""

    def __init__(self, model: ModelProto, types: Mapping[str, TensorType]):
        outputs = [types.get(value.name) for value in model.graph.output]
        double = any(known is not None and known.elem_type == TensorProto.DOUBLE for known in outputs)
        super().__init__(model, types, dtype=np.float64 if double else np.float32, prefix=APPENDED)
        self._replaced: dict[str, str] = {}
        self._infos: dict[str, tuple[int, tuple[Any, ...]]] = {}

    # -- questions ---------------------------------------------------------------------------------

    def width(self, name: str) -> int | None:
        """Return the number of columns of a matrix, where it is known."""
        shape = self.op.shape(name)
        return shape[1] if shape is not None and len(shape) == 2 and isinstance(shape[1], int) else None

    def origin(self, name: str, passing: Collection[str] = ()) -> str:
        """Return the tensor that a tensor equals, before the nodes that do nothing and some others."""
        node = self.producers.get(name)
        while node is not None and (node.op_type in passing or is_idle(self, node)):
            name = node.input[0]
            node = self.producers.get(name)
        return name

    def before(self, name: str, op_types: Sequence[str]) -> str:
        """Return the tensor before nodes of some types, followed along their first input.

        Of Where it is the last input: what is taken where the condition does not hold.
        """
        name = self.origin(name)
        node = self.producers.get(name)
        while node is not None and node.op_type in op_types:
            name = self.origin(node.input[-1 if node.op_type == "Where" else 0])
            node = self.producers.get(name)
        return name

    def opposite(self, name: str) -> str:
        """Return minus a tensor: what it is the negative of, or a new node."""
        node = self.producer(name)
        if node is not None and node.op_type == "Neg":
            return self.origin(node.input[0])
        if node is not None and node.op_type == "Mul":
            for factor, other in (node.input, reversed(node.input)):
                value = self.constant(factor)
                if value is not None and value.size == 1 and value.ravel()[0] == -1:
                    return self.origin(other)
        return self.unary("Neg", name)

    def inputs(self, node: NodeProto) -> list[str]:
        """Return the inputs of a node, before the nodes that do nothing."""
        return [self.origin(name) for name in node.input]

    def constant(self, name: str) -> np.ndarray | None:
        """Return the value of a constant, None for anything else."""
        return self.value(self.origin(name))

    def axes(self, node: NodeProto) -> list[int] | None:
        """Return the axes that a node reduces: an attribute or an input, by opset."""
        values = attribute(node, "axes")
        if values is None and len(node.input) > 1:
            values = self.constant(node.input[1])
        return None if values is None else np.ravel(values).tolist()

    def nodes_before(self, name: str) -> Iterator[NodeProto]:
        """Yield the nodes that a tensor depends on, the last ones first."""
        return reversed(needed_nodes(self.nodes, [name]))

    def parts_of(self, name: str) -> list[str] | None:
        """Return the columns that a matrix is a concatenation of, None where it is another matrix."""
        node = self.producer(name)
        if node is None or node.op_type != "Concat" or attribute(node, "axis", 0) not in (1, -1):
            return None
        columns = self.inputs(node)
        return columns if all(self.width(column) in (1, None) for column in columns) else None

    def column_of(self, node: NodeProto) -> tuple[str, int] | None:
        """Return the matrix and the number of the column that Slice, Gather or ArrayFeatureExtractor takes.

        None where the node takes anything else.
        """
        if node.op_type == "Slice":
            values = [self.constant(name) for name in node.input[1:]]
            if len(values) < 3 or any(value is None or value.size != 1 for value in values):
                return None
            start, stop, axis = (int(np.ravel(value)[0]) for value in values[:3] if value is not None)
            return (self.origin(node.input[0]), start) if axis in (1, -1) and stop == start + 1 else None
        if node.op_type == "ArrayFeatureExtractor" or (
            node.op_type == "Gather" and attribute(node, "axis", 0) in (1, -1)
        ):
            index = self.constant(node.input[1])
            if index is None or index.size != 1:
                return None
            place, width = int(np.ravel(index)[0]), self.width(node.input[0])
            if place < 0 and width is None:
                return None
            return self.origin(node.input[0]), place + (width or 0) if place < 0 else place
        return None

    # -- additions ---------------------------------------------------------------------------------

    def column(self, name: str, index: int) -> str:
        """Append a slice: one column of a matrix, of shape (n, 1)."""
        return self.columns(name, index, 1)

    def columns(self, name: str, start: int, count: int) -> str:
        """Append a slice: some columns of a matrix."""
        return self._typed(self.op.Slice(name, [start], [start + count], [1]), name, count)

    def concat(self, names: Sequence[str]) -> str:
        """Append the matrix of some columns or matrices side by side."""
        if len(names) == 1:
            return names[0]
        widths = [self.width(name) for name in names]
        total = None if None in widths else sum(width or 0 for width in widths)
        return self._typed(self.op.Concat(*names, axis=1), names[0], total)

    def unary(self, op_type: str, name: str) -> str:
        """Append an operator of one input that keeps type and shape."""
        return self._typed(self.op.node(op_type, name), name, self.width(name))

    def minus(self, first: str, second: str) -> str:
        """Append the difference of two tensors of one shape."""
        return self._typed(self.op.Sub(first, second), first, self.width(first))

    def as_matrix(self, name: str, columns: int) -> str:
        """Append a reshape to (n, columns)."""
        return self._typed(self.op.Reshape(name, [-1, columns]), name, columns)

    def append_copy(self, node: NodeProto, renamed: Mapping[str, str]) -> dict[str, str]:
        """Append a node once more, on other inputs; return its new outputs by those of the old one."""
        outputs = {name: self.op.unique("again") for name in node.output if name}
        inputs = [renamed.get(name, name) for name in node.input]
        copied = copy_node(node, inputs, [outputs.get(name, "") for name in node.output])
        copied.name = self.op.unique("node_again")
        self.op.nodes.append(copied)
        for old, new in outputs.items():
            self.producers[new] = copied
            self.copy_type(new, old)
        return outputs

    def floor(self, name: str, lowest: float) -> str:
        """Append ``max(x, lowest)``."""
        return self._typed(self.op.Max(name, self.scalar(lowest, name)), name, self.width(name))

    def scalar(self, value: float, like: str) -> str:
        """Return a constant of the type of a tensor."""
        return self.op.constant(np.asarray(value, dtype=self.op.dtype(like) or self.op.float_dtype))

    def _typed(self, new: str, like: str, columns: int | None) -> str:
        known = self.op.type(like)
        if known is not None:
            rows = known.shape[0] if known.shape else None
            self.op.set_type(new, known.elem_type, (rows, columns))
        return new

    def replace_output(self, name: str, elem_type: int | None = None, columns: int | None = None) -> str:
        """Free the name of an output, for a new node to give it; return the old tensor's new name.

        The new output has the type of the old one by default, and is a vector.
        """
        known = self.op.type(name)
        old = self.op.unique("replaced")
        self._replaced[name] = old
        kind = elem_type or (known.elem_type if known is not None else TensorProto.INT64)
        shape: tuple[Any, ...] = ("N",) if columns is None else ("N", columns)
        self._infos[name] = (kind, shape)
        self.copy_type(old, name)
        if name in self.producers:
            self.producers[old] = self.producers[name]
        return old

    def result(self) -> ModelProto:
        """Return the graph with what was appended; the graph itself if nothing was."""
        if not self.op.nodes and not self._infos:
            return self.model
        outputs = [
            make_value_info(value.name, TensorType(*self._infos[value.name]))
            if value.name in self._infos
            else value
            for value in self.graph.output
        ]
        nodes = [renamed_node(node, self._replaced) for node in self.nodes]
        return append_nodes(with_fields(self.model, node=nodes, output=outputs, value_info=()), self.op)
