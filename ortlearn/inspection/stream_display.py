"""Plot the score of a stream by time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .axes import axes_for

__all__ = ["StreamDisplay"]


class StreamDisplay:
    """Score of a stream by the number of samples, with the drifts that were found.

    Create it with :meth:`from_monitor`. All parameters are stored as attributes.

    Parameters
    ----------
    records : list of dict
        As ``records`` of :class:`~ortlearn.callbacks.StreamMonitor`.
    name : str, default=None
        Name of the curve in the legend.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes.
    figure_ : matplotlib.figure.Figure
        Their figure.
    line_ : matplotlib.lines.Line2D
        Score.
    drift_marks_ : list of matplotlib.lines.Line2D
        Vertical lines at the drifts.

    Examples
    --------
    >>> from ortlearn.inspection import StreamDisplay
    >>> records = [
    ...     {"n_samples": 100, "window_score": 0.9, "drift": False},
    ...     {"n_samples": 200, "window_score": 0.6, "drift": True},
    ... ]
    >>> display = StreamDisplay(records).plot()
    >>> display.line_.get_ydata().tolist(), len(display.drift_marks_)
    ([0.9, 0.6], 1)
    """

    ax_: Any
    figure_: Any
    line_: Any
    drift_marks_: list

    def __init__(self, records: Sequence[dict[str, Any]], *, name: str | None = None) -> None:
        self.records = records
        self.name = name

    @classmethod
    def from_monitor(
        cls,
        monitor: Any,
        ax: Any = None,
        *,
        name: str | None = None,
        key: str = "window_score",
        **line_kw: Any,
    ) -> StreamDisplay:
        """Plot the records of a monitor.

        Parameters
        ----------
        monitor : StreamMonitor
            Callback of a stream.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; by default a new figure.
        name : str, default=None
            Name of the curve in the legend.
        key : {"window_score", "window_loss", "score", "loss"}, default="window_score"
            What is drawn.
        **line_kw
            Arguments of matplotlib's ``plot``.

        Returns
        -------
        StreamDisplay
            Display, drawn.

        Raises
        ------
        ValueError
            If there are no records: the stream has had fewer than two calls of ``partial_fit``.
        """
        return cls(monitor.records, name=name).plot(ax, key=key, **line_kw)

    def plot(self, ax: Any = None, *, key: str = "window_score", **line_kw: Any) -> StreamDisplay:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; by default a new figure.
        key : {"window_score", "window_loss", "score", "loss"}, default="window_score"
            What is drawn.
        **line_kw
            Arguments of matplotlib's ``plot``.

        Returns
        -------
        StreamDisplay
            The object itself.

        Raises
        ------
        ValueError
            If there are no records.
        """
        if not self.records:
            raise ValueError("There are no records: train at least two batches with partial_fit.")
        self.ax_ = axes_for(ax, type(self).__name__)
        self.figure_ = self.ax_.figure
        places = [record["n_samples"] for record in self.records]
        values = [record[key] for record in self.records]
        style = {"label": self.name, "marker": "o" if len(places) == 1 else None, **line_kw}
        self.line_ = self.ax_.plot(places, values, **style)[0]
        self.drift_marks_ = [
            self.ax_.axvline(record["n_samples"], color=self.line_.get_color(), linestyle=":")
            for record in self.records
            if record["drift"]
        ]
        if self.drift_marks_:
            self.drift_marks_[0].set_label("drift")
        self.ax_.set(xlabel="samples", ylabel=key.replace("_", " "))
        if self.ax_.get_legend_handles_labels()[0]:
            self.ax_.legend()
        return self
