"""The samples of a call: in memory, of a source, or on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..onnx_files.loading import is_onnx_source
from ..problem.configuration import Configuration
from ..problem.samples import Samples
from ..targets.given_classes import PartialFitClasses, expected_classes
from ..training.settings import LoopSettings
from ..training.state import TrainingState
from .callbacks import EstimatorView, FitTask
from .fitted_model import FittedModel
from .growth import TreeStream
from .source_counts import Counts, SourceTotals
from .start import Start, new_start, next_start
from .validation import Validation
from .warm_starts import WarmStart

__all__ = ["Beginning", "Call", "Given", "named_classes"]


@dataclass(frozen=True)
class Beginning:
    """How a call begins on its first samples; on a cluster, a worker does it."""

    configuration: Configuration
    random_state: np.random.RandomState
    seed: int  # seed of the orders of samples
    last: FittedModel | None  # model that the call continues
    classes: Any
    adds_epoch: bool = False  # whether it is a call of ``partial_fit``
    total_weight: float | None = None

    def start(self, samples: Samples, whole: SourceTotals | None = None, solves: bool = False) -> Start:
        """Return the start; ``whole`` has the counts of all samples, if these are the first of many."""
        configuration, classes = self.configuration, self.classes
        known = named_classes(configuration, classes, samples.y)
        if self.adds_epoch and self.last is not None:
            start = next_start(configuration, samples, self.last, self.total_weight, whole)
            if known is not None:
                known.check_known(start.problem.targets.classes, "the first call")
            return start
        if known is None and whole is not None:
            known = _occurring(whole, samples.y, configuration)
        elif known is not None and whole is not None and whole.labels is not None:
            known.checked_classes(whole.labels)
        given = (configuration, samples, self.random_state, self.seed, self.last, known)
        return new_start(*given, self.adds_epoch, self.total_weight, whole, solves)


@dataclass(frozen=True)
class Call:
    """A call of ``fit`` or ``partial_fit``, for a new training or one that is resumed."""

    beginning: Beginning
    view: EstimatorView  # estimator in training, for callbacks and scorers
    task: FitTask | None  # task of the call, for callbacks
    resumed: TrainingState | None  # state of a training to resume
    initial: np.random.RandomState  # copy of the random state from before the first draw
    parameters: Callable[[], dict[str, str]]  # fingerprint, which must be equal to resume the training


class Given:
    """The samples of a call, and what is decided on them."""

    #: Whether all samples are in memory.
    in_memory = False
    #: Number of samples of a source in memory; None for samples that are not read.
    shuffle_buffer: int | None = None
    #: Whether the validation samples are a part of X.
    is_split = False
    #: Whether there are validation samples.
    has_validation = False

    def __init__(self) -> None:
        #: Counts of sources, by the name of their argument.
        self.counts: dict[str, Counts] = {}

    def check(self, configuration: Configuration) -> None:
        """Raise an error if ``fit`` cannot train on these samples."""

    def open(self, call: Call) -> Any:
        """Count or divide the samples; return the first ones, for callbacks."""
        raise NotImplementedError

    def start(self, beginning: Beginning) -> Start:
        """Return the start of the training."""
        raise NotImplementedError

    def warm_start(self, call: Call, start: Start) -> WarmStart | None:
        """Return the comparison of candidates of a warm start; None if there is none."""
        return None

    def tree_stream(self, call: Call, start: Start) -> TreeStream | None:
        """Return the call of ``partial_fit`` for an ensemble of trees that grows; None for other models."""
        return None

    def validated(self, call: Call, start: Start, adapts: bool) -> tuple[Start, Validation | None]:
        """Return start and validation; unless the warm start ``adapts``, samples may be held out."""
        raise NotImplementedError

    def settings(self, settings: LoopSettings) -> LoopSettings:
        """Return the settings of the loop, for these samples."""
        return settings

    def close(self) -> None:
        """Release files."""


def named_classes(configuration: Configuration, classes: Any, y: Any) -> PartialFitClasses | None:
    """Return the classes that the parameter ``classes`` names."""
    is_onnx = is_onnx_source(configuration.source)
    return expected_classes(classes, y, configuration.estimator_type, is_onnx)


def _occurring(whole: SourceTotals, y: Any, configuration: Configuration) -> PartialFitClasses | None:
    """Return all classes that occur if the first samples lack some."""
    columns = whole.classes
    if is_onnx_source(configuration.source):
        return None  # its classes are in the file, or the indices of its scores
    if columns is None or configuration.estimator_type != "classifier":
        return None
    own = np.asarray(y.toarray() if hasattr(y, "toarray") else y)
    first = own.reshape(len(own), -1).T
    if all(len(np.unique(part)) == len(known) for part, known in zip(first, columns, strict=True)):
        return None
    given = columns[0] if len(columns) == 1 else columns
    return PartialFitClasses(given, columns)
