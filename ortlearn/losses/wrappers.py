"""Losses of other losses: summed over outputs or positions, or computed by the graph."""

from __future__ import annotations

from typing import Any

from .base import BaseLoss

__all__ = ["PerOutputLoss", "PerPositionLoss", "RowObjective"]


class PerOutputLoss(BaseLoss):
    """The sum of the losses of several outputs, with ``groups[i]`` scores for output i."""

    tasks = frozenset({"multilabel"})

    def __init__(self, loss: Any, groups: Any) -> None:
        self.loss = loss
        self.groups = groups

    @property
    def kinks(self) -> Any:  # type: ignore[override]
        """Whether the slope of the loss of one output jumps somewhere."""
        return self.loss.kinks

    def forward(self, op: Any, expected: str, predicted: str) -> str:
        """Write the loss of each sample.

        Labels are int64 class numbers of shape (n, outputs) if the loss takes such labels, and otherwise
        floats of the shape of the predictions.
        """
        terms, start = [], 0
        for number, count in enumerate(self.groups):
            scores = self._part(op, predicted, start, count)
            if self.loss.integer_labels:
                n_samples = op.shape(expected)[0]
                labels = op.Gather(expected, number, axis=1)
                op.set_type(labels, op.type(expected).elem_type, (n_samples,))
            else:
                labels = self._part(op, expected, start, count)
            terms.append(self.loss.forward(op, labels, scores))
            start += count
        total = terms[0]
        for term in terms[1:]:
            total = op.Add(total, term)
        return total

    @staticmethod
    def _part(op: Any, name: str, start: Any, count: Any) -> Any:
        known = op.type(name)
        part = op.Slice(name, [start], [start + count], [1])
        return op.set_type(part, known.elem_type, (known.shape[0], count))


class PerPositionLoss(BaseLoss):
    """The loss of each position of a sample, for labels and scores of several dimensions.

    The objective is the mean over all positions of all samples, weighted by the weights of the positions; if
    ``summed``, the loss of a sample is the sum over its positions.
    """

    tasks = frozenset({"classification", "regression"})
    by_position = True

    def __init__(self, loss: Any, n_outputs: Any, summed: bool = False) -> None:
        self.loss = loss
        self.n_outputs = n_outputs
        self.summed = summed

    @property
    def kinks(self) -> Any:  # type: ignore[override]
        """Whether the slope of the loss of one position jumps somewhere."""
        return self.loss.kinks

    @property
    def in_python(self) -> Any:  # type: ignore[override]
        """Whether the loss of one position is a Python function."""
        return self.loss.in_python

    def forward(self, op: Any, expected: str, predicted: str) -> str:
        """Write the losses, of shape (n, positions).

        Scores are of shape (n, positions, k), or (n, positions) for k = 1; labels are int64 of shape
        (n, positions), or floats of the shape of the scores.
        """
        n_samples, n_positions = op.shape(predicted)[:2]
        known = isinstance(n_samples, int) and isinstance(n_positions, int)
        n_flat = n_samples * n_positions if known else None
        kind = op.type(expected).elem_type
        if op.dtype(expected).kind in "iu":
            labels = op.set_type(op.Reshape(expected, [-1]), kind, (n_flat,))
        else:
            labels = op.set_type(op.Reshape(expected, [-1, self.n_outputs]), kind, (n_flat, self.n_outputs))
        scores = op.Reshape(predicted, [-1, self.n_outputs])
        op.set_type(scores, op.type(predicted).elem_type, (n_flat, self.n_outputs))
        values = self.loss.forward(op, labels, scores)
        if isinstance(n_positions, int):
            values = op.Reshape(values, [-1, n_positions])
            count = op.constant(float(n_positions))
        else:
            sizes = op.Slice(op.Shape(expected), [0], [2])
            values = op.Reshape(values, sizes)
            count = op.Cast(op.Gather(sizes, 1), to=op.type(predicted).elem_type)
        op.set_type(values, op.type(predicted).elem_type, (n_samples, n_positions))
        return op.Mul(values, count) if self.summed else values

    def evaluate(self, expected: Any, predicted: Any) -> Any:
        """Return the losses of a Python loss, of shape (n, positions), and the gradient of their sum."""
        values, gradient = self.loss.evaluate(*self._flat(expected, predicted))
        factor = predicted.shape[1] if self.summed else 1
        return values.reshape(predicted.shape[:2]) * factor, gradient.reshape(predicted.shape) * factor

    def check_batch(self, expected: Any, predicted: Any, losses: Any, gradient: Any) -> None:
        """Check the gradient of a batch if the loss of one position does."""
        if hasattr(self.loss, "check_batch"):
            factor = predicted.shape[1] if self.summed else 1
            flat = self._flat(expected, predicted)
            self.loss.check_batch(
                *flat, losses.ravel() / factor, gradient.reshape(-1, self.n_outputs) / factor
            )

    def _flat(self, expected: Any, predicted: Any) -> Any:
        """Return labels and outputs with one row per position."""
        shape = (-1,) if expected.dtype.kind in "iu" else (-1, self.n_outputs)
        return expected.reshape(shape), predicted.reshape(-1, self.n_outputs)


class RowObjective(BaseLoss):
    """Loss that the model itself computes: ``f - y`` with labels y of zero, summed over outputs.

    Models trained without labels output the loss of each sample: minus the log-likelihood of a mixture, the
    squared distance to the nearest centre of KMeans.
    """

    tasks = frozenset({"unsupervised"})

    def forward(self, op: Any, expected: str, predicted: str) -> str:
        """Write the loss of each sample."""
        return self.sum_outputs(op, op.Sub(predicted, expected))
