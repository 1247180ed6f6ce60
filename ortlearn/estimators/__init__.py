"""The two estimators."""

from .forward_backward_optimizer import OrtGradientForwardBackwardOptimizer
from .gradient_optimizer import OrtGradientOptimizer

__all__ = ["OrtGradientForwardBackwardOptimizer", "OrtGradientOptimizer"]
