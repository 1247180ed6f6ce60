"""Logistic loss: binary, multinomial and multi-label."""

from __future__ import annotations

from typing import Any

from .base import BaseLoss
from .expressions import softplus

__all__ = ["LogLoss"]


class LogLoss(BaseLoss):
    """Negative log-likelihood of the labels, from raw scores.

    Scores are taken before softmax or sigmoid, so that no probability is rounded to zero.

    - Several exclusive classes, int64 labels c of shape (n,), scores z of shape (n, k):
      ``logsumexp(z) - z[c]`` (multinomial).
    - One score per sample, labels y in {0, 1} (int64 of shape (n,) or floats of shape (n, 1)):
      ``max(z, 0) - y * z + log(1 + exp(-|z|))`` (binary).
    - Float labels of shape (n, k), each in [0, 1]: the binary loss of every output, summed
      (one-vs-rest, multi-label).

    Parameters
    ----------
    label_smoothing : float, default=0.0
        Share s of a label that is spread evenly over all k classes: the class of the sample has the weight
        ``1 - s + s / k``, every other class ``s / k`` (binary: ``y (1 - s) + s / 2``).

    References
    ----------
    Bishop, C. M., "Pattern Recognition and Machine Learning", Springer, 2006, sections 4.3.2
    and 4.3.4. Label smoothing: Szegedy, C. et al., "Rethinking the Inception architecture for computer
    vision", CVPR 2016, section 7.

    Examples
    --------
    >>> from ortlearn.losses import LogLoss
    >>> sorted(LogLoss().tasks)
    ['classification', 'multilabel']
    """

    tasks = frozenset({"classification", "multilabel"})
    integer_labels = True

    def __init__(self, label_smoothing: float = 0.0) -> None:
        self.label_smoothing = label_smoothing

    def check(self) -> None:
        """Check the parameters before training."""
        self.check_number("label_smoothing", high=1.0, closed=True)

    def forward(self, op: Any, expected: str, predicted: str) -> str:
        """Write the loss of each sample."""
        n_outputs = op.shape(predicted)[1]
        dtype = op.dtype(expected)
        if dtype.kind in "iu" and n_outputs != 1:
            return self._multinomial(op, expected, predicted)
        if dtype.kind in "iu":
            elem_type = op.type(predicted).elem_type
            expected = op.Reshape(op.Cast(expected, to=elem_type), [-1, 1])
        share = float(self.label_smoothing)
        if share:
            expected = op.Add(op.Mul(expected, 1.0 - share), share / 2)
        return self.sum_outputs(op, op.Sub(softplus(op, predicted), op.Mul(expected, predicted)))

    def _multinomial(self, op: Any, expected: str, predicted: str) -> Any:
        """Write the multinomial loss."""
        # The gradient reads the second output, the log-probabilities.
        losses = op.SoftmaxCrossEntropyLoss(predicted, expected, n_outputs=2, reduction="none")[0]
        share = float(self.label_smoothing)
        if not share:
            return losses
        own = op.GatherElements(predicted, op.Reshape(expected, [-1, 1]), axis=1)
        gap = op.Sub(
            self.sum_outputs(op, own), op.Mul(self.sum_outputs(op, predicted), 1 / op.shape(predicted)[1])
        )
        return op.Add(losses, op.Mul(gap, share))
