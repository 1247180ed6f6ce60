"""Pictures of what happened during training."""

from __future__ import annotations

from .training_curve import TrainingCurveDisplay

__all__ = ["TrainingCurveDisplay"]
