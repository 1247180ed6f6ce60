"""Train scikit-learn models and ONNX files by gradient with ONNX Runtime.

``__version__`` is the version of the distribution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from .estimators import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
    from .intervals import OrtIntervalRegressor, OrtSetClassifier

__all__ = [
    "OrtGradientForwardBackwardOptimizer",
    "OrtGradientOptimizer",
    "OrtIntervalRegressor",
    "OrtSetClassifier",
    "__version__",
]


def __getattr__(name: str) -> Any:
    # onnx, scikit-learn and the rest load when an estimator is first asked for.
    if name in ("OrtGradientForwardBackwardOptimizer", "OrtGradientOptimizer"):
        from . import estimators

        return getattr(estimators, name)
    if name in ("OrtIntervalRegressor", "OrtSetClassifier"):
        from . import intervals

        return getattr(intervals, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
