"""Attributes of an ai.onnx.ml operator, and what their lengths must be."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, numpy_helper

from ..graphs.nodes import attributes_of

__all__ = ["Attributes", "Invalid"]

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


class Invalid(Exception):
    """Invalid attribute."""


class Attributes:
    """Attributes of a node, and the number of columns of its first input, where it is known."""

    def __init__(self, node: NodeProto, columns: int | None):
        self.node = node
        self.columns = columns
        self._values = attributes_of(node)

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of an attribute."""
        return self._values.get(name, default)

    def array(self, *names: str) -> np.ndarray:
        """Return the first of some lists that is not empty, tensors among them; an empty one otherwise."""
        for name in names:
            value = self._values.get(name, [])
            value = numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)
            if value.size:
                return value.ravel()
        return np.empty(0)

    def floats(self, name: str) -> np.ndarray:
        """Return a list of numbers that may be given as a tensor."""
        return self.array(name, f"{name}_as_tensor")

    def expect(self, name: str, found: int, *allowed: int) -> None:
        """Raise an error where a list has another length than it may have."""
        if found not in allowed:
            wanted = " or ".join(map(str, dict.fromkeys(allowed)))
            raise Invalid(f"{name} has {found} values instead of {wanted}")

    def width(self, name: str, found: int, rows: int, *others: int) -> None:
        """Raise an error where a list does not hold so many rows of as many values as there are columns."""
        if rows < 1 or found < 1 or found % rows:
            raise Invalid(f"{name} has {found} values, which are no {rows} rows")
        if self.columns is not None and found // rows not in (self.columns, *others):
            raise Invalid(f"{name} has {found // rows} values in a row, and the input {self.columns} columns")

    def classes(self, integers: str = "classlabels_ints") -> int:
        """Return the number of classes."""
        found = self.array(integers, "classlabels_strings").size
        if not found:
            raise Invalid("it lists no classes")
        transform = self.get("post_transform", b"NONE")
        if transform.decode(errors="replace") not in TRANSFORMS:
            raise Invalid(f"post_transform is {transform!r}")
        return found
