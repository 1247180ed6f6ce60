"""A builder that infers types, and knows the values of constants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto

from ...graphs import GraphBuilder, TensorType
from ...graphs.external_tensors import tensor_array
from ...graphs.nodes import constant_value
from .inference import output_type

__all__ = ["LOW_PRECISION", "TypedBuilder"]

_FLOAT8 = [number for name, number in TensorProto.DataType.items() if name.startswith("FLOAT8")]
#: Floating-point types whose gradients are float32.
LOW_PRECISION = (TensorProto.FLOAT16, TensorProto.BFLOAT16, *_FLOAT8)


class TypedBuilder(GraphBuilder):
    """A :class:`~ortlearn.graphs.GraphBuilder` that infers simple types, and stores values of constants."""

    def __init__(self, opset: int = 18, *, constants: Iterable[TensorProto] = (), **options: Any) -> None:
        super().__init__(opset, **options)
        self.first_input = "name"  # of the graph to differentiate, for messages
        self._parent: TypedBuilder | None = None
        self._values: dict[str, np.ndarray | TensorProto] = {tensor.name: tensor for tensor in constants}

    @property
    def names(self) -> set[str]:
        """All names in use."""
        return self._names

    def child(self, types: Mapping[str, TensorType]) -> Any:
        """Return a builder for a subgraph, with unique names and constants in the main graph."""
        inner = type(self)(self.opset, dtype=self.float_dtype, prefix=self.prefix)
        inner.first_input = self.first_input
        inner._parent, inner.opsets, inner.initializers = self, self.opsets, self.initializers
        inner._names, inner._counters = self._names, self._counters
        inner._types, inner._values = {**self._types, **types}, dict(self._values)
        return inner

    def node(self, op_type: str, *inputs: Any, **options: Any) -> Any:
        """Append a node; see :meth:`ortlearn.graphs.GraphBuilder.node`."""
        result = super().node(op_type, *inputs, **options)
        if isinstance(result, str) and not options.get("domain"):
            known = output_type(op_type, [self.type(name) for name in self.nodes[-1].input if name], options)
            if known is not None:
                self._types[result] = known
        return result

    def constant(self, value: Any, dtype: Any = None) -> str:
        """Return the name of a constant; see :meth:`ortlearn.graphs.GraphBuilder.constant`."""
        if self._parent is not None:
            self._parent.float_dtype = self.float_dtype
            name = self._parent.constant(value, dtype)
            self._types[name], self._values[name] = self._parent._types[name], self._parent._values[name]
            return name
        known = len(self.initializers)
        name = super().constant(value, dtype)
        if len(self.initializers) > known:
            array = np.asarray(value)
            self._values[name] = array.astype(self.dtype(name))
        return name

    def value(self, name: str) -> np.ndarray | None:
        """Return the value of a constant tensor, or None for others."""
        known = self._values.get(name)
        if isinstance(known, TensorProto):
            known = self._values[name] = tensor_array(known)
        return known

    def with_type(self, name: str, like: str, shape: Sequence | None = None) -> str:
        """Set the type of a tensor to that of another, with a given shape if any, and return its name."""
        known = self.type(like)
        if known is not None:
            self._types[name] = TensorType(known.elem_type, known.shape if shape is None else tuple(shape))
        return name

    def gradient_type(self, name: str) -> TensorType | None:
        """Return the type of a tensor's gradient: its own if it is float32 or float64, else float32."""
        known = self.type(name)
        if known is None or known.elem_type in (TensorProto.FLOAT, TensorProto.DOUBLE):
            return known
        return TensorType(TensorProto.FLOAT, known.shape)

    def with_gradient_type(self, grad: str, name: str) -> str:
        """Set the type of a gradient of a tensor, and return its name."""
        known = self.gradient_type(name)
        if known is not None:
            self._types[grad] = known
        return grad

    def rank(self, name: str) -> int | None:
        """Return the rank of a tensor, or None if it is unknown."""
        shape = self.shape(name)
        return None if shape is None else len(shape)

    def elem_type(self, name: str) -> int | None:
        """Return the ONNX element type of a tensor, or None if it is unknown."""
        known = self.type(name)
        return None if known is None else known.elem_type

    def add_constants(self, tensors: Iterable[TensorProto]) -> None:
        """Add constant tensors of the graph."""
        self._values.update((tensor.name, tensor) for tensor in tensors)

    def add_constant_node(self, node: NodeProto) -> None:
        """Add the value of a Constant node of the graph."""
        value = constant_value(node)
        if value is not None:
            self._values[node.output[0]] = value
