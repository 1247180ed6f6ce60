"""Plot the changes of weights between two models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .axes import axes_for
from .changed_weights import WeightChange, weight_changes

__all__ = ["WeightChangesDisplay"]


class WeightChangesDisplay:
    """Relative changes of weights, the largest first.

    Create it with :meth:`from_estimators`. All parameters are stored as attributes.

    Parameters
    ----------
    changes : list of WeightChange
        Result of :func:`weight_changes`.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes.
    figure_ : matplotlib.figure.Figure
        Their figure.
    bars_ : matplotlib.container.BarContainer
        A bar for each weight: the norm of its change, relative to the weight before, and its norm where the
        weight was zero.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn.inspection import WeightChangesDisplay
    >>> before = Ridge(alpha=0.0).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> after = Ridge(alpha=0.0).fit([[0.0], [1.0]], [1.0, 4.0])
    >>> display = WeightChangesDisplay.from_estimators(before, after)
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['intercept', 'coef']
    """

    ax_: Any
    figure_: Any
    bars_: Any

    def __init__(self, changes: Sequence[WeightChange]) -> None:
        self.changes = changes

    @classmethod
    def from_estimators(
        cls, before: Any, after: Any, X: Any = None, *, ax: Any = None, most: int = 20, **bar_kw: Any
    ) -> WeightChangesDisplay:
        """Plot the changes of the weights that two models have in common.

        Parameters
        ----------
        before, after : estimator, onnx.ModelProto, bytes or path
            Models of the same structure, as for :func:`weight_changes`.
        X : array-like or frame, default=None
            Some samples, for scikit-learn estimators whose columns have several types.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; by default a new figure.
        most : int, default=20
            Largest number of weights.
        **bar_kw
            Arguments of matplotlib's ``barh``.

        Returns
        -------
        WeightChangesDisplay
            Display, drawn.
        """
        return cls(weight_changes(before, after, X)).plot(ax, most=most, **bar_kw)

    def plot(self, ax: Any = None, *, most: int = 20, **bar_kw: Any) -> WeightChangesDisplay:
        """Draw the bars.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; by default a new figure.
        most : int, default=20
            Largest number of weights.
        **bar_kw
            Arguments of matplotlib's ``barh``.

        Returns
        -------
        WeightChangesDisplay
            The object itself.
        """
        self.ax_ = axes_for(ax, type(self).__name__, layout="constrained")
        self.figure_, shown = self.ax_.figure, list(self.changes)[:most]
        sizes = [change.norm if change.relative == float("inf") else change.relative for change in shown]
        self.bars_ = self.ax_.barh(range(len(shown)), sizes, **bar_kw)
        self.ax_.set_yticks(range(len(shown)), [change.name[:30] for change in shown])
        self.ax_.invert_yaxis()
        self.ax_.set_xlabel("norm of the change, relative to the weight")
        return self
