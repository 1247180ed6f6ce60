"""Sessions, batches, training steps and the training loop."""

from ..data.columns import Columns
from ..data.orders import batch_sizes, epoch_batches
from ..data.samples import Data
from ..runtime.devices import Device, parse_device
from ..runtime.sessions import make_session
from .graphs.task import Objective, ScoreGraph, TrainingTask, Update
from .loop import LoopSettings, TrainingResult, run_training
from .loop_records import Measured, Observer, Snapshot
from .optimisations.hoisting import hoist
from .solvers.full_batch import FullBatchStep
from .steps.epoch_step import EpochStep
from .steps.forward_backward import OrtGradientForwardBackward
from .steps.forward_backward_function import OrtGradientForwardBackwardFunction
from .steps.forward_backward_step import ForwardBackwardStep
from .steps.single_graph_step import SingleGraphStep

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
