"""Losses of the margin ``m = t * z`` of a score z and a label t in {-1, 1}."""

from __future__ import annotations

from typing import Any

from ..graphs import GraphBuilder
from .base import BaseLoss
from .expressions import margin, positive_part, squared_part

__all__ = ["HingeLoss", "ModifiedHuberLoss", "PerceptronLoss", "SquaredHingeLoss"]


class MarginLoss(BaseLoss):
    """Base class of losses of the margin; the losses of several classes, one-vs-rest, are summed."""

    tasks = frozenset({"classification", "multilabel"})
    by_errors = True

    def of_margin(self, op: GraphBuilder, margins: Any) -> str:
        """Write the loss of each margin."""
        raise NotImplementedError(f"{type(self).__name__} has no loss of a margin: implement of_margin.")

    def forward(self, op: GraphBuilder, expected: str, predicted: str) -> str:
        """Write the loss of each sample."""
        return self.sum_outputs(op, self.of_margin(op, margin(op, expected, predicted)))


class HingeLoss(MarginLoss):
    """Hinge loss: ``max(0, 1 - m)``, that of linear support vector machines.

    The margin is ``m = t * z`` with labels t in {-1, 1}; several classes are one-vs-rest.

    References
    ----------
    Cortes, C. and Vapnik, V., "Support-vector networks", Machine Learning 20 (1995), 273-297.

    Examples
    --------
    >>> from ortlearn.losses import HingeLoss
    >>> sorted(HingeLoss.tasks)
    ['classification', 'multilabel']
    """

    kinks = True

    def of_margin(self, op: GraphBuilder, margins: Any) -> Any:
        """Write the loss of each margin."""
        return positive_part(op, op.Sub(1.0, margins))


class SquaredHingeLoss(MarginLoss):
    """Squared hinge loss: ``max(0, 1 - m) ** 2``, the default of LinearSVC.

    The margin is ``m = t * z`` with labels t in {-1, 1}; several classes are one-vs-rest.

    References
    ----------
    Chang, K.-W., Hsieh, C.-J. and Lin, C.-J., "Coordinate descent method for large-scale L2-loss
    linear support vector machines", JMLR 9 (2008), 1369-1398.

    Examples
    --------
    >>> from ortlearn.losses import SquaredHingeLoss
    >>> SquaredHingeLoss()
    SquaredHingeLoss()
    """

    def of_margin(self, op: GraphBuilder, margins: Any) -> Any:
        """Write the loss of each margin."""
        return squared_part(op, op.Sub(1.0, margins))


class ModifiedHuberLoss(MarginLoss):
    """Modified Huber loss: ``max(0, 1 - m) ** 2`` for m >= -1, ``-4 m`` below.

    The margin is ``m = t * z`` with labels t in {-1, 1}; several classes are one-vs-rest.

    References
    ----------
    Zhang, T., "Solving large scale linear prediction problems using stochastic gradient descent
    algorithms", ICML 2004.

    Examples
    --------
    >>> from ortlearn.losses import ModifiedHuberLoss
    >>> ModifiedHuberLoss()
    ModifiedHuberLoss()
    """

    def of_margin(self, op: GraphBuilder, margins: Any) -> Any:
        """Write the loss of each margin."""
        return squared_part(op, op.Sub(1.0, margins), 2.0)


class PerceptronLoss(MarginLoss):
    """Perceptron loss: ``max(0, -m)``; only misclassified samples count.

    The margin is ``m = t * z`` with labels t in {-1, 1}; several classes are one-vs-rest.

    References
    ----------
    Rosenblatt, F., "The perceptron: a probabilistic model for information storage and organization
    in the brain", Psychological Review 65 (1958), 386-408.

    Examples
    --------
    >>> from ortlearn.losses import PerceptronLoss
    >>> PerceptronLoss()
    PerceptronLoss()
    """

    kinks = True
    degenerate = "the loss is zero, its minimum, for weights of zero"

    def of_margin(self, op: GraphBuilder, margins: Any) -> Any:
        """Write the loss of each margin."""
        return positive_part(op, op.Neg(margins))
