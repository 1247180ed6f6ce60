"""The samples of a call: in memory, of a source, or on a cluster."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import get_tags

from ..comparison.candidates import Candidate, Finished, KeptStart, Pull
from ..comparison.measures import weights_of
from ..exceptions import ObjectiveWarning, warn_user
from ..models import fitted_part
from ..models.capabilities import BoostedStages, GrowingEnsemble, capability_of
from ..onnx_files.loading import is_onnx_source
from ..preprocessing.initial_fit import is_fitted
from ..problem.boosted_stages import is_grown
from ..problem.configuration import Configuration
from ..problem.problem import Problem
from ..problem.samples import Samples, hold_out
from ..targets.given_classes import PartialFitClasses, expected_classes
from ..training.settings import LoopSettings
from ..training.state import TrainingState
from .callbacks import EstimatorView, FitTask
from .fitted_model import FittedModel
from .seen_samples import is_seen
from .sources.counts import Counts, SourceTotals
from .start import Start, labelled, new_start, next_start
from .validation import Validation
from .warm_starts import WarmStart, shifted_start

if TYPE_CHECKING:
    from .growth import Growth
    from .tree_streams import TreeStream

__all__ = ["Beginning", "Call", "Given", "InMemory", "named_classes"]

#: Smallest number of samples for which some are held out to decide when to stop.
FEWEST_SAMPLES = 20
#: Reason why a model is kept.
SEEN = "the model was fitted on these samples, or predicts them as well as a fit on them"
#: Warning of trees that ``partial_fit`` does not grow.
SPLITS = (
    "partial_fit trains the leaves of {} only: the splits stay those of the first samples. Forests and "
    "boosting of scikit-learn grow with their own loss; fit others again on a window of the last samples."
)
#: Warning of a named learning rate.
REPRODUCED = (
    "The model was fitted to these samples and reproduces their labels, whose noise this training fits, too. "
    "Use learning_rate='auto', which shifts the scores instead, or train on other samples."
)


@dataclass(frozen=True)
class Beginning:
    """Start of a call on its first samples; on a cluster, a worker runs it."""

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
    initial: Callable[[], np.random.RandomState]  # copies of the random state before the first draw
    parameters: Callable[[], dict[str, str]]  # fingerprint, which must be equal to resume the training


class Given:
    """The samples of a call, and what is decided on them."""

    #: Whether all samples are in memory, and these.
    in_memory = False
    samples: Any = None
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

    def opened(self, call: Call) -> Given:
        """Return the samples that are trained on: these, or those of a source in memory."""
        return self

    def start(self, beginning: Beginning) -> Start:
        """Return the start of the training."""
        raise NotImplementedError

    def warm_start(self, call: Call, start: Start) -> WarmStart | None:
        """Return the comparison of candidates of a warm start, if any."""
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


class InMemory(Given):
    """Samples in memory."""

    in_memory = True

    def __init__(self, samples: Samples, held_out: Samples | None):
        super().__init__()
        self.samples, self._held_out = samples, held_out
        self._decided: Candidate | None = None  # where shifts of the scores were compared
        self.has_validation, self.is_split = held_out is not None, held_out is None

    def open(self, call: Call) -> Samples:
        """Hold samples out for early stopping, unless they are given; return the others."""
        own = call.beginning
        if own.configuration.stopping.early_stopping and self._held_out is None:
            _check_splits(own.configuration.source)
            kept, others = hold_out(self.samples, own.configuration, own.random_state)
            self.samples, self._held_out = self.samples.take(kept), self.samples.take(others)
        return self.samples

    def start(self, beginning: Beginning) -> Start:
        """Return the start of the training."""
        start = beginning.start(self.samples)
        self.samples, _ = labelled(start.problem, self.samples)
        first = beginning.last is None and not beginning.adds_epoch
        shifted = shifted_start(beginning.configuration, start, self.samples) if first else None
        if shifted is not None:
            self._decided = KeptStart() if shifted is start else Finished(shifted.state)
        return shifted or start

    def warm_start(self, call: Call, start: Start) -> WarmStart | None:
        """Return the comparison of candidates, if training is regularised towards its start."""
        own, problem = call.beginning, start.problem
        is_free = own.configuration.updates.learning_rate is None
        if self._decided is not None:  # other weights were fitted to the samples
            if is_free:
                return WarmStart(self.samples, own.random_state, candidate=self._decided)
            warn_user(REPRODUCED, UserWarning, once=True)
        growth, keeps = None, own.configuration.keep_better
        compared = keeps and start.from_model and problem.loss is not None
        if compared:
            from .growth import Growth  # only ensembles need it

            expected = named_classes(own.configuration, own.classes, self.samples.y)
            growth = Growth.of(own.configuration, start, self.samples, expected)
        if call.resumed is None and self._is_seen(own, start, growth):
            # without a reason, it is the fit that was asked for
            reason = SEEN if is_fitted(own.configuration.source) or own.last is not None else ""
            return WarmStart(self.samples, own.random_state, candidate=KeptStart(), reason=reason)
        if not (is_free and problem.updates.is_solver and compared):
            return None
        if call.resumed is None and self.is_split and (missing := _missing_classes(start)):
            reason = f"the samples lack the classes {missing}, which training would unlearn"
            return WarmStart(self.samples, own.random_state, candidate=KeptStart(), reason=reason)
        candidate = None if call.resumed is None else call.resumed.fingerprint.candidate or Pull()
        return WarmStart(self.samples, own.random_state, growth, candidate)

    def _is_seen(self, beginning: Beginning, start: Start, growth: Growth | None) -> bool:
        """Return whether the samples prove nothing, since the starting weights may be fitted on them."""
        configuration, problem, last = beginning.configuration, start.problem, beginning.last
        compared = start.from_model and problem.source is not None and problem.loss is not None
        if not (compared and self.is_split and configuration.is_default) or is_grown(configuration, last):
            return False
        is_new = self._held_out is not None and not is_fitted(configuration.source)  # fitted on the others
        folds_state = copy.deepcopy(beginning.random_state)  # the comparison draws the same folds
        given = configuration, start, self.samples, last is not None, growth, folds_state
        return not is_new and is_seen(*given)

    def tree_stream(self, call: Call, start: Start) -> TreeStream | None:
        """Return the call of ``partial_fit`` for an ensemble of trees; single trees are an error."""
        from .growth import Growth
        from .tree_streams import TreeStream

        _check_grows(start.problem)
        own = call.beginning
        expected = named_classes(own.configuration, own.classes, self.samples.y)
        growth = Growth.of(own.configuration, start, self.samples, expected, of_stream=True)
        if growth is None:
            _warn_of_splits(start.problem)
            return None
        return TreeStream(own.configuration, start, self.samples, own.last, growth)

    def validated(self, call: Call, start: Start, adapts: bool) -> tuple[Start, Validation | None]:
        """Hold samples out, to decide when to stop or which weights to keep, and return the validation."""
        own, is_open, members = call.beginning, not adapts and self._held_out is None, None
        if is_open and _needs_validation(own, start):
            with suppress(ValueError):  # too few samples of a class: no samples are held out
                kept, others = hold_out(self.samples, own.configuration, own.random_state)
                members = None if start.data.members is None else start.data.members[others]
                start = replace(start, data=start.data.take(kept))
                self._held_out = self.samples.take(others)
        held_out = self._held_out
        if held_out is None:
            return start, None
        return start, Validation.of(own.configuration, start, held_out, call.view.with_model, members)


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


def _missing_classes(start: Start) -> list:
    """Return the classes of a model of which there is no sample with a positive weight."""
    indices = start.problem.encoder.class_indices(start.data.y)
    if indices is None:
        return []
    return np.delete(start.problem.targets.classes, np.unique(indices[weights_of(start.data) > 0])).tolist()


def _needs_validation(beginning: Beginning, start: Start) -> bool:
    """Return whether to hold samples out, to decide when to stop or which weights to keep."""
    configuration, enough = beginning.configuration, len(start.data) >= FEWEST_SAMPLES
    if beginning.adds_epoch or is_grown(configuration, beginning.last):
        return False
    compared = start.from_model and configuration.keep_better
    return start.problem.flexible and enough and (configuration.updates.learning_rate is None or compared)


def _check_splits(source: Any) -> None:
    """Raise an error if samples cannot be held out, since the model takes a kernel matrix."""
    if is_onnx_source(source) or is_fitted(source):
        return
    if get_tags(source).input_tags.pairwise:
        raise ValueError(
            f"early_stopping cannot hold samples out of X, since {type(source).__name__} takes a kernel "
            "matrix with a column for each training sample: pass X_val, the kernel of other samples with "
            "those of X, or a fitted model."
        )


def _check_grows(problem: Problem) -> None:
    """Raise an error for single trees and trees of files, whose splits would not change."""
    trainable = problem.trainable
    of_file = all(trainable.parameters[name].role == "table" for name in trainable.trained)
    of_file = of_file and any(node.op_type.startswith("TreeEnsemble") for node in trainable.model.graph.node)
    part = None if problem.source is None else fitted_part(problem.source)
    if not (trainable.from_file and of_file) and not hasattr(part, "tree_"):
        return
    name = "the trees of an ONNX file" if part is None else type(part).__name__
    raise ValueError(
        f"partial_fit cannot grow {name}: the splits would stay those of the first samples. Fit again on a "
        "window of the last samples, or use a forest or boosting of scikit-learn, whose trees partial_fit "
        "replaces. To train the values of the leaves only, use fit with warm_start=True."
    )


def _warn_of_splits(problem: Problem) -> None:
    """Warn of ensembles of trees whose splits do not change in ``partial_fit``."""
    part = None if problem.source is None else fitted_part(problem.source)
    is_ensemble = any(capability_of(part, kind) is not None for kind in (GrowingEnsemble, BoostedStages))
    known = problem.trainable
    if is_ensemble and any(known.parameters[name].role == "table" for name in known.trained):
        warn_user(SPLITS.format(type(part).__name__), ObjectiveWarning, once=True)
