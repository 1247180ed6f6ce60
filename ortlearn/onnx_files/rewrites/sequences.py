"""Replace sequences and optionals of known elements by their elements."""

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto, NodeProto

from ...graphs import prune
from ...graphs.nodes import attribute
from ...graphs.view import GraphView

#: Operators that read elements of a sequence or an optional.
READERS = ("ConcatFromSequence", "OptionalGetElement", "SequenceAt")


def without_sequences(model: ModelProto) -> ModelProto:
    """Return a model without sequences and optionals, except those that loops, branches or inputs make."""
    if not any(node.op_type in READERS for node in model.graph.node):
        return model
    graph = _Sequences(model)
    changed = graph.rewrite(graph.without)
    return prune(graph.to_model()) if changed else model


class _Sequences(GraphView):
    """A graph whose sequences are followed to their elements."""

    def without(self, node: NodeProto) -> bool | str:
        """Write the elements that a node reads instead of the node."""
        if node.op_type not in READERS or node.domain not in ("", "ai.onnx"):
            return False
        if node.op_type == "OptionalGetElement":
            made = self.producer(node.input[0], "Optional")
            of_tensor = self.op.type(node.input[0]) is not None
            return made.input[0] if made is not None and made.input else node.input[0] if of_tensor else False
        elements = self.elements(node.input[0])
        if not elements:
            return False
        if node.op_type == "SequenceAt":
            position = self.position(node.input[1], len(elements))
            return False if position is None else elements[position]
        axis = attribute(node, "axis")
        if attribute(node, "new_axis", 0):
            elements = [self.op.Unsqueeze(name, [axis]) for name in elements]
        self.op.Concat(*elements, axis=axis, outputs=[node.output[0]])
        return True

    def elements(self, name: str) -> list[str] | None:
        """Return the elements of a sequence; None if they are unknown."""
        name = self.origin(name, ("Identity", "Optional", "OptionalGetElement"))
        made = self.producers.get(name)
        if made is None or made.op_type not in ("SequenceConstruct", "SequenceInsert", "SplitToSequence"):
            return [] if made is not None and made.op_type == "SequenceEmpty" else None
        if made.op_type == "SequenceConstruct":
            return list(made.input)
        if made.op_type == "SplitToSequence":
            return list(self.parts(made)) or None
        rest = self.elements(made.input[0])
        if rest is None or len(made.input) < 3:
            return None if rest is None else [*rest, made.input[1]]
        position = self.position(made.input[2], len(rest) + 1)
        return None if position is None else [*rest[:position], made.input[1], *rest[position:]]

    def position(self, name: str, length: int) -> int | None:
        """Return a constant position in a sequence, None if it is unknown or outside."""
        value = self.value(name)
        index = int(value.item()) if value is not None and value.size == 1 else length
        return index % length if -length <= index < length else None

    def parts(self, node: NodeProto) -> Iterator[str]:
        """Yield the parts of a split of known sizes."""
        axis, shape = attribute(node, "axis", 0), self.op.shape(node.input[0])
        known = shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None
        given = len(node.input) > 1 and bool(node.input[1])
        sizes = self.value(node.input[1]) if given else np.array(1)
        if sizes is None or (sizes.ndim == 0 and not isinstance(known, int)):
            return
        if sizes.ndim == 0 and isinstance(known, int):
            size = max(1, int(sizes))
            sizes = np.array([min(size, known - start) for start in range(0, known, size)])
        names = [self.op.unique("part") for _ in sizes]
        self.op.node("Split", node.input[0], sizes.tolist(), axis=axis, outputs=names)
        drops = not given and not attribute(node, "keepdims", 1)
        yield from (self.op.Squeeze(name, [axis]) for name in names) if drops else names
