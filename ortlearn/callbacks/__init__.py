"""Callbacks for scikit-learn's ``set_callbacks``, from scikit-learn 1.9 on."""

from .learning_rate_monitor import LearningRateMonitor
from .mlflow_logger import MLflowLogger
from .model_checkpoint import ModelCheckpoint
from .optuna_pruner import OptunaPruner
from .page_hinkley import PageHinkley
from .stream_monitor import StreamMonitor
from .tensorboard_logger import TensorBoardLogger

__all__ = [
    "LearningRateMonitor",
    "MLflowLogger",
    "ModelCheckpoint",
    "OptunaPruner",
    "PageHinkley",
    "StreamMonitor",
    "TensorBoardLogger",
]
