"""State of a graph that is being rewritten for several candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, helper, numpy_helper

from ...differentiation.rule_set import normalize_domain
from ...differentiation.types.inference import infer_body
from ...exceptions import OrtlearnError
from ...graphs import GraphBuilder, TensorType, graph_names, node_inputs, value_types
from ...graphs.nodes import constant_value

__all__ = ["BatchScope", "NotBatchable", "Rule"]


class NotBatchable(OrtlearnError, ValueError):
    """A graph that has no batched form; the message names the operator."""


#: Writes the batched form of a node with the same output names; returns the outputs that are not batched.
Rule = Callable[["BatchScope", NodeProto], Iterable[str] | None]


class BatchScope:
    """A graph, or the body of a Loop, that is being rewritten for several candidates.

    A tensor is either shared by all candidates and unchanged, or in ``batched``: it keeps its name and gets a
    leading axis of length ``size``, which may be a symbol. Ranks and shapes are those of one candidate.
    """

    def __init__(
        self,
        graph: GraphProto,
        types: Mapping[str, TensorType],
        rules: Mapping[tuple[str, str], Rule],
        constants: Mapping[str, np.ndarray],
        size: int | str,
        op: GraphBuilder,
        outer: BatchScope | None = None,
    ):
        self.graph, self.types, self.rules = graph, dict(types), rules
        self.constants, self.size, self.op, self.outer = constants, size, op, outer
        self.batched: set[str] = set()
        self._own = {value.name for value in (*graph.input, *graph.initializer)}
        self._own |= {name for node in graph.node for name in node.output}
        self._values = {tensor.name: tensor for tensor in graph.initializer}
        self._made: dict[tuple[str, int], str] = {}
        self._length = ""
        for tensor in graph.initializer:
            if tensor.name in constants:
                self.batched.add(tensor.name)
                op.initializers.append(numpy_helper.from_array(constants[tensor.name], tensor.name))
            else:
                op.initializers.append(tensor)

    def child(self, body: GraphProto, inputs: Mapping[str, TensorType | None]) -> BatchScope:
        """Return the scope of the body of a Loop with inputs of these types."""
        typed = infer_body(body, inputs, self.type, self.op.opsets)
        types = value_types(helper.make_model(typed), infer=False)
        op = GraphBuilder(self.op.opset, existing_names=graph_names(body), prefix=f"{self.op.prefix}inner_")
        return BatchScope(body, types, self.rules, self.constants, self.size, op, self)

    @property
    def axis(self) -> int:
        """First length in the shape of a Reshape of a batched tensor; 0 means that of the tensor."""
        return self.size if isinstance(self.size, int) else 0

    @property
    def length(self) -> Any:
        """Length of the leading axis, as a list or as a tensor that is computed."""
        if isinstance(self.size, int):
            return [self.size]
        if self.outer is not None:
            return self.outer.length
        if not self._length:
            inputs = (value.name for value in self.graph.input)
            self._length = self.op.Slice(self.op.Shape(next(filter(self.is_batched, inputs))), [0], [1], [0])
        return self._length

    def lengths(self, *others: int) -> Any:
        """Return a shape that begins with the length of the leading axis."""
        first = self.length
        return [*first, *others] if isinstance(first, list) else self.op.Concat(first, list(others), axis=0)

    def owner(self, name: str) -> BatchScope:
        """Return the scope of the graph that defines a tensor."""
        return self if name in self._own or self.outer is None else self.outer.owner(name)

    def is_batched(self, name: str) -> bool:
        """Return whether a tensor is batched."""
        return name in self.owner(name).batched

    def type(self, name: str) -> TensorType | None:
        """Return the type of a tensor of one candidate, if known."""
        return self.owner(name).types.get(name)

    def shape(self, name: str) -> tuple[int | str | None, ...]:
        """Return the shape of a tensor of one candidate, whose rank must be known."""
        known = self.type(name)
        if known is None or known.shape is None:
            raise NotBatchable(f"The rank of {name!r} is not known.")
        return known.shape

    def rank(self, name: str) -> int:
        """Return the rank of a tensor of one candidate."""
        return len(self.shape(name))

    def size_of(self, name: str, axis: int) -> int:
        """Return the length of an axis of a tensor of one candidate, which must be known."""
        length = self.shape(name)[axis]
        if not isinstance(length, int):
            raise NotBatchable(f"The length of axis {axis} of {name!r} is not known.")
        return length

    def value(self, name: str) -> np.ndarray:
        """Return the value of a constant that candidates share."""
        scope = self.owner(name)
        found = None
        if name in scope._values and name not in scope.batched:
            found = numpy_helper.to_array(scope._values[name])
        for node in scope.graph.node if found is None else ():
            if name in node.output:
                found = constant_value(node)
        if found is None:
            raise NotBatchable(f"{name!r} is not a constant, or differs between candidates.")
        return found

    def aligned(self, name: str, rank: int) -> str:
        """Return a tensor with axes of length one inserted up to a rank, if it is batched.

        Nodes are added to the graph that defines the tensor, so that a Loop does not repeat them.
        """
        scope, missing = self.owner(name), rank - self.rank(name)
        if missing <= 0 or name not in scope.batched:
            return name
        if (name, rank) not in scope._made:
            scope._made[name, rank] = scope.op.Unsqueeze(name, list(range(1, 1 + missing)))
        return scope._made[name, rank]

    def expanded(self, name: str) -> str:
        """Return a batched tensor; shared ones are copied for each candidate."""
        scope = self.owner(name)
        if name in scope.batched:
            return name
        if (name, -1) not in scope._made:
            sizes = scope.lengths(*[1] * self.rank(name))
            scope._made[name, -1] = scope.op.Expand(scope.op.Unsqueeze(name, [0]), sizes)
        return scope._made[name, -1]

    def rewrite(self) -> None:
        """Write all nodes of the graph."""
        for node in self.graph.node:
            if not any(map(self.is_batched, node_inputs(node))):
                self.op.nodes.append(node)
                continue
            rule = self.rules.get((normalize_domain(node.domain), node.op_type))
            if rule is None:
                raise NotBatchable(f"{node.domain}{node.op_type} has no batching rule.")
            shared = set(rule(self, node) or ())
            self.batched.update(name for name in node.output if name and name not in shared)
