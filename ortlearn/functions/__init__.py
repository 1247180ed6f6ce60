"""Fitted models as differentiable functions, and their bridges to other packages."""

from .creation import differentiable
from .function import DifferentiableFunction

__all__ = ["DifferentiableFunction", "differentiable"]
