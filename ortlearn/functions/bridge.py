"""Common parts of the bridges to other packages."""

from __future__ import annotations

from ..exceptions import GradientError
from .bare import BareFunction
from .function import DifferentiableFunction

__all__ = ["one_matrix"]


def one_matrix(function: DifferentiableFunction) -> BareFunction:
    """Return the bare function, whose argument must be one numeric matrix."""
    if not isinstance(function, DifferentiableFunction):
        raise ValueError(
            "function must be the result of ortlearn.functions.differentiable, not "
            f"{type(function).__name__}."
        )
    if function.wraps_columns:
        raise GradientError(
            f"{function!r} reads columns of several types, or has steps that run in scikit-learn: its "
            "argument is not one array. Differentiate the model after its preprocessing."
        )
    return function.bare
