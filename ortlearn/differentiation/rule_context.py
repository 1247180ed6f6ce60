"""Interface of gradient rules to the node that they differentiate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from onnx import NodeProto, TensorProto

from ..exceptions import GradientError, limit_address
from ..graphs.nodes import attribute, copy_node
from .gradient_builder import GradientBuilder
from .registry import normalize_domain
from .rounding import INTEGER_INPUTS, value_positions
from .types.typed_builder import LOW_PRECISION

__all__ = ["FLOAT_TYPES", "Gradients", "RuleNode", "is_differentiable"]

#: Result of a rule: a name or None for each input. A single name is the gradient of the first input.
Gradients: TypeAlias = str | Sequence[str | None] | None

#: Element types of gradients.
FLOAT_TYPES = (TensorProto.FLOAT, TensorProto.DOUBLE)


def is_differentiable(op: GradientBuilder, name: str) -> bool:
    """Return whether a tensor may have a gradient: it is floating-point, or its type is unknown."""
    known = op.type(name)
    return bool(name) and (known is None or known.elem_type in (*FLOAT_TYPES, *LOW_PRECISION))


class RuleNode:
    """A node to differentiate, as passed to its gradient rule.

    Parameters
    ----------
    proto : onnx.NodeProto
        The node.
    op : GradientBuilder
        Builder of the gradient graph.
    output_grads : mapping of str to str
        Gradients of the outputs that have one.
    needed : collection of str
        Tensors whose gradient is required.
    captured : sequence of str, default=()
        Those of them that subgraphs of the node capture.
    backpropagate : callable, default=None
        Differentiates a list of nodes; rules of control flow call it on their bodies.

    Attributes
    ----------
    op_type, domain, name : str
        Properties of the node.
    opset : int
        Version of the default operator set.
    n_inputs, n_outputs : int
        Numbers of inputs and outputs, including omitted ones.
    decomposition : list of onnx.NodeProto
        Simpler nodes that replace the node in the forward graph, set by its rule.
    """

    def __init__(
        self,
        proto: NodeProto,
        op: GradientBuilder,
        output_grads: Mapping[str, str],
        needed: Any,
        captured: Sequence[str] = (),
        backpropagate: Callable | None = None,
    ) -> None:
        self.proto = proto
        self.op_type, self.domain, self.name = proto.op_type, normalize_domain(proto.domain), proto.name
        self.opset = op.opset
        self.n_inputs, self.n_outputs = len(proto.input), len(proto.output)
        self.captured = tuple(captured)
        self.backpropagate = backpropagate
        self.outer_gradients: dict[str, str] = {}
        self.replacement: NodeProto | None = None
        self.decomposition: list[NodeProto] = []
        self._op = op
        self._output_grads = output_grads
        self._needed = needed
        self._casts: dict[str, str] = {}

    def I(self, index: int) -> str:  # noqa: E743
        """Return the name of an input, or "" if it is omitted.

        If its gradient has another type (float16, rounded integers), the input is cast to that type.
        """
        return self._in_gradient_type(self.input_name(index), index)

    def O(self, index: int) -> str:  # noqa: E743
        """Return the name of an output in the type of its gradient, or "" if it is omitted."""
        return self._in_gradient_type(self.output_name(index))

    def input_name(self, index: int) -> str:
        """Return the name of an input as it is in the graph."""
        return self.proto.input[index] if index < self.n_inputs else ""

    def output_name(self, index: int) -> str:
        """Return the name of an output as it is in the graph."""
        node = self.replacement or self.proto
        return node.output[index] if index < len(node.output) else ""

    def _in_gradient_type(self, name: str, index: int | None = None) -> str:
        """Return a tensor in the type of its gradient."""
        known = self._op.type(name) if name else None
        if known is None or known.elem_type in (*FLOAT_TYPES, TensorProto.STRING):
            return name
        if known.elem_type not in LOW_PRECISION and not self._is_rounded(name, index):
            return name
        if name not in self._casts:
            value = self._op.value(name)
            if value is not None:
                self._casts[name] = self._op.constant(value.astype(np.float32), np.float32)
            else:
                self._casts[name] = self._op.with_gradient_type(self._op.cast(name, np.float32), name)
        return self._casts[name]

    def _is_rounded(self, name: str, index: int | None) -> bool:
        """Return whether an integer tensor is a rounded number with a gradient, or combined with one."""
        if index is None or name in self._needed:
            return name in self._needed
        rounded = [n for n in (*self.proto.input, *self.proto.output) if n in self._needed]
        integers = [n for n in rounded if self._op.elem_type(n) not in (None, *FLOAT_TYPES, *LOW_PRECISION)]
        return bool(integers) and (self.op_type in INTEGER_INPUTS or index in value_positions(self.proto))

    def GO(self, index: int) -> str | None:
        """Return the name of the gradient of an output, or None if nothing depends on it."""
        return self._output_grads.get(self.output_name(index)) if self.output_name(index) else None

    def needs(self, index: int) -> bool:
        """Return whether the gradient of an input is required."""
        return self.input_name(index) in self._needed

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return the value of an attribute (text as str), or a default."""
        value = attribute(self.proto, name, default)
        if isinstance(value, bytes):
            return value.decode()
        return value if not hasattr(value, "extend") else list(value)

    def shape(self, name: str) -> tuple[Any, ...] | None:
        """Return the shape of a tensor, or None if it is unknown."""
        return self._op.shape(name)

    def dtype(self, name: str) -> np.dtype | None:
        """Return the numpy type of a tensor, or None if it is unknown."""
        return self._op.dtype(name)

    def rank(self, name: str) -> int:
        """Return the rank of a tensor.

        Raises
        ------
        GradientError
            If it is unknown.
        """
        shape = self._op.shape(name)
        if shape is None:
            raise self.unknown_shape([name])
        return len(shape)

    def constant(self, name: str) -> np.ndarray | None:
        """Return the value of a constant tensor, or None for others."""
        return self._op.value(name) if name else None

    def require_output(self, index: int) -> str:
        """Return an optional output, which is added to the node of the forward graph if missing."""
        if not self.output_name(index):
            node = copy_node(self.replacement or self.proto)
            node.output.extend([""] * (index + 1 - len(node.output)))
            node.output[index] = self._op.unique(f"{self.op_type}_output")
            self.replacement = node
        return self.O(index)

    def add_gradient(self, name: str, grad: str) -> None:
        """Set the gradient of a tensor that a subgraph of the node captures."""
        self.outer_gradients[name] = grad

    def unknown_shape(self, names: Sequence[str]) -> GradientError:
        """Return an error about tensors of unknown rank, which names remedies."""
        first = self._op.first_input
        return self.error(
            f"the rank of {', '.join(map(repr, names))} is unknown. Declare the shapes of the inputs of the "
            "model (dimensions may have names), or run the model to find them: "
            f"onnx_derivative(model, feeds={{{first!r}: array, ...}}), or "
            "ortlearn.onnx_files.open(model, feeds) for the model that an estimator trains",
            limit="unknown-rank",
        )

    def error(self, reason: str, limit: str = "") -> GradientError:
        """Return an error that names the node, and the anchor of a limit, if any."""
        where = f"operator {self.op_type!r} (node {self.name!r})"
        return GradientError(f"Cannot differentiate {where}: {reason}.{limit_address(limit)}")
