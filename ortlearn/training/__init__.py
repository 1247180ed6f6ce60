"""Sessions, batches, training steps and the training loop."""

from .batches import batch_sizes, epoch_batches
from .columns import Columns
from .data import Data
from .devices import Device, parse_device
from .epoch_step import EpochStep
from .forward_backward import OrtGradientForwardBackward
from .forward_backward_function import OrtGradientForwardBackwardFunction
from .forward_backward_step import ForwardBackwardStep
from .full_batch import FullBatchStep
from .hoisting import hoist
from .loop import LoopSettings, TrainingResult, run_training
from .loop_records import Measured, Observer, Snapshot
from .sessions import make_session
from .single_graph_step import SingleGraphStep
from .task import Objective, ScoreGraph, TrainingTask, Update

__all__ = [
    "Columns",
    "Data",
    "Device",
    "EpochStep",
    "ForwardBackwardStep",
    "FullBatchStep",
    "LoopSettings",
    "Measured",
    "Objective",
    "Observer",
    "OrtGradientForwardBackward",
    "OrtGradientForwardBackwardFunction",
    "ScoreGraph",
    "SingleGraphStep",
    "Snapshot",
    "TrainingResult",
    "TrainingTask",
    "Update",
    "batch_sizes",
    "epoch_batches",
    "hoist",
    "make_session",
    "parse_device",
    "run_training",
]
