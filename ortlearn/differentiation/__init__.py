"""Gradients of ONNX graphs."""

from .dispatch import BACKENDS, gradient_of_loss

__all__ = ["BACKENDS", "gradient_of_loss"]
