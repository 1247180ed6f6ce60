"""Plot gradients and attributions of features with matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from .axes import axes_for
from .gradients import input_gradient, smooth_gradient
from .integrated import integrated_gradients

__all__ = ["InputGradientDisplay"]

MOST_BARS = 30


class InputGradientDisplay:
    """Attributions of features: bars, or a heat map of an image.

    Create it with :meth:`from_estimator`. All parameters are stored as attributes.

    Parameters
    ----------
    attributions : ndarray of shape (n_samples, n_features)
        Gradients or attributions.
    feature_names : sequence of str, default=None
        Names of the features.
    label : str, default="gradient"
        Label of the axis of values.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Axes.
    figure_ : matplotlib.figure.Figure
        Their figure.
    bars_ : matplotlib.container.BarContainer or None
        Bars, None for a heat map.
    image_ : matplotlib.image.AxesImage or None
        Heat map, None for bars.

    Examples
    --------
    >>> import numpy as np
    >>> from ortlearn.inspection import InputGradientDisplay
    >>> display = InputGradientDisplay(np.array([[1.0, -2.0]]), feature_names=["a", "b"]).plot()
    >>> [float(bar.get_width()) for bar in display.bars_], display.ax_.get_xlabel()
    ([1.0, -2.0], 'gradient')
    """

    ax_: Any
    figure_: Any
    bars_: Any
    image_: Any

    def __init__(self, attributions: Any, *, feature_names: Any = None, label: Any = "gradient") -> None:
        self.attributions = attributions
        self.feature_names = feature_names
        self.label = label

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        baseline: Any = None,
        noise: Any = None,
        output: Any = None,
        method: Any = "auto",
        feature_names: Any = None,
        image_shape: Any = None,
        random_state: Any = None,
        ax: Any = None,
    ) -> Any:
        """Plot the gradients or attributions of a model.

        Parameters
        ----------
        estimator : estimator, ONNX model or DifferentiableFunction
            Fitted model.
        X : array-like of shape (n_samples, n_features)
            Samples; of several, the mean is drawn.
        baseline : array-like of shape (n_features,), default=None
            Baseline of integrated gradients, which are drawn instead of gradients.
        noise : float, default=None
            Standard deviation of the noise of smoothed gradients, which are drawn instead.
        output : int or str, default=None
            Class or column to explain; by default the only one, or the largest of each sample.
        method : str, default="auto"
            Output, as in :func:`input_gradient`.
        feature_names : sequence of str, default=None
            Names of the features; those of a frame by default.
        image_shape : tuple of int, default=None
            Height and width of a heat map.
        random_state : int, RandomState instance or None, default=None
            Seed of the noise.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; by default a new figure.

        Returns
        -------
        InputGradientDisplay
            Display, drawn.

        Raises
        ------
        GradientError
            If the output is piecewise constant, without a baseline.
        ValueError
            If shapes do not match.
        """
        options = {"output": output, "method": method}
        if baseline is not None:
            found, label = integrated_gradients(estimator, X, baseline, **options).attributions, "attribution"
        elif noise is not None:
            found = smooth_gradient(estimator, X, scale=noise, random_state=random_state, **options)
            label = "smoothed gradient"
        else:
            found, label = input_gradient(estimator, X, **options), "gradient"
        if feature_names is None and hasattr(X, "columns"):
            feature_names = [str(name) for name in X.columns]
        return cls(found, feature_names=feature_names, label=label).plot(ax, image_shape=image_shape)

    def plot(self, ax: Any = None, *, image_shape: Any = None, **kwargs: Any) -> Any:
        """Draw the mean over samples.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; by default a new figure.
        image_shape : tuple of int, default=None
            Height and width of a heat map; bars by default, of the 30 largest features.
        **kwargs
            Arguments of matplotlib's ``barh`` or ``imshow``.

        Returns
        -------
        InputGradientDisplay
            The object itself.

        Raises
        ------
        ValueError
            If the shape of the image is not that of the features.
        """
        values = np.atleast_2d(self.attributions).mean(axis=0)
        if image_shape is not None and np.prod(image_shape) != len(values):
            raise ValueError(f"image_shape={image_shape!r} does not have {len(values)} elements.")
        self.ax_ = axes_for(ax, type(self).__name__, layout="constrained")
        self.figure_ = self.ax_.figure
        self.bars_ = self.image_ = None
        if image_shape is not None:
            limit = float(np.abs(values).max()) or 1.0
            style = {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit, **kwargs}
            self.image_ = self.ax_.imshow(values.reshape(image_shape), **style)
            self.ax_.set(xticks=[], yticks=[])
            self.figure_.colorbar(self.image_, ax=self.ax_, label=self.label)
            return self
        order = np.argsort(-np.abs(values), kind="stable")[:MOST_BARS][::-1]
        names = [f"x{number}" for number in range(len(values))]
        names = names if self.feature_names is None else list(self.feature_names)
        self.bars_ = self.ax_.barh([names[index] for index in order], values[order], **kwargs)
        self.ax_.set(xlabel=self.label, ylabel="feature")
        self.ax_.axvline(0.0, color="black", linewidth=0.8)
        return self
