"""Bases of intervals: what the outputs of trained members say about quantiles and scale, as graphs.

A base writes two tensors: values of shape (n, levels), which calibration shifts, and the scale of shape
(n, 1) that it multiplies shifts by, or an empty name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import numpy_helper

from ..graphs import GraphBuilder
from ..losses.quantile import quantiles_of_scores

__all__ = ["Base", "Centre", "Increments", "Separate", "named"]


def named(op: GraphBuilder, name: str, value: np.ndarray, dtype=None) -> str:
    """Add a constant with a name of its own."""
    op.claim(name)
    array = np.asarray(value, dtype=dtype or op.float_dtype)
    op.initializers.append(numpy_helper.from_array(array, name))
    return name


@dataclass(frozen=True)
class Base:
    """A base of intervals."""

    @property
    def keeps_own(self) -> bool:
        """Whether the output of the first member is a prediction of the model."""
        return False

    def write(self, op: GraphBuilder, outputs: Sequence[str], levels: np.ndarray) -> tuple[str, str]:
        """Write values and scale from the outputs of the members, of shape (n, k) each."""
        raise NotImplementedError


@dataclass(frozen=True)
class Increments(Base):
    """Quantiles of one model with several outputs, for labels ``(y - centre) / spread``."""

    centre: float
    spread: float
    is_shift: bool = False  # whether they are added to the prediction of the first member

    @property
    def keeps_own(self) -> bool:
        return self.is_shift

    def write(self, op: GraphBuilder, outputs: Sequence[str], levels: np.ndarray) -> tuple[str, str]:
        found = quantiles_of_scores(op, outputs[-1], levels)
        found = op.Mul(found, named(op, "quantiles.spread", np.array(self.spread)))
        found = op.Add(found, named(op, "quantiles.centre", np.array(self.centre)))
        return (op.Add(found, outputs[0]) if self.is_shift else found), ""


@dataclass(frozen=True)
class Separate(Base):
    """Quantiles of one member per level, put in order."""

    def write(self, op: GraphBuilder, outputs: Sequence[str], levels: np.ndarray) -> tuple[str, str]:
        found = op.Concat(*outputs, axis=1) if len(outputs) > 1 else outputs[0]
        return op.TopK(found, [len(levels)], axis=1, largest=0, sorted=1, n_outputs=2)[0], ""


@dataclass(frozen=True)
class Centre(Base):
    """The prediction of the first member for all levels; the scale is that of a second one, if any.

    The second member predicts the logarithm of the absolute residual.
    """

    smallest: float = 0.0  # added to the scale

    @property
    def keeps_own(self) -> bool:
        return True

    def write(self, op: GraphBuilder, outputs: Sequence[str], levels: np.ndarray) -> tuple[str, str]:
        values = op.Add(outputs[0], np.zeros((1, len(levels)), dtype=op.float_dtype))
        if len(outputs) == 1:
            return values, ""
        return values, op.Add(op.Exp(outputs[1]), named(op, "scale.smallest", np.array(self.smallest)))
