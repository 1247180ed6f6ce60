"""Regression losses for classification."""

from __future__ import annotations

from typing import Any

from ..graphs import GraphBuilder
from .base import BaseLoss

__all__ = ["SignedLabelLoss"]


class SignedLabelLoss(BaseLoss):
    """A regression loss, applied to labels -1 and 1; the losses of several classes, one-vs-rest, are summed.

    ``RidgeClassifier`` minimises the squared error of these labels, ``SGDClassifier`` also other losses
    (Rifkin, R., Yeo, G. and Poggio, T., "Regularized least-squares classification", Advances in Learning
    Theory, IOS Press, 2003, 131-154).
    """

    tasks = frozenset({"classification", "multilabel"})

    def __init__(self, loss: Any) -> None:
        self.loss = loss

    def check(self) -> None:
        """Check the parameters before training."""
        self.loss.check()

    @property
    def kinks(self) -> Any:  # type: ignore[override]
        """Whether the slope of the loss jumps somewhere."""
        return self.loss.kinks

    def forward(self, op: GraphBuilder, expected: str, predicted: str) -> str:
        """Write the loss of each sample."""
        return self.loss.forward(op, op.Sub(op.Mul(expected, 2.0), 1.0), predicted)
