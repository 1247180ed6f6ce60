"""Fit a model: configuration, samples and the last fitted model result in a new fitted model."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from sklearn.utils import check_random_state, get_tags

from ..comparison.candidates import Candidate
from ..onnx_files.loading import is_onnx_source
from ..preprocessing.initial_fit import is_fitted
from ..problem.configuration import Configuration
from ..problem.input_validation import read_samples
from ..problem.samples import Samples, check_lengths, hold_out
from ..targets.encoding import check_labels
from ..targets.given_classes import PartialFitClasses, expected_classes
from ..targets.label_errors import check_validation_classes
from ..training.settings import LoopSettings
from ..training.state import TrainingState
from .callbacks import EstimatorView, FitTask
from .fingerprint import Fingerprint
from .fingerprint_texts import data_texts, parameter_texts, random_state_text
from .fitted_model import FittedModel
from .growth import Growth
from .leaves.unseen_members import members_of
from .resumed_training import checked_parameters, find_resumption, resumed_start
from .run import grown_model, is_grown, train
from .source_counts import Counts
from .start import Start, data_of, labelled, new_start, next_start
from .validation import Validation
from .warm_starts import WarmStart

__all__ = ["FitCall", "Trainer", "draw_seed", "named_classes"]

#: Smallest number of samples for which some are held out to decide when to stop.
FEWEST_SAMPLES = 20


@dataclass(frozen=True)
class FitCall:
    """The beginning of a call of ``fit`` or ``fit_stream``, for a new training or one that is resumed."""

    task: FitTask | None  # task of the call, for callbacks
    resumed: TrainingState | None  # state of a training to resume
    random_state: np.random.RandomState
    initial_random_state: np.random.RandomState  # copy from before the first draw
    seed: int  # seed of the orders of samples, drawn first
    parameters: Callable[[], dict[str, str]]  # fingerprint, which must be equal to resume the training

    def train(
        self,
        configuration: Configuration,
        start: Start,
        settings: LoopSettings,
        validation: Validation | None,
        warm: WarmStart | None = None,
        is_split: bool = False,
        shuffle_buffer: int | None = None,
        counts: dict[str, Counts] | None = None,
    ) -> FittedModel:
        """Train from the start or the position to resume; with ``is_split``, validation is a part of X."""
        given, resumed = start, self.resumed
        known: Fingerprint | None = None if resumed is None else resumed.fingerprint
        texts = cache(lambda: data_texts(given, settings, validation, shuffle_buffer, is_split))
        if resumed is not None:
            start = resumed_start(resumed, start, texts())
        elif shuffle_buffer is not None:
            texts()  # the source may not be readable when the state is written

        def fingerprint_of(candidate: Candidate | None) -> Callable[[], Fingerprint]:
            drawn = random_state_text(self.random_state) if known is None or not known.drawn else known.drawn
            decided: dict[str, Any] = {"drawn": drawn, "candidate": candidate, "counts": counts or {}}
            return lambda: Fingerprint(self.initial_random_state, self.parameters(), texts(), **decided)

        return train(configuration, start, settings, validation, self.task, warm, fingerprint_of, resumed)


@dataclass(frozen=True)
class Trainer:
    """A call of ``fit`` or ``partial_fit``."""

    configuration: Configuration  # parameters of the estimator, resolved
    last: FittedModel | None  # ``partial_fit`` and warm starts begin with its weights
    view: EstimatorView  # estimator in training, for callbacks and scorers
    # Estimator whose method was called; its calls of ``partial_fit`` share one progress bar.
    owner: Any = None
    # Parameters of estimator and parts, checked on resumption.
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def is_automatic(self) -> bool:
        """Whether the learning rate is ``"auto"``."""
        return self.configuration.updates.learning_rate is None

    def fit(
        self,
        samples: Samples,
        held_out: Samples | None,
        classes: Any = None,
        resumed: TrainingState | None = None,
    ) -> FittedModel:
        """Return a model trained for ``max_iter`` epochs; some samples may be held out.

        A resumed training draws its decisions again from its initial random state, except for the candidate,
        which is stored, and continues at the stored position.
        """
        configuration, stopping = self.configuration, self.configuration.stopping
        if self._grown_source is not None and self._grown_source is not configuration.source:
            trainer = replace(self, configuration=replace(configuration, source=self._grown_source))
            return trainer.fit(samples, held_out, classes, resumed)
        configuration.check_fit()
        expected = named_classes(configuration, classes, samples.y)
        call = self.new_call(resumed)
        resumed, random_state = call.resumed, call.random_state
        is_split = held_out is None
        if stopping.early_stopping and held_out is None:
            _check_splits(configuration.source)
            parts = hold_out(samples, configuration, random_state)
            samples, held_out = samples.take(parts[0]), samples.take(parts[1])
        if call.task is not None:
            call.task.begin(samples)
        last = self.last if configuration.warm_start and resumed is None else None
        start = new_start(configuration, samples, random_state, call.seed, last, expected)
        if self._grown_source is not None:
            start = replace(start, state=replace(start.state, grown=True))
        samples, _ = labelled(start.problem, samples)
        settings, members = configuration.loop_settings(stopping.max_iter), None
        adapts = self._adapts(start)
        if (
            not adapts
            and held_out is None
            and not is_grown(configuration, last)
            and self._needs_validation(start)
        ):
            with suppress(ValueError):  # too few samples of a class: no samples are held out
                kept, others = hold_out(samples, configuration, random_state)
                members = None if start.data.members is None else start.data.members[others]
                start, held_out = replace(start, data=start.data.take(kept)), samples.take(others)
        watches = self.is_automatic or members_of(start.problem) is not None  # leaves outnumber samples
        if not adapts and held_out is not None and watches and not stopping.early_stopping:
            settings = replace(settings, watch="validation_loss", validation_every=1, tol=0.0)
        validation = None if held_out is None else self.validation(start, held_out, members)
        if is_grown(configuration, last):
            return grown_model(configuration, start, settings, validation, call.task)
        warm, candidate = None, None if resumed is None else resumed.fingerprint.candidate
        if adapts and (resumed is None or candidate is not None):
            growth = Growth.of(configuration, start, samples, expected)
            warm = WarmStart(samples, random_state, growth, candidate)
        return call.train(configuration, start, settings, validation, warm, is_split)

    def new_call(self, resumed: TrainingState | None) -> FitCall:
        """Return the beginning of a call; a callback may also provide a training to resume."""
        configuration = self.configuration
        task = self.view.task("fit", configuration.stopping.max_iter, resumed is not None)
        drawn_from = random_state_text(self.parameters["random_state"])  # before the first draw
        texts = cache(lambda: {**parameter_texts(self.parameters), "random_state": drawn_from})
        if resumed is None and task is not None and task.path_to_resume is not None:
            resumed = find_resumption(task.path_to_resume)
        if resumed is None:
            random_state = check_random_state(configuration.random_state)
        else:
            known = checked_parameters(resumed.fingerprint, texts())
            texts = cache(lambda: known)
            random_state = resumed.fingerprint.fresh_random_state()
        initial = copy.deepcopy(random_state)
        return FitCall(task, resumed, random_state, initial, draw_seed(random_state), texts)

    def partial_fit(
        self,
        samples: Samples,
        classes: Any,
        total_weight: float | None,
        held_out: Samples | None = None,
    ) -> FittedModel:
        """Return a model trained for one more epoch than the last one."""
        configuration = self.configuration
        configuration.check_partial_fit(held_out is not None)
        random_state = check_random_state(configuration.random_state)
        expected = named_classes(configuration, classes, samples.y)
        task = self.view.task("partial_fit", 1)
        if task is not None:
            task.begin(samples)
        if self.last is None:
            seed = draw_seed(random_state)
            start = new_start(configuration, samples, random_state, seed, None, expected, True, total_weight)
        else:
            start = next_start(configuration, samples, self.last, total_weight)
            if expected is not None:
                expected.check_known(start.problem.targets.classes, "the first call")
        settings = configuration.loop_settings(start.state.n_iter + 1, self.owner)
        validation = None if held_out is None else self.validation(start, held_out)
        return train(configuration, start, settings, validation, task)

    def _adapts(self, start: Start) -> bool:
        """Return whether training is regularised towards the weights of the model."""
        problem = start.problem
        compared = self.configuration.keep_better and start.from_model and problem.loss is not None
        return self.is_automatic and problem.updates.is_solver and compared

    def _needs_validation(self, start: Start) -> bool:
        """Return whether to hold samples out, to decide when to stop or which weights to keep."""
        compared = start.from_model and self.configuration.keep_better
        enough = len(start.data) >= FEWEST_SAMPLES
        return start.problem.flexible and enough and (self.is_automatic or compared)

    @property
    def _grown_source(self) -> Any:
        """Last model if trees were added to it and a warm start continues it, or None."""
        last = self.last if self.configuration.warm_start else None
        return last.problem.source if last is not None and last.state.grown else None

    def validation(self, start: Start, samples: Samples, members: np.ndarray | None = None) -> Validation:
        """Return the validation on held-out samples, with weights of the members of an ensemble."""
        problem = start.problem
        if problem.needs_labels and samples.y is None:
            raise ValueError("y_val is missing: pass both X_val and y_val, or neither.")
        samples = labelled(problem, samples.with_checked_weights())[0]
        check_labels(samples.y, "y_val")
        check_validation_classes(samples.y, problem.targets.classes)
        check_lengths(samples.X, samples.y)
        data = data_of(problem, read_samples(problem, samples.X, start.features), samples)
        data.members = members
        return Validation(self.configuration, problem, start.features, samples, data, self.view.with_model)


def named_classes(configuration: Configuration, classes: Any, y: Any) -> PartialFitClasses | None:
    """Return the classes that the parameter ``classes`` names."""
    is_onnx = is_onnx_source(configuration.source)
    return expected_classes(classes, y, configuration.estimator_type, is_onnx)


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


def draw_seed(random_state: np.random.RandomState) -> int:
    """Return the seed of the orders of samples, from 0 to 2**63 - 1."""
    return int(random_state.randint(np.iinfo(np.int64).max, dtype=np.int64))
