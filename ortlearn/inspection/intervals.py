"""Plot coverage, width and intervals with matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from .axes import axes_for

__all__ = ["CoverageDisplay", "IntervalDisplay"]

#: Coverages that are drawn by default.
COVERAGES = np.linspace(0.1, 0.95, 18)


class CoverageDisplay:
    """Measured coverage, or the mean width of intervals, against the coverage asked for.

    Create it with :meth:`from_estimator`. All parameters are stored as attributes.

    Parameters
    ----------
    coverages : ndarray of shape (n_coverages,)
        Coverages asked for.
    measured : ndarray of shape (n_coverages,)
        Shares of labels inside of their intervals.
    widths : ndarray of shape (n_coverages,)
        Mean widths of the intervals.
    kind : {"coverage", "width"}, default="coverage"
        What is drawn: ``measured`` against ``coverages``, the reliability of intervals, or ``widths`` against
        ``measured``.
    estimator_name : str, default=None
        Name of the curve in the legend.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes.
    figure_ : matplotlib.figure.Figure
        Their figure.
    line_ : matplotlib.lines.Line2D
        Curve.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn import OrtIntervalRegressor
    >>> from ortlearn.inspection import CoverageDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1))
    >>> y = X[:, 0] + rng.normal(size=400)
    >>> model = OrtIntervalRegressor(Ridge(), random_state=0).fit(X[:200], y[:200])
    >>> display = CoverageDisplay.from_estimator(model, X[200:], y[200:])
    >>> display.ax_.get_xlabel()
    'coverage asked for'
    """

    def __init__(
        self,
        coverages: Any,
        measured: Any,
        widths: Any,
        *,
        kind: Any = "coverage",
        estimator_name: Any = None,
    ) -> None:
        if kind not in ("coverage", "width"):
            raise ValueError(f"kind={kind!r} must be 'coverage' or 'width'.")
        self.coverages = coverages
        self.measured = measured
        self.widths = widths
        self.kind = kind
        self.estimator_name = estimator_name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        coverages: Any = None,
        groups: Any = None,
        kind: Any = "coverage",
        ax: Any = None,
        name: Any = None,
        **line_kw: Any,
    ) -> Any:
        """Measure an interval estimator on samples, and plot.

        Parameters
        ----------
        estimator : OrtIntervalRegressor
            Fitted estimator.
        X : array-like of shape (n_samples, n_features)
            Samples that it was neither trained nor calibrated on.
        y : array-like of shape (n_samples,)
            Their labels.
        coverages : array-like of float, default=None
            Coverages, by default 18 of them from 0.1 to 0.95.
        groups : array-like of shape (n_samples,), default=None
            Groups of the samples.
        kind : {"coverage", "width"}, default="coverage"
            What is drawn.
        ax : matplotlib.axes.Axes, default=None
            Axes; new ones by default.
        name : str, default=None
            Name of the curve, by default that of the wrapped estimator.
        **line_kw
            Arguments of ``plot``.

        Returns
        -------
        CoverageDisplay
            Display.
        """
        asked = COVERAGES if coverages is None else np.asarray(coverages, dtype=float)
        ends = estimator.predict_interval(X, asked.tolist(), groups)[1]
        labels = np.asarray(y, dtype=float).reshape(-1, 1)
        inside = (ends[:, 0] <= labels) & (labels <= ends[:, 1])
        widths = np.mean(ends[:, 1] - ends[:, 0], axis=0)
        name = type(estimator.estimator).__name__ if name is None else name
        display = cls(asked, inside.mean(axis=0), widths, kind=kind, estimator_name=name)
        return display.plot(ax=ax, **line_kw)

    def plot(self, ax: Any = None, **line_kw: Any) -> Any:
        """Plot, on given axes if any.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Axes; new ones by default.
        **line_kw
            Arguments of ``plot``.

        Returns
        -------
        CoverageDisplay
            This object.
        """
        self.ax_ = axes_for(ax, "CoverageDisplay")
        self.figure_ = self.ax_.figure
        is_width = self.kind == "width"
        x, y = (self.measured, self.widths) if is_width else (self.coverages, self.measured)
        style = {"marker": "o", "markersize": 4, "label": self.estimator_name, **line_kw}
        (self.line_,) = self.ax_.plot(x, y, **style)
        if not is_width:
            self.ax_.plot([0, 1], [0, 1], color="0.6", linestyle=":", zorder=0)
        self.ax_.set_xlabel("measured coverage" if is_width else "coverage asked for")
        self.ax_.set_ylabel("mean width of intervals" if is_width else "measured coverage")
        if self.estimator_name is not None:
            self.ax_.legend()
        return self


class IntervalDisplay:
    """Intervals and labels of samples on a line: in order of a feature, or of their predictions.

    Create it with :meth:`from_estimator`. All parameters are stored as attributes.

    Parameters
    ----------
    positions : ndarray of shape (n_samples,)
        Values of the feature, or numbers of the samples.
    predictions, lower, upper : ndarray of shape (n_samples,)
        Predictions and ends of the intervals.
    y : ndarray of shape (n_samples,), default=None
        Labels.
    xlabel : str, default=None
        Label of the horizontal axis.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes.
    figure_ : matplotlib.figure.Figure
        Their figure.
    line_ : matplotlib.lines.Line2D
        Predictions.
    band_ : matplotlib.collections.PolyCollection
        Intervals.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from ortlearn.inspection import IntervalDisplay
    >>> x = np.arange(3.0)
    >>> IntervalDisplay(x, x, x - 1, x + 1).plot().ax_.get_ylabel()
    'label'
    """

    def __init__(
        self, positions: Any, predictions: Any, lower: Any, upper: Any, *, y: Any = None, xlabel: Any = None
    ) -> None:
        self.positions = positions
        self.predictions = predictions
        self.lower = lower
        self.upper = upper
        self.y = y
        self.xlabel = xlabel

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        feature: Any = None,
        groups: Any = None,
        ax: Any = None,
        **scatter_kw: Any,
    ) -> Any:
        """Predict the intervals of samples, and plot.

        Parameters
        ----------
        estimator : OrtIntervalRegressor
            Fitted estimator.
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,), default=None
            Labels.
        feature : int or str, default=None
            Column that orders the samples, by default their predictions.
        groups : array-like of shape (n_samples,), default=None
            Groups of the samples.
        ax : matplotlib.axes.Axes, default=None
            Axes; new ones by default.
        **scatter_kw
            Arguments of ``scatter`` for the labels.

        Returns
        -------
        IntervalDisplay
            Display.
        """
        predictions, ends = estimator.predict_interval(X, None, groups)
        if feature is None:
            values, xlabel = predictions, "samples by prediction"
        else:
            values = np.asarray(X[feature] if hasattr(X, "columns") else np.asarray(X)[:, feature])
            xlabel = str(feature) if isinstance(feature, str) else f"feature {feature}"
        order = np.argsort(values, kind="stable")
        places = np.arange(len(order)) if feature is None else values[order]
        labels = None if y is None else np.asarray(y)[order]
        parts: list[Any] = [part[order] for part in (predictions, ends[:, 0, 0], ends[:, 1, 0])]
        return cls(places, *parts, y=labels, xlabel=xlabel).plot(ax=ax, **scatter_kw)

    def plot(self, ax: Any = None, **scatter_kw: Any) -> Any:
        """Plot, on given axes if any.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Axes; new ones by default.
        **scatter_kw
            Arguments of ``scatter`` for the labels.

        Returns
        -------
        IntervalDisplay
            This object.
        """
        self.ax_ = axes_for(ax, "IntervalDisplay")
        self.figure_ = self.ax_.figure
        self.band_ = self.ax_.fill_between(
            self.positions, self.lower, self.upper, alpha=0.25, label="interval"
        )
        (self.line_,) = self.ax_.plot(self.positions, self.predictions, label="prediction")
        if self.y is not None:
            self.ax_.scatter(
                self.positions, self.y, **{"s": 6, "color": "0.3", "label": "label", **scatter_kw}
            )
        self.ax_.set_xlabel(self.xlabel or "")
        self.ax_.set_ylabel("label")
        self.ax_.legend()
        return self
