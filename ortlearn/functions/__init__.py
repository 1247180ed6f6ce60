"""Fitted models as differentiable functions, and their bridges to other packages."""

from .creation import differentiable
from .function import DifferentiableFunction
from .jax_bridge import to_jax
from .scipy_bridge import ScipyFunction, to_scipy
from .torch_bridge import to_torch

__all__ = ["DifferentiableFunction", "ScipyFunction", "differentiable", "to_jax", "to_scipy", "to_torch"]
