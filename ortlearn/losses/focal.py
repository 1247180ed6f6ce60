"""Focal loss."""

from __future__ import annotations

from typing import Any

from ..exceptions import PluginError
from .base import BaseLoss
from .expressions import margin, softplus

__all__ = ["FocalLoss"]


class FocalLoss(BaseLoss):
    """Focal loss: ``(1 - p) ** gamma * -log(p)``, with the probability p of the sample's class.

    Correctly classified samples have less weight than in the log loss, which is the case gamma = 0. Scores
    are raw: probabilities are the softmax of several exclusive classes, or the sigmoid of a single score. The
    losses of several labels, one sigmoid each, are summed.

    Parameters
    ----------
    gamma : float, default=2.0
        Exponent, 0 or at least 1; confident samples have less weight for larger values.

    References
    ----------
    Lin, T.-Y., Goyal, P., Girshick, R., He, K. and Dollar, P., "Focal loss for dense object
    detection", ICCV 2017.

    Examples
    --------
    >>> from ortlearn.losses import FocalLoss
    >>> FocalLoss(gamma=1.0)
    FocalLoss(gamma=1.0)
    """

    tasks = frozenset({"classification", "multilabel"})
    integer_labels = True

    def __init__(self, gamma: float = 2.0) -> None:
        self.gamma = gamma

    def check(self) -> None:
        """Check the parameters before training."""
        self.check_number("gamma", closed=True)
        if 0 < self.gamma < 1:
            raise PluginError(
                f"FocalLoss: the gradient is not bounded for gamma={self.gamma!r}. Choose 0, or 1 and more."
            )

    def forward(self, op: Any, expected: str, predicted: str) -> str:
        """Write the loss of each sample."""
        n_outputs, gamma = op.shape(predicted)[1], float(self.gamma)
        if op.dtype(expected).kind in "iu" and n_outputs != 1:
            losses = op.SoftmaxCrossEntropyLoss(predicted, expected, n_outputs=2, reduction="none")[0]
            wrong = op.Sub(1.0, op.Exp(op.Neg(losses)))
            return losses if gamma == 0 else op.Mul(op.Pow(wrong, gamma), losses)
        if op.dtype(expected).kind in "iu":
            expected = op.Reshape(op.Cast(expected, to=op.type(predicted).elem_type), [-1, 1])
        margins = margin(op, expected, predicted)
        # -log(p) = softplus(-m), and 1 - p = exp(-softplus(m)).
        weights = op.Exp(op.Mul(softplus(op, margins), -gamma))
        return self.sum_outputs(op, op.Mul(weights, softplus(op, op.Neg(margins))))
