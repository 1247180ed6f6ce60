"""What every penalty is: a forward expression on one weight."""

from __future__ import annotations

from sklearn.base import BaseEstimator

from ..graphs import GraphBuilder

__all__ = ["BasePenalty"]


class BasePenalty(BaseEstimator):
    """Base class of penalties.

    A subclass stores its parameters in its constructor and writes :meth:`forward`. The gradient
    comes from differentiation: use operators that have one.

    Parameters
    ----------
    intercept : bool, default=False
        Whether intercepts are penalised too.
    """

    def __init__(self, intercept=False):
        self.intercept = intercept

    @property
    def smooth(self) -> bool:
        """Whether it has a gradient everywhere, which solvers such as L-BFGS need."""
        return True

    def forward(self, op: GraphBuilder, weight: str) -> str | None:
        """Write the penalty of one weight.

        Parameters
        ----------
        op : GraphBuilder
            Where the nodes go; it knows type and shape of the weight.
        weight : str
            Name of the weight, of any shape.

        Returns
        -------
        str or None
            Name of the penalty, a scalar of shape (); None where there is none.
        """
        raise NotImplementedError(f"{type(self).__name__} must write its forward expression.")

    def applies_to(self, is_intercept: bool) -> bool:
        """Tell whether a weight is penalised."""
        return self.intercept or not is_intercept
