"""One loss applied to each output of a model that has several."""

from __future__ import annotations

from .base import BaseLoss

__all__ = ["PerOutputLoss"]


class PerOutputLoss(BaseLoss):
    """The sum of the losses of several outputs, each with its own scores.

    Parameters
    ----------
    loss : BaseLoss
        Loss of one output.
    groups : tuple of int
        Number of scores of each output, in order.

    Examples
    --------
    >>> from ortlearn.losses import LogLoss, PerOutputLoss
    >>> PerOutputLoss(LogLoss(), groups=(3, 1))
    PerOutputLoss(groups=(3, 1), loss=LogLoss())
    """

    tasks = frozenset({"multilabel"})

    def __init__(self, loss, groups):
        self.loss = loss
        self.groups = groups

    @property
    def kinks(self):  # type: ignore[override]
        """Whether the slope of the loss of one output jumps somewhere."""
        return self.loss.kinks

    def forward(self, op, expected, predicted):
        """Write the loss of each sample.

        Labels are int64 class numbers of shape (n, outputs) if the loss takes such labels, and otherwise
        floats of the shape of the predictions.
        """
        terms, start = [], 0
        for number, count in enumerate(self.groups):
            scores = self._part(op, predicted, start, count)
            if self.loss.integer_labels:
                rows = op.shape(expected)[0]
                labels = op.Gather(expected, number, axis=1)
                op.set_type(labels, op.type(expected).elem_type, (rows,))
            else:
                labels = self._part(op, expected, start, count)
            terms.append(self.loss.forward(op, labels, scores))
            start += count
        total = terms[0]
        for term in terms[1:]:
            total = op.Add(total, term)
        return total

    @staticmethod
    def _part(op, name, start, count):
        known = op.type(name)
        part = op.Slice(name, [start], [start + count], [1])
        return op.set_type(part, known.elem_type, (known.shape[0], count))
