"""Plot the loss per epoch with matplotlib."""

from __future__ import annotations

from typing import Any

from .axes import axes_for
from .curve_names import name_curves, trained_model
from .history import check_history, history_of, measured
from .legends import draw_legend

__all__ = ["TrainingCurveDisplay"]

#: Axes on the right: key of the history, label and line style.
SCORE = {"key": "validation_score", "label": "validation score", "linestyle": "-."}
RATE = {"key": "rate", "label": "learning rate", "linestyle": ":"}
SECOND_AXIS = 1.16  # position of the second axis on the right, relative to the width; the first one is at 1


class TrainingCurveDisplay:
    """Training and validation loss per epoch.

    Create it with :meth:`from_estimator`. All parameters are stored as attributes.

    Parameters
    ----------
    history : list of dict
        One dict per epoch, as ``history_`` of an estimator: ``"epoch"``, ``"loss"``, and optionally
        ``"validation_loss"``, ``"validation_score"`` and ``"rate"`` (None if not measured).
    best_epoch : int, default=None
        Number of the epoch to mark.
    estimator_name : str, default=None
        Name of the curve in the legend. By default, curves that share axes are named by the class of the
        trained model, and numbered if it is the same.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes of the losses.
    figure_ : matplotlib.figure.Figure
        Their figure.
    line_ : matplotlib.lines.Line2D
        Training loss.
    validation_line_ : matplotlib.lines.Line2D or None
        Validation loss; None if it was not measured.
    best_epoch_mark_ : matplotlib.lines.Line2D or None
        Mark of the best epoch: on the validation loss if it was measured, else on the training loss.
    score_ax_, rate_ax_ : matplotlib.axes.Axes or None
        Axes of score and learning rate on the right; None if they are not drawn.
    score_line_, rate_line_ : matplotlib.lines.Line2D or None
        Validation score and learning rate; None if they are not drawn.

    See Also
    --------
    sklearn.model_selection.LearningCurveDisplay : Score by the number of samples.

    Examples
    --------
    >>> from ortlearn.inspection import TrainingCurveDisplay
    >>> history = [{"epoch": 1, "loss": 0.9}, {"epoch": 2, "loss": 0.4}]
    >>> display = TrainingCurveDisplay(history).plot()
    >>> [float(loss) for loss in display.line_.get_ydata()]
    [0.9, 0.4]
    """

    ax_: Any
    figure_: Any
    line_: Any
    validation_line_: Any
    best_epoch_mark_: Any
    score_ax_: Any
    score_line_: Any
    rate_ax_: Any
    rate_line_: Any

    def __init__(self, history: Any, *, best_epoch: Any = None, estimator_name: Any = None) -> None:
        self.history = history
        self.best_epoch = best_epoch
        self.estimator_name = estimator_name
        self._model_name = "curve"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        ax: Any = None,
        *,
        name: Any = None,
        log_scale: bool = False,
        show_score: bool = False,
        show_rate: bool = False,
        **line_kw: Any,
    ) -> Any:
        """Plot the training of an estimator.

        Parameters
        ----------
        estimator : estimator
            Fitted OrtGradientOptimizer or OrtGradientForwardBackwardOptimizer.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on, for example to compare several estimators; by default a new figure. With score
            or rate, the legend is below the axes, and a figure without a layout engine gets
            ``"constrained"``, which reserves space for it.
        name : str, default=None
            Name of the curve in the legend; by default the class of the trained model if ``ax`` has several
            curves.
        log_scale : bool, default=False
            Whether the axis of the losses is logarithmic.
        show_score : bool, default=False
            Whether the validation score is drawn too, on a separate axis.
        show_rate : bool, default=False
            Whether the learning rate is drawn too, on a separate axis.
        **line_kw
            Arguments of matplotlib's ``plot`` for the training loss; the other curves take its colour.

        Returns
        -------
        TrainingCurveDisplay
            Display, drawn.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        ValueError
            If the estimator has no history, if a requested score or rate was not measured, or if a loss is
            not positive and the axis is logarithmic.
        TypeError
            If ``ax`` is not a matplotlib Axes object.
        ImportError
            If matplotlib is not installed.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.linear_model import Ridge
        >>> from ortlearn import OrtGradientOptimizer
        >>> from ortlearn.inspection import TrainingCurveDisplay
        >>> X, y = load_diabetes(return_X_y=True)
        >>> trainer = OrtGradientOptimizer(Ridge(), learning_rate="Adam", max_iter=8).fit(X, y)
        >>> display = TrainingCurveDisplay.from_estimator(trainer, log_scale=True)
        >>> display.ax_.get_xlabel(), display.ax_.get_ylabel(), len(display.line_.get_xdata())
        ('epoch', 'loss', 8)
        """
        display = cls(
            history_of(estimator), best_epoch=getattr(estimator, "best_epoch_", None), estimator_name=name
        )
        display._model_name = trained_model(estimator)
        return display.plot(ax, log_scale=log_scale, show_score=show_score, show_rate=show_rate, **line_kw)

    def plot(
        self,
        ax: Any = None,
        *,
        name: Any = None,
        log_scale: bool = False,
        show_score: bool = False,
        show_rate: bool = False,
        **line_kw: Any,
    ) -> Any:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; by default a new figure.
        name : str, default=None
            Name of the curve in the legend; ``estimator_name`` by default.
        log_scale : bool, default=False
            Whether the axis of the losses is logarithmic.
        show_score : bool, default=False
            Whether the validation score is drawn too, on a separate axis.
        show_rate : bool, default=False
            Whether the learning rate is drawn too, on a separate axis.
        **line_kw
            Arguments of matplotlib's ``plot`` for the training loss; the other curves take its colour.

        Returns
        -------
        TrainingCurveDisplay
            The object itself.

        Raises
        ------
        ValueError
            If the history is invalid, if a requested score or rate was not measured, or if a loss is not
            positive and the axis is logarithmic.
        TypeError
            If ``ax`` is not a matplotlib Axes object.
        ImportError
            If matplotlib is not installed.
        """
        check_history(self.history)
        if log_scale:
            self._check_positive()
        scores = measured(self.history, "validation_score", required=show_score)
        rates = measured(self.history, "rate", required=show_rate)
        name = self.estimator_name if name is None else name
        self.ax_ = axes_for(ax, type(self).__name__, layout="constrained")
        self.figure_ = self.ax_.figure
        self._plot_losses(line_kw)
        self.score_ax_ = self.score_line_ = self.rate_ax_ = self.rate_line_ = None
        if show_score:
            self.score_ax_, self.score_line_ = self._plot_on_right(scores, SCORE)
        if show_rate:
            self.rate_ax_, self.rate_line_ = self._plot_on_right(rates, RATE)
        name_curves(self.ax_, self._lines("label" not in line_kw), name, self._model_name)
        self._finish(log_scale)
        return self

    def _check_positive(self) -> None:
        for key in ("loss", "validation_loss"):
            _, values = measured(self.history, key)
            if any(value <= 0 for value in values):
                raise ValueError(
                    f"A {key.replace('_', ' ')} of {min(values):.3g} cannot be drawn on a logarithmic axis: "
                    "set log_scale=False."
                )

    def _lines(self, with_training: Any) -> list:
        """Return the lines in the order of the legend."""
        losses = [self.line_] if with_training else []
        others = (self.validation_line_, self.best_epoch_mark_, self.score_line_, self.rate_line_)
        return losses + [line for line in others if line is not None]

    def _plot_losses(self, line_kw: Any) -> None:
        def draw(points: Any, what: Any, **style: Any) -> Any:
            style = {"label": what, "marker": "o" if len(points[0]) == 1 else None, **style}
            return self.ax_.plot(*points, **style)[0]

        training, validation = (measured(self.history, key) for key in ("loss", "validation_loss"))
        self.line_ = draw(training, "training loss", **line_kw)
        self.validation_line_ = self.best_epoch_mark_ = None
        color = self.line_.get_color()
        if validation[0]:
            self.validation_line_ = draw(validation, "validation loss", color=color, linestyle="--")
        if self.best_epoch is not None:
            measures = [dict(zip(*points, strict=True)) for points in (validation, training)]
            at = [values[self.best_epoch] for values in measures if self.best_epoch in values]
            style = {"color": color, "marker": "*", "markersize": 12, "linestyle": "none"}
            if at:
                self.best_epoch_mark_ = draw(([self.best_epoch], at[:1]), "best epoch", **style)

    def _plot_on_right(self, points: Any, kind: Any) -> Any:
        axes = _axes_on_right(self.ax_, kind["label"])
        marker = "o" if len(points[0]) == 1 else None
        style = {"color": self.line_.get_color(), "linestyle": kind["linestyle"], "marker": marker}
        return axes, axes.plot(*points, label=kind["label"], **style)[0]

    def _finish(self, log_scale: Any) -> None:
        self.ax_.set(xlabel="epoch", ylabel="loss")
        if log_scale:
            self.ax_.set_yscale("log")
        self.ax_.xaxis.get_major_locator().set_params(integer=True)
        beside = _shared_axes(self.ax_)
        if beside:  # the legend belongs to the axes of the losses, which must be in front of the others
            self.ax_.set_zorder(max(axes.get_zorder() for axes in beside) + 1)
            self.ax_.patch.set_visible(False)
        draw_legend(self.ax_, beside)


def _shared_axes(ax: Any) -> list:
    """Return the axes of score and rate on the right of ``ax``, in order of creation."""
    siblings = ax.get_shared_x_axes().get_siblings(ax)
    ours = {SCORE["label"], RATE["label"]}
    return [axes for axes in ax.figure.axes if axes in siblings and axes.get_label() in ours]


def _axes_on_right(ax: Any, label: Any) -> Any:
    """Return the axes on the right with a label, shared by all estimators on ``ax``."""
    known = _shared_axes(ax)
    for axes in known:
        if axes.get_label() == label:
            return axes
    axes = ax.twinx()
    axes.set_label(label)
    axes.set_ylabel(label)
    if known:
        axes.spines["right"].set_position(("axes", SECOND_AXIS))
    return axes
