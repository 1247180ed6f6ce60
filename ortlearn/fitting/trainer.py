"""Fit a model: configuration, samples and the last fitted model result in a new fitted model."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..comparison.candidates import Candidate
from ..problem.boosted_stages import is_grown
from ..problem.configuration import Configuration
from ..problem.separate_parts import with_trained_parts
from ..training.state import TrainingState
from .callbacks import EstimatorView
from .fingerprint import Fingerprint
from .fingerprint_texts import data_texts, generator_text, parameter_texts, random_state_text
from .fitted_model import FittedModel
from .given import Beginning, Call, Given
from .leaves.unseen_members import members_of
from .run import loss_of_start, train, train_without_step

__all__ = ["Trainer", "draw_seed"]


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
    begun: float = field(default_factory=time.monotonic)

    def fit(self, given: Given, classes: Any = None, resume_from: Any = None) -> FittedModel:
        """Return a model trained up to ``max_iter`` epochs.

        A resumed training draws its decisions again from its initial random state, except for the candidate,
        which is stored, and continues at the stored position.
        """
        configuration = self.configuration
        resumed = None if resume_from is None else _resumption(resume_from)
        if self._grown_source is not None:
            configuration = replace(configuration, source=self._grown_source)
        configuration.check_fit()
        with closing(given):
            given.check(configuration)
            task = self.view.task("fit", configuration.stopping.max_iter, resumed is not None)
            drawn_from = random_state_text(self.parameters["random_state"])  # before the first draw
            texts = cache(lambda: {**parameter_texts(self.parameters), "random_state": drawn_from})
            if resumed is None and task is not None and task.path_to_resume is not None:
                resumed = _resumption(task.path_to_resume)
            if resumed is None:
                random_state = check_random_state(configuration.random_state)
            else:
                from .resumed_training import checked_parameters

                known = checked_parameters(resumed.fingerprint, texts())
                texts = cache(lambda: known)
                random_state = resumed.fingerprint.fresh_random_state()
            given_state = configuration.random_state if resumed is None else None
            initial, seed = _copies(random_state, given_state), draw_seed(random_state)
            if resumed is None and given.in_memory:
                configuration = with_trained_parts(self.owner, configuration, given.samples, random_state)
            last = self.last if configuration.warm_start and resumed is None else None
            beginning = Beginning(configuration, random_state, seed, last, classes)
            return self._train(given, Call(beginning, self.view, task, resumed, initial, texts))

    def partial_fit(self, given: Given, classes: Any, total_weight: float | None) -> FittedModel:
        """Return a model trained for one more epoch than the last one."""
        configuration = self.configuration
        configuration.check_partial_fit(given.has_validation)
        random_state = check_random_state(configuration.random_state)
        task = self.view.task("partial_fit", 1)
        seed = draw_seed(random_state) if self.last is None else 0
        beginning = Beginning(configuration, random_state, seed, self.last, classes, True, total_weight)
        return self._train(given, Call(beginning, self.view, task, None, lambda: random_state, dict))

    def _train(self, given: Given, call: Call) -> FittedModel:
        """Return the model after a call: start, validation and warm start depend on the samples."""
        beginning, resumed = call.beginning, call.resumed
        configuration, is_fit = beginning.configuration, not beginning.adds_epoch
        stopping = configuration.stopping
        first, given = given.open(call), given.opened(call)
        if call.task is not None:
            call.task.begin(first)
        start = given.start(beginning)
        if not is_fit and call.task is not None and call.task.restarts:
            start = replace(start, state=start.state.restarted())
        if is_fit and self._grown_source is not None:
            start = replace(start, state=replace(start.state, grown=True))
        warm = given.warm_start(call, start) if is_fit else None
        start, validation = given.validated(call, start, warm is not None)
        configuration = configuration.in_batches(start.problem.updates.batch_size)
        if is_fit:
            settings = configuration.loop_settings(stopping.max_iter)
            if stopping.max_seconds is not None:
                settings = replace(settings, deadline=self.begun + stopping.max_seconds)
        else:
            settings = configuration.loop_settings(start.state.n_iter + 1, self.owner)
        watches = configuration.updates.learning_rate is None or members_of(start.problem) is not None
        if is_fit and watches and warm is None and validation is not None and not stopping.early_stopping:
            settings = replace(settings, watch="validation_loss", validation_every=1, tol=0.0)
        settings = given.settings(settings)
        if is_fit and given.in_memory and is_grown(configuration, beginning.last):
            update = partial(loss_of_start, configuration, start)
            return train_without_step(configuration, start, settings, validation, call.task, update)
        stream = None if is_fit else given.tree_stream(call, start)
        if stream is not None:
            return train_without_step(configuration, start, settings, validation, call.task, stream.trained)
        if not is_fit:
            return train(configuration, start, settings, validation, call.task)
        parts = (start, settings, validation, given.shuffle_buffer, given.is_split)
        texts = cache(lambda: data_texts(*parts))
        if resumed is not None:
            from .resumed_training import resumed_start

            start = resumed_start(resumed, start, texts())
        elif given.shuffle_buffer is not None:
            texts()  # the source may not be readable when the state is written
        fingerprints = partial(_fingerprint, given, call, texts)
        return train(configuration, start, settings, validation, call.task, warm, fingerprints, resumed)

    @property
    def _grown_source(self) -> Any:
        """Last model if trees were added to it and a warm start continues it, or None."""
        last = self.last if self.configuration.warm_start else None
        return last.problem.source if last is not None and last.state.grown else None


def _resumption(source: Any) -> TrainingState:
    """Return the state of the training to resume from a file, a folder or an estimator."""
    from .resumed_training import find_resumption  # imports the records of files

    return find_resumption(source)


def _fingerprint(
    given: Given, call: Call, data: Callable[[], dict[str, str]], candidate: Candidate | None
) -> Callable[[], Fingerprint]:
    """Return the function that returns the fingerprint of a call whose warm start chose a candidate."""
    known = "" if call.resumed is None else call.resumed.fingerprint.drawn
    state = call.beginning.random_state.get_state(legacy=False)
    return lambda: Fingerprint(
        call.initial(),
        call.parameters(),
        data(),
        drawn=known or generator_text(state),
        candidate=candidate,
        counts=given.counts,
    )


def _copies(random_state: np.random.RandomState, given: Any) -> Callable[[], np.random.RandomState]:
    """Return the function that returns copies of a random state as it is now; ``given`` is the parameter."""
    if isinstance(given, int | np.integer):  # a new state of the same seed is faster than a copy
        return partial(check_random_state, given)
    return partial(copy.deepcopy, copy.deepcopy(random_state))


def draw_seed(random_state: np.random.RandomState) -> int:
    """Return the seed of the orders of samples, from 0 to 2**63 - 1."""
    return int(random_state.randint(np.iinfo(np.int64).max, dtype=np.int64))
