"""Plots of training curves and ONNX graphs."""

from __future__ import annotations

from .graph_plot import plot_graph
from .training_curve import TrainingCurveDisplay

__all__ = ["TrainingCurveDisplay", "plot_graph"]
