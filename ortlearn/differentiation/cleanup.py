"""Simplify gradient nodes: remove identities and common subexpressions, fold constants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from onnx import NodeProto, helper

from ..graphs import subgraphs
from ..graphs.editing import map_node
from .gradient_builder import GradientBuilder
from .types.dimensions import broadcast_shapes, same_shape

__all__ = ["simplify"]

_RANDOM = {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomUniform"}
_RANDOM |= {"RandomNormalLike", "RandomUniformLike"}
_RESHAPING = {"Unsqueeze", "Squeeze", "Reshape"}
_COMMUTATIVE = {"Add", "Mul", "Equal", "And", "Or", "Sum", "Max", "Min"}
_FOLDED: dict[str, Callable] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Neg": np.negative,
}
#: Largest size of constants that are folded.
_LARGEST_FOLDED = 1024


def simplify(
    op: GradientBuilder, before: Iterable[NodeProto], nodes: Sequence[NodeProto]
) -> tuple[list[NodeProto], dict[str, str]]:
    """Return simplified nodes, and the replacements of removed tensors."""
    pass_ = _Pass(op)
    for node in before:
        pass_.remember(node)
    kept = [node for node in nodes if pass_.visit(node)]
    return kept, pass_.alias


class _Pass:
    """One pass over the nodes."""

    def __init__(self, op: GradientBuilder):
        self.op = op
        self.alias: dict[str, str] = {}
        self.producers: dict[str, NodeProto] = {}
        self.seen: dict[tuple, Sequence[str]] = {}
        # Constants of the builder only: users may change other initializers later.
        self.constants = {tensor.name for tensor in op.initializers}

    def remember(self, node: NodeProto) -> None:
        for name in node.output:
            self.producers[name] = node
        key = _key(node)
        if key is not None and all(node.output):
            self.seen.setdefault(key, node.output)

    def visit(self, node: NodeProto) -> bool:
        """Simplify a node, and return whether it is kept."""
        if self.alias:
            map_node(node, self.alias)
        if not node.domain:
            simpler = self._simpler(node)
            if simpler is not None:
                self.alias[node.output[0]] = simpler
                return False
        key = _key(node)
        same = self.seen.get(key) if key is not None else None
        if same is not None and len(same) == len(node.output):
            self.alias.update(zip(node.output, same, strict=True))
            return False
        self.remember(node)
        return True

    def _simpler(self, node: NodeProto) -> str | None:
        """Return a tensor that replaces the output, or None if the node is needed."""
        if node.op_type in _FOLDED:
            folded = self._fold(node)
            if folded is not None:
                return folded
            self._skip_expand(node)
        handler = _HANDLERS.get(node.op_type)
        return None if handler is None else handler(self, node)

    def _producer(self, name: str, op_type: str) -> NodeProto | None:
        node = self.producers.get(name)
        return node if node is not None and node.op_type == op_type and not node.domain else None

    def _own_value(self, name: str) -> np.ndarray | None:
        return self.op.value(name) if name in self.constants else None

    def _fold(self, node: NodeProto) -> str | None:
        values = [self._own_value(name) for name in node.input]
        known = [value for value in values if value is not None and value.size <= _LARGEST_FOLDED]
        if len(known) < len(values):
            return None
        with np.errstate(all="ignore"):
            name = self.op.constant(np.asarray(_FOLDED[node.op_type](*known), dtype=known[0].dtype))
        self.constants.add(name)
        return name

    def _skip_expand(self, node: NodeProto) -> None:
        """Skip an Expand if the operator broadcasts its operands to the same shape."""
        shape = self.op.shape(node.output[0])
        for index, name in enumerate(node.input):
            source = self._expanded(name)
            if source is None:
                continue
            names = [*node.input[:index], source, *node.input[index + 1 :]]
            if same_shape(shape, broadcast_shapes([self.op.shape(other) for other in names])):
                node.input[index] = source

    def _expanded(self, name: str) -> str | None:
        """Return the operand of Expand that a tensor repeats; through reshapes, only a scalar."""
        reshaped = False
        node = self.producers.get(name)
        while node is not None and not node.domain and node.op_type in _RESHAPING:
            reshaped = True
            node = self.producers.get(node.input[0])
        if node is None or node.domain or node.op_type != "Expand":
            return None
        return node.input[0] if not reshaped or self.op.shape(node.input[0]) == () else None

    def identity(self, node: NodeProto) -> str:
        return node.input[0]

    def cast(self, node: NodeProto) -> str | None:
        same = self.op.elem_type(node.input[0]) == helper.get_node_attr_value(node, "to")
        return node.input[0] if same else None

    def expand(self, node: NodeProto) -> str | None:
        same = same_shape(self.op.shape(node.input[0]), self.op.shape(node.output[0]))
        return node.input[0] if same else None

    def reshape(self, node: NodeProto) -> str | None:
        if same_shape(self.op.shape(node.input[0]), self.op.shape(node.output[0])):
            return node.input[0]
        earlier = self._producer(node.input[0], "Reshape")
        template = self._own_value(node.input[1])
        if earlier is not None and template is not None and 0 not in template:
            node.input[0] = earlier.input[0]
        return None

    def transpose(self, node: NodeProto) -> str | None:
        earlier = self._producer(node.input[0], "Transpose")
        if earlier is None or not node.attribute or not earlier.attribute:
            return None
        first, second = earlier.attribute[0].ints, node.attribute[0].ints
        combined = [first[axis] for axis in second]
        if combined == sorted(combined):
            return earlier.input[0]
        node.input[0] = earlier.input[0]
        node.attribute[0].ints[:] = combined
        return None

    def neg(self, node: NodeProto) -> str | None:
        earlier = self._producer(node.input[0], "Neg")
        return None if earlier is None else earlier.input[0]

    def add(self, node: NodeProto) -> str | None:
        for index in (1, 0):
            negated = self._producer(node.input[index], "Neg")
            if negated is not None:
                node.input[:] = [node.input[1 - index], negated.input[0]]
                node.op_type = "Sub"
                break
        return None

    def sub(self, node: NodeProto) -> str | None:
        negated = self._producer(node.input[1], "Neg")
        if negated is not None:
            node.input[1] = negated.input[0]
            node.op_type = "Add"
        return None

    def mul(self, node: NodeProto) -> str | None:
        if self._is_one(node, 1):
            return node.input[0]
        return node.input[1] if self._is_one(node, 0) else None

    def div(self, node: NodeProto) -> str | None:
        return node.input[0] if self._is_one(node, 1) else None

    def _is_one(self, node: NodeProto, index: int) -> bool:
        value = self._own_value(node.input[index])
        if value is None or not (value == 1).all():
            return False
        return same_shape(self.op.shape(node.input[1 - index]), self.op.shape(node.output[0]))


_HANDLERS: dict[str, Callable[[_Pass, NodeProto], str | None]] = {
    "Add": _Pass.add,
    "Cast": _Pass.cast,
    "Div": _Pass.div,
    "Expand": _Pass.expand,
    "Identity": _Pass.identity,
    "Mul": _Pass.mul,
    "Neg": _Pass.neg,
    "Reshape": _Pass.reshape,
    "Sub": _Pass.sub,
    "Transpose": _Pass.transpose,
}


def _key(node: NodeProto) -> tuple | None:
    """Return a key that is equal for nodes with equal results, or None if they must not be merged."""
    if node.op_type in _RANDOM or any(True for _ in subgraphs(node)):
        return None
    attributes = sorted(attribute.SerializeToString() for attribute in node.attribute)
    inputs = sorted(node.input) if node.op_type in _COMMUTATIVE else node.input
    return node.op_type, node.domain, tuple(inputs), tuple(attributes)
