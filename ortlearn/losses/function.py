"""A loss written as a Python function."""

from __future__ import annotations

import numpy as np

from ..exceptions import PluginError
from .base import BaseLoss
from .gradient_check import check_gradient

__all__ = ["FunctionLoss"]


class FunctionLoss(BaseLoss):
    """Loss given by a Python function, for :class:`~ortlearn.OrtGradientForwardBackwardOptimizer`.

    Parameters
    ----------
    function : callable
        ``function(expected, predicted)`` takes labels and raw outputs of a batch, float arrays of
        shape (n, k), and returns the loss of each sample, of shape (n,), and the gradient of their sum
        with respect to ``predicted``, of shape (n, k).
    check_gradient : bool, default=True
        Whether to compare the gradient with finite differences of the losses on the first batch, which takes
        two more calls in float64: a wrong sign is an error, a wrong factor is a
        :class:`~ortlearn.exceptions.GradientWarning`. Set it to False if the gradient differs on purpose.

    Examples
    --------
    >>> import numpy as np
    >>> from ortlearn.losses import FunctionLoss
    >>> loss = FunctionLoss(lambda y, f: (((f - y) ** 4).sum(axis=1), 4 * (f - y) ** 3))
    >>> losses, gradient = loss.evaluate(np.zeros((2, 1)), np.array([[1.0], [2.0]]))
    >>> losses.tolist(), gradient.ravel().tolist()
    ([1.0, 16.0], [4.0, 32.0])
    """

    tasks = frozenset({"classification", "multilabel", "regression"})
    in_python = True

    def __init__(self, function, check_gradient=True):
        self.function = function
        self.check_gradient = check_gradient

    def check(self):
        """Check the parameters before training."""
        self.check_flag("check_gradient")

    def forward(self, op, expected, predicted):
        """Raise ``PluginError``: a Python function has no ONNX expression."""
        raise PluginError(
            "A Python function cannot be part of an ONNX graph. Train with "
            "OrtGradientForwardBackwardOptimizer and an update that is not a solver, or write the loss as a "
            "subclass of BaseLoss."
        )

    def evaluate(self, expected: np.ndarray, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the loss of each sample and the gradient of their sum, after checks of types and shapes."""
        losses, gradient = self._call(expected, predicted)
        return losses.astype(predicted.dtype), np.ascontiguousarray(gradient, dtype=predicted.dtype)

    def check_batch(
        self, expected: np.ndarray, predicted: np.ndarray, losses: np.ndarray, gradient: np.ndarray
    ) -> None:
        """Check the gradient of a batch by finite differences, unless ``check_gradient`` is False."""
        if self.check_gradient:
            check_gradient(self._call, expected, predicted, losses, gradient)

    def _call(self, expected: np.ndarray, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Call the function, and check the shapes of its results."""
        result = self.function(expected, predicted)
        if not isinstance(result, tuple) or len(result) != 2:
            raise PluginError(
                f"The loss function returned {type(result).__name__}. Return the tuple (losses, gradient)."
            )
        losses, gradient = (np.asarray(part) for part in result)
        if losses.shape != (len(predicted),):
            raise PluginError(
                f"The loss function returned losses of shape {losses.shape}. Return one loss per sample, of "
                f"shape {(len(predicted),)}."
            )
        if gradient.shape != predicted.shape:
            raise PluginError(
                f"The loss function returned a gradient of shape {gradient.shape}. Return one with the "
                f"shape of the outputs, {predicted.shape}."
            )
        return losses, gradient
