"""The objective of boosting stages: initial scores, and derivatives that trees are fitted to."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..exceptions import ConvergenceError
from ..losses import BaseLoss
from .derivatives import LossDerivatives
from .sample_derivatives import LARGEST_STEP

__all__ = ["StageObjective", "StageObjectives"]

#: Halvings of the interval that contains the value of a leaf, and the initial score.
HALVINGS, MOST_HALVINGS = 20, 50
#: Rounds of the search of initial scores of several classes.
ROUNDS = 3
#: Sum of slopes that is zero up to rounding, relative to the sum of their magnitudes.
ROUNDING = 1e-12
#: The same for one leaf: divisions of the interval, and the number of parts of each.
DIVISIONS, PARTS = 2, 64


@dataclass(frozen=True)
class StageObjective:
    """A loss, and what boosting needs to know about the labels.

    Attributes
    ----------
    derivatives : LossDerivatives
        Losses and derivatives of samples.
    baseline : ndarray of shape (n_scores,)
        Initial scores: the constants with the lowest loss, or the logarithms of class frequencies.
    is_classifier : bool
        Whether labels are class indices.
    level : float or None
        Level of the quantile that minimises the loss, if its slope is constant on either side of the label.
    """

    derivatives: LossDerivatives
    baseline: np.ndarray
    is_classifier: bool
    level: float | None = None

    @classmethod
    def of(
        cls, loss: BaseLoss, y: np.ndarray, sample_weight: np.ndarray | None, is_classifier: bool
    ) -> StageObjective:
        """Return the objective for labels of shape (n,)."""
        weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if is_classifier:
            classes, indices = np.unique(y, return_inverse=True)
            if len(classes) == 1:  # a label that all samples have, or none
                classes, indices = np.arange(2), np.asarray(y, dtype=np.int64)
            n_scores = 1 if len(classes) == 2 else len(classes)
            shares = np.bincount(indices, weights, minlength=len(classes)) / weights.sum()
            logarithms = np.log(np.maximum(shares, np.finfo(np.float64).eps))
            baseline = logarithms[1:] - logarithms[:1] if n_scores == 1 else logarithms - logarithms.mean()
            own = cls(LossDerivatives(loss, n_scores), baseline, True)
            # constants of losses with kinks may have equal losses from one kink to the next
            return own if loss.kinks else replace(own, baseline=own._constants(shares))
        labels = np.asarray(y, dtype=np.float64)
        derivatives = LossDerivatives(loss)
        mean = np.array([np.average(labels, weights=weights)])
        if loss.link == "log":
            mean = np.log(np.maximum(mean, np.finfo(np.float64).tiny))
        own = cls(derivatives, mean, False, _level(derivatives, labels))
        start = np.zeros(1) if own.level is not None else mean
        scores, whole = np.tile(start, (len(labels), 1)), np.zeros(len(labels), dtype=np.int64)
        slopes = weights * own.gradient(labels, scores)[:, 0]
        if own.level is None and abs(slopes.sum()) <= ROUNDING * np.abs(slopes).sum():
            return own  # the exact mean, as in scikit-learn
        found = own.leaf_values(labels, scores, weights, whole, n_halvings=MOST_HALVINGS)
        return replace(own, baseline=start + found)

    def _constants(self, shares: np.ndarray) -> np.ndarray:
        """Return the constant scores of lowest loss for shares of classes, searched one by one."""
        y, whole = np.arange(len(shares), dtype=np.float64), np.zeros(len(shares), dtype=np.int64)
        scores = np.tile(self.baseline, (len(shares), 1))
        for _ in range(ROUNDS):
            for column in range(scores.shape[1]):
                slopes = shares * self.gradient(y, scores)[:, column]
                if abs(slopes.sum()) > ROUNDING * np.abs(slopes).sum():
                    scores[:, column] += self.leaf_values(y, scores, shares, whole, column)
        return scores[0]

    @property
    def loss(self) -> BaseLoss:
        """Loss of a sample."""
        return self.derivatives.loss

    def losses(self, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Return the loss of each sample, of shape (n,)."""
        return self.derivatives.losses(self._labels(y), self._scores(scores))

    def gradient(self, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Return the gradient with respect to the scores, of shape (n, n_scores)."""
        return self.derivatives.gradient(self._labels(y), self._scores(scores))

    def pair(self, y: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return gradient and curvature, of shape (n, n_scores); raise an error if they are not finite.

        Those of predictions are divided by a mean curvature below one, that of the squared error: limits and
        penalties of trees would otherwise leave no split for labels of another scale.
        """
        first, second = self.derivatives.curvature(self._labels(y), self._scores(scores))
        if not (np.isfinite(first).all() and np.isfinite(second).all()):
            raise ConvergenceError(
                f"Derivatives of {type(self.loss).__name__} are not finite for scores of the boosted trees: "
                "lower the learning_rate of the model, or use another loss."
            )
        mean = 1.0 if self.is_classifier or self.loss.link != "identity" else second.mean()
        return (first / mean, second / mean) if 0 < mean < 1 else (first, second)

    @property
    def searches(self) -> bool:
        """Whether the values of leaves are searched: Newton steps do not apply to kinks near labels."""
        return not self.is_classifier and (self.loss.kinks or self.level is not None)

    def leaf_values(
        self,
        y: np.ndarray,
        scores: np.ndarray,
        weights: np.ndarray,
        leaves: np.ndarray,
        column: int = 0,
        n_halvings: int = HALVINGS,
    ) -> np.ndarray:
        """Return the value of each leaf with the lowest loss, in the order of their numbers ``leaves``.

        It is in the interval where the derivative changes its sign (Friedman, J. H., "Greedy function
        approximation: a gradient boosting machine", Annals of Statistics 29 (2001), step 5 of algorithm 1).
        """
        if self.level is not None:
            return _quantiles(y - scores[:, column], weights, leaves, self.level)
        low, high = self._interval(y, scores, leaves, column)
        moved = np.array(scores)
        for _ in range(n_halvings):
            middle = (low + high) / 2
            moved[:, column] = scores[:, column] + middle[leaves]
            falls = np.bincount(leaves, weights * self.gradient(y, moved)[:, column]) < 0
            low, high = np.where(falls, middle, low), np.where(falls, high, middle)
        return np.where(np.bincount(leaves, weights) > 0, (low + high) / 2, 0.0)

    def leaf_value(self, y: np.ndarray, scores: np.ndarray, weights: np.ndarray) -> float:
        """Return the value of one leaf with the lowest loss, with few calls of the graph."""
        none = np.zeros(len(y), dtype=np.int64)
        if self.level is not None and weights[0] > 0 and (weights == weights[0]).all():
            return _quantile(y - scores[:, 0], self.level)
        if self.level is not None:
            return float(_quantiles(y - scores[:, 0], weights, none, self.level)[0])
        (low,), (high,) = self._interval(y, scores, none, 0)
        for _ in range(DIVISIONS):
            steps = np.linspace(low, high, PARTS + 1)
            moved = (scores + steps[1:-1]).T.reshape(-1, 1)
            slopes = self.gradient(np.tile(y, PARTS - 1), moved).reshape(PARTS - 1, -1) @ weights
            number = int(np.searchsorted(slopes >= 0, True))
            low, high = steps[number], steps[number + 1]
        return float(low + high) / 2

    def _interval(
        self, y: np.ndarray, scores: np.ndarray, leaves: np.ndarray, column: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the interval of the value of each leaf."""
        size = int(leaves.max()) + 1
        if self.is_classifier or self.loss.link != "identity":
            return np.full(size, -LARGEST_STEP), np.full(size, LARGEST_STEP)
        residuals = y - scores[:, column]
        low, high = np.full(size, np.inf), np.full(size, -np.inf)
        np.minimum.at(low, leaves, residuals)
        np.maximum.at(high, leaves, residuals)
        used = low <= high
        return np.where(used, low, 0.0), np.where(used, high, 0.0)

    def _labels(self, y: np.ndarray) -> np.ndarray:
        n_scores = self.derivatives.n_scores
        if n_scores == 1 or self.derivatives.integer_labels:
            return y
        return np.eye(n_scores)[np.asarray(y, dtype=np.int64)]

    def _scores(self, scores: np.ndarray) -> np.ndarray:
        return scores.reshape(len(scores), -1)


class StageObjectives:
    """The objectives of several outputs, whose losses are added."""

    def __init__(self, loss: BaseLoss, y: np.ndarray, sample_weight: np.ndarray | None, is_classifier: bool):
        self.loss = loss
        self.outputs = [StageObjective.of(loss, own, sample_weight, is_classifier) for own in y.T]
        self.baseline = np.concatenate([own.baseline for own in self.outputs])
        if is_classifier:
            return
        scores = np.tile(self.baseline, (len(y), 1))
        pairs = zip(self.outputs, y.T, scores.T, strict=True)
        sums = sum(output.losses(labels, own) for output, labels, own in pairs)
        if not np.allclose(LossDerivatives(loss, len(self.outputs)).losses(y, scores), sums):
            raise ValueError(f"Trees are grown on sums over outputs, which {type(loss).__name__} is not.")

    def pair(self, y: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradient and curvature of each output, of shape (n, n_outputs)."""
        pairs = [own.pair(y[:, i], scores[:, i]) for i, own in enumerate(self.outputs)]
        first, second = (np.hstack(parts) for parts in zip(*pairs, strict=True))
        return first, second

    def leaf_values(
        self, y: np.ndarray, scores: np.ndarray, weights: np.ndarray, leaves: np.ndarray, column: int
    ) -> np.ndarray:
        """Return the value of each leaf with the lowest loss of an output."""
        return self.outputs[column].leaf_values(y[:, column], scores[:, [column]], weights, leaves)


def _level(derivatives: LossDerivatives, y: np.ndarray) -> float | None:
    """Return the level of the quantile that minimises a loss, of two constant slopes; None for others."""
    if not derivatives.predicts_labels:
        return None
    distances = np.geomspace(1e-6, 10.0, len(y)) * (np.std(y) or 1.0)
    sides = [derivatives.gradient(y, (y + side * distances)[:, None]) for side in (-1.0, 1.0)]
    if any(np.ptp(side) > 1e-9 * np.abs(side).max() for side in sides) or not sides[0][0] < 0 < sides[1][0]:
        return None
    below, above = (float(abs(side[0, 0])) for side in sides)
    return below / (below + above)


def _quantile(values: np.ndarray, level: float) -> float:
    """Return a quantile of values of equal weight, by linear interpolation."""
    position = level * (len(values) - 1)
    below = int(position)
    above = min(below + 1, len(values) - 1)
    found = np.partition(values, (below, above))
    return float(found[below] + (position - below) * (found[above] - found[below]))


def _quantiles(values: np.ndarray, weights: np.ndarray, groups: np.ndarray, level: float) -> np.ndarray:
    """Return a quantile of each group, by linear interpolation between the middles of weights, 0 if empty."""
    size, used = int(groups.max()) + 1, weights > 0
    values, weights, groups = values[used], weights[used], groups[used]
    order = np.lexsort((values, groups))
    values, weights = values[order], weights[order]
    counts, middles = np.bincount(groups, minlength=size), np.cumsum(weights) - weights / 2
    filled = np.flatnonzero(counts)
    last = np.cumsum(counts)[filled] - 1
    first = last - counts[filled] + 1
    wanted = middles[first] + level * (middles[last] - middles[first])
    above = np.clip(np.searchsorted(middles, wanted), np.minimum(first + 1, last), last)
    below = np.maximum(above - 1, first)
    gaps = middles[above] - middles[below]
    shares = np.divide(wanted - middles[below], gaps, out=np.zeros(len(filled)), where=gaps > 0)
    found = np.zeros(size)
    found[filled] = values[below] + shares * (values[above] - values[below])
    return found
