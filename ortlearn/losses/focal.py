"""Focal loss."""

from __future__ import annotations

from ..exceptions import PluginError
from .base import BaseLoss
from .expressions import margin, softplus

__all__ = ["FocalLoss"]


class FocalLoss(BaseLoss):
    """Focal loss: ``(1 - p) ** gamma * -log(p)``, with the probability p of the sample's class.

    Samples that are classified correctly weigh less than in the log loss (gamma = 0). Scores are those before
    softmax or sigmoid: several exclusive classes share a softmax, a single score and several labels
    have a sigmoid each, and are summed.

    Parameters
    ----------
    gamma : float, default=2.0
        How fast confident samples lose weight: 0, or 1 and more.

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

    def __init__(self, gamma=2.0):
        self.gamma = gamma

    def check(self):
        """Check the parameters before training."""
        self.check_number("gamma", closed=True)
        if 0 < self.gamma < 1:
            raise PluginError(
                f"FocalLoss: the gradient is not bounded for gamma={self.gamma!r}. Choose 0, or 1 and more."
            )

    def forward(self, op, expected, predicted):
        """Write the loss of each sample."""
        n_outputs, gamma = op.shape(predicted)[1], float(self.gamma)
        if op.dtype(expected).kind in "iu" and n_outputs != 1:
            rows = op.SoftmaxCrossEntropyLoss(predicted, expected, n_outputs=2, reduction="none")[0]
            wrong = op.Sub(1.0, op.Exp(op.Neg(rows)))
            return rows if gamma == 0 else op.Mul(op.Pow(wrong, gamma), rows)
        if op.dtype(expected).kind in "iu":
            expected = op.Reshape(op.Cast(expected, to=op.type(predicted).elem_type), [-1, 1])
        margins = margin(op, expected, predicted)
        # -log(p) = softplus(-m), and 1 - p = exp(-softplus(m)).
        weights = op.Exp(op.Mul(softplus(op, margins), -gamma))
        return self.sum_outputs(op, op.Mul(weights, softplus(op, op.Neg(margins))))
