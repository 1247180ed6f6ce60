"""Cross-entropy of predicted probabilities."""

from __future__ import annotations

from ..graphs import GraphBuilder
from .base import BaseLoss
from .interval import Interval

__all__ = ["CrossEntropyLoss"]

#: Lowest probability; smaller ones are raised to it, since float32 has about seven digits.
LOWEST = 1e-6


class CrossEntropyLoss(BaseLoss):
    """Cross-entropy of predicted probabilities: ``-y log(f) - (1 - y) log(1 - f)``, summed over outputs.

    For regressors that predict probabilities or shares f, with labels y in [0, 1]. Both f and 1 - f
    are clipped to [1e-6, 1]. For classifiers use :class:`LogLoss`, which takes raw scores.

    References
    ----------
    Bishop, C. M., "Pattern Recognition and Machine Learning", Springer, 2006, equation 4.90.

    Examples
    --------
    >>> from ortlearn.losses import CrossEntropyLoss
    >>> print(CrossEntropyLoss().domain)
    [0, 1]
    """

    @property
    def domain(self) -> Interval:
        """Interval of valid labels."""
        return Interval(0.0, 1.0, low_inclusive=True, high_inclusive=True)

    def forward(self, op: GraphBuilder, expected: str, predicted: str) -> str:
        """Write the loss of each sample."""
        own, other = (op.Log(op.Clip(share, LOWEST, 1.0)) for share in (predicted, op.Sub(1.0, predicted)))
        # y log(f) + (1 - y) log(1 - f)
        likelihood = op.Add(other, op.Mul(expected, op.Sub(own, other)))
        return self.sum_outputs(op, op.Neg(likelihood))
