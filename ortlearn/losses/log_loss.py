"""Logistic loss: binary, multinomial, and one per output."""

from __future__ import annotations

from .base import BaseLoss

__all__ = ["LogLoss"]


class LogLoss(BaseLoss):
    """Negative log-likelihood of the labels, from raw scores.

    The scores are those before softmax or sigmoid, so that no probability is ever rounded to zero.

    - Several exclusive classes, int64 labels c of shape (n,), scores z of shape (n, k):
      ``logsumexp(z) - z[c]`` (multinomial).
    - One score per row, labels y in {0, 1} (int64 of shape (n,) or floats of shape (n, 1)):
      ``max(z, 0) - y * z + log(1 + exp(-|z|))`` (binary).
    - Float labels of shape (n, k), each in [0, 1]: the binary loss of every output, summed
      (one-vs-rest, multi-label).

    References
    ----------
    Bishop, C. M., "Pattern Recognition and Machine Learning", Springer, 2006, sections 4.3.2
    and 4.3.4.

    Examples
    --------
    >>> from ortlearn.losses import LogLoss
    >>> sorted(LogLoss().tasks)
    ['classification', 'multilabel']
    """

    tasks = frozenset({"classification", "multilabel"})
    integer_labels = True

    def forward(self, op, expected, predicted):
        """Write the loss of each row."""
        n_outputs = op.shape(predicted)[1]
        dtype = op.dtype(expected)
        if dtype.kind in "iu" and n_outputs != 1:
            # The second output, the log-probabilities, is what the C++ gradient builder starts from.
            return op.SoftmaxCrossEntropyLoss(predicted, expected, n_outputs=2, reduction="none")[0]
        if dtype.kind in "iu":
            elem_type = op.type(predicted).elem_type
            expected = op.Reshape(op.Cast(expected, to=elem_type), [-1, 1])
        return self.sum_outputs(op, self._binary(op, expected, predicted))

    @staticmethod
    def _binary(op, expected, predicted):
        # max(z, 0) is (z + |z|) / 2, which shares |z| and has a gradient of 1/2 at zero.
        magnitude = op.Abs(predicted)
        positive = op.Mul(op.Add(predicted, magnitude), 0.5)
        softplus = op.Add(positive, op.Log(op.Add(op.Exp(op.Neg(magnitude)), 1.0)))
        return op.Sub(softplus, op.Mul(expected, predicted))
