"""Candidates of a search: selection of those that can be trained together, and preparation."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils import check_random_state

from ..data.columns import Columns
from ..data.samples import Data
from ..estimators.base import BaseOrtGradientEstimator
from ..estimators.pretrained import ParameterHashes, hashes_of
from ..exceptions import OrtlearnError
from ..fitting.callback_support import CALLBACKS
from ..fitting.fitted_model import FittedModel
from ..fitting.given import named_classes
from ..fitting.leaves.monotonic import with_monotonic_leaves
from ..fitting.run import model_after, new_step
from ..fitting.start import Start, labelled, new_start, with_anchor
from ..fitting.trainer import draw_seed
from ..fitting.warm_starts import leaf_estimates
from ..inference.running import LiveInference
from ..problem.automatic import automatic_batch_size
from ..problem.configuration import Configuration, Runtime
from ..problem.samples import Samples
from ..training.state import TrainingState
from ..training.steps.epoch_step import EpochStep
from .compiler import StackCompiler
from .stack import Member, train_together

__all__ = ["FoldTrainer", "SearchCandidate", "candidates_of"]


@dataclass(frozen=True)
class SearchCandidate:
    """An estimator with the parameters of a candidate; its configuration is None if it is trained alone."""

    hashes: ParameterHashes | None
    configuration: Configuration | None


def candidates_of(estimator: Any, parameters: Sequence[Mapping[str, Any]]) -> list[SearchCandidate]:
    """Return the candidates of a search."""
    return [_candidate(estimator, own) for own in parameters]


def _candidate(estimator: Any, parameters: Mapping[str, Any]) -> SearchCandidate:
    if not isinstance(estimator, BaseOrtGradientEstimator):
        return SearchCandidate(None, None)
    own = clone(estimator).set_params(**clone(dict(parameters), safe=False))
    hashes = hashes_of(own)
    if hashes is None:
        return SearchCandidate(None, None)
    try:
        configuration = own._configuration()
        configuration.check_fit()
    except Exception:  # raised again, for the user, when the candidate is trained alone
        return SearchCandidate(hashes, None)
    has_callbacks = any(getattr(estimator, name, None) for name in CALLBACKS)
    return SearchCandidate(
        hashes, None if has_callbacks or not _can_share_graph(configuration) else configuration
    )


def _can_share_graph(configuration: Configuration) -> bool:
    """Return whether a training runs a fixed number of epochs, one graph call each, without interruptions."""
    stopping, rate = configuration.stopping, configuration.updates.learning_rate
    return (
        configuration.runtime.step_class is EpochStep
        and configuration.runtime.device.is_native
        and rate is not None
        and not rate.full_batch
        and stopping.watched is None
        and stopping.max_seconds is None
        and not configuration.warm_start
        and not configuration.verbose
        and not (configuration.loss is not None and configuration.loss.in_python)
    )


@dataclass(frozen=True)
class _FoldModel:
    """Initial state of the candidates with the same model on the samples of a fold."""

    start: Start
    samples: Samples
    step: Any
    data: Data


class FoldTrainer:
    """Trains the candidates of a search fold by fold, and keeps their graphs."""

    def __init__(self, candidates: Sequence[SearchCandidate]):
        self.candidates = candidates
        self._compilers: dict[Runtime, StackCompiler] = {}

    def train(self, X: Any, y: Any, sample_weight: Any) -> list[FittedModel | None]:
        """Train candidates together if possible; None for those to be trained alone."""
        models: list[FittedModel | None] = [None] * len(self.candidates)
        bases: dict[str, _FoldModel | None] = {}
        stacks: list[_Stack] = []
        for number, candidate in enumerate(self.candidates):
            configuration = candidate.configuration
            if configuration is None or candidate.hashes is None:
                continue
            key = candidate.hashes.model
            if key not in bases:
                bases[key] = _prepare(configuration, X, y, sample_weight)
            base = bases[key]
            prepared = None if base is None else _as_member(base, configuration)
            if base is not None and prepared is not None:
                configuration = configuration.in_batches(prepared[0].problem.updates.batch_size)
                _stack_for(stacks, base.data, configuration).members.append((number, key, *prepared))
        live: dict[str, LiveInference] = {}
        for stack in stacks:
            for number, key, start, state in self._train_stack(stack):
                state = with_monotonic_leaves(start.problem, state)
                model = models[number] = model_after(stack.configuration, start, None, state)
                # candidates with the same model share a session for predictions, with weights as inputs
                if key not in live:
                    live[key] = LiveInference(model.problem, model.trained, model.runner.runtime)
                model.inference = live[key].with_weights(state.weights)
        return models

    def _train_stack(self, stack: _Stack) -> Iterator[tuple[int, str, Start, TrainingState]]:
        """Yield number, model, initial state and result of each candidate of a stack that was trained."""
        runtime, configuration = stack.configuration.runtime, stack.configuration
        if runtime not in self._compilers:
            self._compilers[runtime] = StackCompiler(runtime.device, runtime.n_jobs)
        settings = configuration.loop_settings(configuration.stopping.max_iter)
        members = [member for *_, member in stack.members]
        try:
            results = train_together(self._compilers[runtime], members, stack.data, settings)
        except OrtlearnError:  # raised again, for the user, when the candidate is trained alone
            return
        for (number, key, start, _), result in zip(stack.members, results, strict=True):
            if result is not None:
                yield number, key, start, result


@dataclass
class _Stack:
    """Candidates with the same data, number of epochs and batch size."""

    data: Data
    configuration: Configuration
    members: list[tuple[int, str, Start, Member]] = field(default_factory=list)


def _stack_for(stacks: list[_Stack], data: Data, configuration: Configuration) -> _Stack:
    """Return the stack for a candidate; a new one if none fits."""
    for stack in stacks:
        if _loop_key(stack.configuration) == _loop_key(configuration) and _equal_data(stack.data, data):
            return stack
    stacks.append(_Stack(data, configuration))
    return stacks[-1]


def _loop_key(configuration: Configuration) -> tuple[Any, ...]:
    updates, stopping = configuration.updates, configuration.stopping
    return stopping.max_iter, updates.batch_size, configuration.shuffle, configuration.runtime


def _equal_data(first: Data, second: Data) -> bool:
    """Return whether two trainings have equal data."""
    if first is second:
        return True
    parts = []
    for data in (first, second):
        features = {"": data.X} if data.features is None else data.features
        parts.append({**features, "y": data.y, "weight": data.sample_weight, "members": data.members})
    one, other = parts
    return one.keys() == other.keys() and all(_equal_arrays(one[name], other[name]) for name in one)


def _equal_arrays(first: Any, second: Any) -> bool:
    if first is None or second is None:
        return first is second
    return first.dtype == second.dtype and np.array_equal(first, second)


def _prepare(configuration: Configuration, X: Any, y: Any, sample_weight: Any) -> _FoldModel | None:
    """Convert the model of a configuration and prepare the samples; None if it must be trained alone."""
    random_state = check_random_state(copy.deepcopy(configuration.random_state))
    try:
        samples, seed = Samples(X, y, sample_weight), draw_seed(random_state)
        expected = named_classes(configuration, None, samples.y)
        start = new_start(configuration, samples, random_state, seed, None, expected)
        if start.from_model or start.problem.updates.in_units:
            return None
        samples, _ = labelled(start.problem, samples)
        step, data, _ = new_step(configuration, start)
    except Exception:  # raised again, for the user, when the candidate is trained alone
        return None
    if step.task.graph.statistics or leaf_estimates(configuration, start, step.task, data) is not None:
        return None
    loss, arrays = step.task.objective.loss, [data.X, *(data.features or {}).values()]
    if (loss is not None and loss.in_python) or any(issparse(a) or isinstance(a, Columns) for a in arrays):
        return None
    return _FoldModel(start, samples.with_checked_weights(), step, data)


def _as_member(base: _FoldModel, configuration: Configuration) -> tuple[Start, Member] | None:
    """Return a candidate with the prepared model and its own penalty and updates."""
    start, task = base.start, base.step.task
    weight, n_samples = base.samples.sample_weight, start.n_samples
    try:
        configuration = configuration.in_batches(automatic_batch_size(configuration, n_samples))
        problem = start.problem.with_objective_of(configuration, base.samples.y, weight, n_samples)
    except Exception:  # raised again, for the user, when the candidate is trained alone
        return None
    start, updates = replace(start, problem=problem), problem.updates
    task = task.changed(
        penalty=problem.penalty,
        learning_rate=updates.rule(n_samples, 0),
        clip_value=updates.clip_value,
        clip_norm=updates.clip_norm,
    )
    return start, Member(with_anchor(task, start), start.state)
