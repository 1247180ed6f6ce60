"""Losses given by an expression, or by a Python function."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from ..exceptions import PluginError, limit_address
from ..graphs import GraphBuilder, TensorType
from ..graphs.arithmetic import parse_expression, uses, write_expression
from .base import BaseLoss
from .gradient_check import check_gradient

__all__ = ["PREFIX", "ExpressionLoss", "FunctionLoss"]

#: Start of a ``learning_loss`` that is the text of an expression.
PREFIX = "expression:"
NAMES = ("label", "score")
DEFAULT = "(label - score)**2 / 2"


class ExpressionLoss(BaseLoss):
    """Loss given by an expression of labels and raw scores; its gradient is derived.

    ``learning_loss="expression: ..."`` is short for ``ExpressionLoss("...")``.

    Parameters
    ----------
    expression : str or callable, default="(label - score)**2 / 2"
        Text, an arithmetic expression of ``label`` and ``score``, such as
        ``"where(label > score, 5, 1) * (label - score)**2"``: numbers, ``+ - * / **``, comparisons, ``and``,
        ``or``, ``not``, ``a if condition else b``, and the functions abs, ceil, clip, cos, erf, exp, expm1,
        floor, log, log1p, maximum, minimum, relu, sigmoid, sign, sin, softplus, sqrt, square, tan, tanh and
        where. It is parsed, never evaluated. Or ``expression(op, label, score)``, which writes it with
        operators of a :class:`~ortlearn.graphs.GraphBuilder` and returns the name of the losses. Labels and
        scores have the shape (n, k); losses of shape (n, k) are summed over outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from ortlearn import OrtGradientOptimizer
    >>> from ortlearn.losses import ExpressionLoss
    >>> X = np.linspace(0, 1, 100).reshape(-1, 1)
    >>> y = X.ravel() + np.tile([-0.5, 0.5], 50)
    >>> loss = "expression: where(label > score, 9, 1) * (label - score)**2"  # an expectile
    >>> high = OrtGradientOptimizer(LinearRegression(), learning_loss=loss, random_state=0).fit(X, y)
    >>> bool(np.mean(high.predict(X) - X.ravel()) > 0.3)
    True
    >>> quartic = ExpressionLoss(lambda op, label, score: op.Pow(op.Sub(label, score), 4.0))
    """

    tasks = frozenset({"classification", "multilabel", "regression"})

    def __init__(self, expression: Any = DEFAULT) -> None:
        self.expression = expression

    @property
    def kinks(self) -> Any:  # type: ignore[override]
        """Whether the expression uses absolute values or positive parts."""
        shape = TensorType(TensorProto.FLOAT, (None, 1))
        op = GraphBuilder(types=dict.fromkeys(NAMES, shape), existing_names=NAMES)
        self.forward(op, *NAMES)
        return any(node.op_type in ("Abs", "Relu") for node in op.nodes)

    def check(self) -> None:
        """Check the parameters before training."""
        if isinstance(self.expression, str):
            names = uses(parse_expression(self.expression, NAMES))
            if "score" not in names:
                raise PluginError(f"The expression {self.expression!r} does not depend on score.")
        elif not callable(self.expression):
            raise PluginError(
                f"ExpressionLoss: expression={self.expression!r} must be text, or a function of op, label "
                "and score."
            )

    def forward(self, op: GraphBuilder, expected: str, predicted: str) -> str:
        """Write the loss of each sample."""
        if isinstance(self.expression, str):
            tree = parse_expression(self.expression, NAMES)
            losses = write_expression(op, tree, {"label": expected, "score": predicted})
        else:
            losses = self.expression(op, expected, predicted)
            if not isinstance(losses, str):
                raise PluginError(
                    f"The function of an ExpressionLoss returned {type(losses).__name__}: return the name of "
                    "the losses, such as op.Abs(op.Sub(label, score))."
                )
        return self.sum_outputs(op, op.Flatten(losses, axis=1))


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

    def __init__(self, function: Any, check_gradient: bool = True) -> None:
        self.function = function
        self.check_gradient = check_gradient

    def check(self) -> None:
        """Check the parameters before training."""
        self.check_flag("check_gradient")

    def forward(self, op: GraphBuilder, expected: str, predicted: str) -> str:
        """Raise ``PluginError``: a Python function has no ONNX expression."""
        raise PluginError(
            "A Python function cannot be part of an ONNX graph. Train with "
            "OrtGradientForwardBackwardOptimizer and an update that is not a solver, or write the loss as a "
            f"subclass of BaseLoss.{limit_address('losses-in-python')}"
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
