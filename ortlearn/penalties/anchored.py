"""Penalties of the distance from the starting weights."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from ..graphs import GraphBuilder
from .base import BasePenalty

__all__ = ["AnchoredPenalty"]


class AnchoredPenalty(BasePenalty):
    """A penalty whose parts with ``toward="start"`` apply to the difference from the starting weights."""

    def __init__(self, penalty: Any, start: Any) -> None:
        super().__init__()
        self.penalty = penalty
        self.start = start

    def parts(self) -> list[BasePenalty]:
        """Return the penalties of all weights."""
        return self.penalty.parts()

    def parts_for(self, is_intercept: bool, name: str) -> list[BasePenalty]:
        """Return the penalties of a weight, in the order of their proximal steps."""
        parts = self.penalty.parts_for(is_intercept, name)
        return [_FromStart(part, self.start[name]) if part.toward == "start" else part for part in parts]

    def without_absolute_values(self) -> BasePenalty:
        """Return the penalty without its absolute values."""
        return AnchoredPenalty(self.penalty.without_absolute_values(), self.start)

    def with_inputs(self, prefix: str) -> tuple[BasePenalty, dict[str, float]]:
        """Return the penalty with names of scalars instead of its strengths, and their values by name."""
        named, values = self.penalty.with_inputs(prefix)
        return AnchoredPenalty(named, self.start), values

    def graph_key(self) -> Hashable:
        """Return a key of its graphs, which depends on the starting weights."""
        return (type(self), self.penalty.graph_key(), _digest(self.start))


def _digest(arrays: Mapping[str, np.ndarray]) -> str:
    """Return a checksum of arrays."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()


class _FromStart(BasePenalty):
    """A penalty of the difference between one weight and its starting value."""

    def __init__(self, penalty: Any, start: Any) -> None:
        super().__init__()
        self.penalty = penalty
        self.start = self.anchor = start

    @property
    def proximal_kind(self) -> Any:  # type: ignore[override]
        """Kind of the proximal step: None, since it cannot be combined with other steps."""
        return None

    @property
    def smooth(self) -> bool:
        """Whether the penalty is differentiable everywhere."""
        return self.penalty.smooth

    @property
    def absolute_factor(self) -> float:
        """Factor of the absolute values of the difference."""
        return self.penalty.absolute_factor

    @property
    def square_factor(self) -> float:
        """Factor of the squares of the difference."""
        return self.penalty.square_factor

    def is_proximal(self) -> bool:
        """Return whether the penalty has a proximal step."""
        return self.penalty.is_proximal()

    def forward(self, op: GraphBuilder, weight: str) -> str | None:
        """Write the penalty of the difference."""
        return self.penalty.forward(op, self._difference(op, weight))

    def smooth_part(self, op: GraphBuilder, weight: str) -> str | None:
        """Write the differentiable part of the penalty of the difference."""
        return self.penalty.smooth_part(op, self._difference(op, weight))

    def proximal_step(self, op: GraphBuilder, weight: str, rate: str) -> str:
        """Write the proximal step of the difference, which follows the update of a weight."""
        start = self.start.astype(op.float_dtype)
        return op.Add(self.penalty.proximal_step(op, self._difference(op, weight), rate), start)

    def _difference(self, op: GraphBuilder, weight: str) -> Any:
        """Write the difference, which has the type of the weight."""
        difference, known = op.Sub(weight, self.start.astype(op.float_dtype)), op.type(weight)
        if known is not None:
            op.set_type(difference, *known)
        return difference
