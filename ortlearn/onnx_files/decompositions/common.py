"""Read a fused node and write its replacement."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from ...graphs import GraphBuilder
from ...graphs.nodes import attributes_of

__all__ = ["Fused"]


class Fused:
    """A fused node, and the builder that its replacement is written with.

    The builder knows the types of the graph's tensors.
    """

    def __init__(self, node: NodeProto, op: GraphBuilder):
        self.node = node
        self.op = op
        self._attributes = attributes_of(node)
        self._scores: str | None = None

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return the value of an attribute."""
        return self._attributes.get(name, default)

    def text(self, name: str, default: str) -> str:
        """Return the value of a text attribute."""
        value = self._attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def classes(self, integers: str = "classlabels_ints") -> np.ndarray:
        """Return the classes of a classifier, int64 or text, by the attribute that lists integers."""
        numbers = self._attributes.get(integers)
        if numbers is not None and len(numbers):
            return np.asarray(numbers, dtype=np.int64)
        return np.asarray([c.decode() for c in self._attributes.get("classlabels_strings", [])], dtype=object)

    def float_input(self, index: int = 0) -> str:
        """Return an input as float32, which fused operators compute in."""
        name = self.node.input[index]
        known = self.op.type(name)
        if known is not None and known.elem_type == TensorProto.FLOAT:
            return name
        return self.op.Cast(name, to=TensorProto.FLOAT)

    def weight(self, stem: str, values: np.ndarray) -> str:
        """Add an initializer of its own (never shared with an equal one) and return its name."""
        name = stem if self.op.claim(stem) else self.op.unique(stem)
        self.op.initializers.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        self.op.set_type(name, helper.np_dtype_to_tensor_dtype(values.dtype), values.shape)
        return name

    def scores_name(self) -> str:
        """Return the name of the second output, made up where the graph does not use it."""
        if self._scores is None:
            has_name = len(self.node.output) > 1 and self.node.output[1]
            self._scores = self.node.output[1] if has_name else self.op.unique("scores")
        return self._scores

    def note_output(self, shape: tuple | None, elem_type: int = TensorProto.FLOAT) -> None:
        """Tell the builder the type of the first output, which onnx does not infer for fused operators."""
        self.op.set_type(self.node.output[0], elem_type, shape)

    def write(self, op_type: str, *inputs: Any, output: str | None = None, **attributes: Any) -> None:
        """Append the node that gives an output of the fused one, the first by default."""
        self.op.node(op_type, *inputs, outputs=[output or self.node.output[0]], **attributes)
