"""Callbacks for scikit-learn's ``set_callbacks``, from scikit-learn 1.9 on."""

from .learning_rate_monitor import LearningRateMonitor
from .model_checkpoint import ModelCheckpoint

__all__ = ["LearningRateMonitor", "ModelCheckpoint"]
