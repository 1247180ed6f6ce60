"""Explanations, changes of weights, and plots of training curves, intervals, gradients and ONNX graphs.

Explanations are imported on first access, because they import scikit-learn and the models.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .graph_plot import plot_graph
from .intervals import CoverageDisplay, IntervalDisplay
from .stream_display import StreamDisplay
from .training_curve import TrainingCurveDisplay

if TYPE_CHECKING:
    from .adversarial import adversarial_radius
    from .attribution_files import save_attributions
    from .changed_weights import WeightChange, WeightChanges, weight_changes
    from .counterfactuals import Counterfactuals, counterfactual
    from .gradient_display import InputGradientDisplay
    from .gradients import input_gradient, smooth_gradient
    from .integrated import IntegratedGradients, integrated_gradients
    from .weight_display import WeightChangesDisplay

__all__ = [
    "Counterfactuals",
    "CoverageDisplay",
    "InputGradientDisplay",
    "IntegratedGradients",
    "IntervalDisplay",
    "StreamDisplay",
    "TrainingCurveDisplay",
    "WeightChange",
    "WeightChanges",
    "WeightChangesDisplay",
    "adversarial_radius",
    "counterfactual",
    "input_gradient",
    "integrated_gradients",
    "plot_graph",
    "save_attributions",
    "smooth_gradient",
    "weight_changes",
]

_MODULES = {
    "Counterfactuals": "counterfactuals",
    "InputGradientDisplay": "gradient_display",
    "IntegratedGradients": "integrated",
    "WeightChange": "changed_weights",
    "WeightChanges": "changed_weights",
    "WeightChangesDisplay": "weight_display",
    "adversarial_radius": "adversarial",
    "counterfactual": "counterfactuals",
    "input_gradient": "gradients",
    "integrated_gradients": "integrated",
    "save_attributions": "attribution_files",
    "smooth_gradient": "gradients",
    "weight_changes": "changed_weights",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_MODULES[name]}", __package__), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
