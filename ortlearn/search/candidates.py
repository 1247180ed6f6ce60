"""Candidates of a search: selection of those that can be trained together, and preparation."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils import check_random_state

from ..data.columns import Columns
from ..data.samples import Data
from ..estimators.base import BaseOrtGradientEstimator
from ..estimators.pretrained import ParameterKeys, key_of, keys_of
from ..exceptions import OrtlearnError
from ..fitting.callback_support import CALLBACKS
from ..fitting.callbacks import EstimatorView
from ..fitting.fitted_model import FittedModel
from ..fitting.given import Beginning, Call, InMemory
from ..fitting.leaves.monotonic import with_monotonic_leaves
from ..fitting.leaves.unseen_members import members_of
from ..fitting.run import model_after, new_step, train
from ..fitting.start import Start, labelled, with_anchor
from ..fitting.trainer import draw_seed
from ..fitting.validation import Validation
from ..fitting.warm_starts import leaf_estimates
from ..inference.running import LiveInference
from ..problem.automatic import automatic_batch_size
from ..problem.configuration import Configuration, Runtime
from ..problem.samples import Samples
from ..training.state import TrainingState, Unfinished
from ..training.steps.epoch_step import EpochStep
from .compiler import StackCompiler
from .stack import MAX_BYTES, Member, train_together

__all__ = ["Fold", "JointTrainer", "SearchCandidate", "candidates_of"]


@dataclass(frozen=True)
class SearchCandidate:
    """An estimator with the parameters of a candidate; its configuration is None if it is trained alone."""

    keys: ParameterKeys | None
    configuration: Configuration | None
    estimator: Any = None


def candidates_of(estimator: Any, parameters: Sequence[Mapping[str, Any]]) -> list[SearchCandidate]:
    """Return the candidates of a search."""
    return [_candidate(estimator, own) for own in parameters]


def _candidate(estimator: Any, parameters: Mapping[str, Any]) -> SearchCandidate:
    if not isinstance(estimator, BaseOrtGradientEstimator):
        return SearchCandidate(None, None)
    own = clone(estimator).set_params(**clone(dict(parameters), safe=False))
    keys = keys_of(own)
    if keys is None:
        return SearchCandidate(None, None)
    try:
        configuration = own._configuration()
        configuration.check_fit()
    except Exception:  # raised again, for the user, when the candidate is trained alone
        return SearchCandidate(keys, None)
    has_callbacks = any(getattr(estimator, name, None) for name in CALLBACKS)
    if has_callbacks or not _can_share_samples(configuration):
        return SearchCandidate(keys, None)
    return SearchCandidate(keys, configuration, own)


def _can_share_samples(configuration: Configuration) -> bool:
    """Return whether a training runs epochs, one graph call each, or a solver, without interruptions."""
    return (
        configuration.runtime.step_class is EpochStep
        and configuration.runtime.device.is_native
        and configuration.stopping.max_seconds is None
        and not configuration.warm_start
        and not configuration.verbose
        and not (configuration.loss is not None and configuration.loss.in_python)
    )


@dataclass(frozen=True)
class Fold:
    """Training samples of a fold, as they are given to ``fit``."""

    number: int
    X: Any
    y: Any
    sample_weight: Any


@dataclass(frozen=True)
class _FoldModel:
    """Initial state of the candidates with the same model on the samples of a fold."""

    start: Start
    samples: Samples
    step: Any
    data: Data
    validation: Validation | None


@dataclass(frozen=True)
class _Entry:
    """A candidate on a fold with prepared samples; without a member, it is trained by a solver."""

    fold: int
    number: int
    progress: Hashable  # key of its state for later calls
    configuration: Configuration
    start: Start
    validation: Validation | None
    member: Member | None


class JointTrainer:
    """Trains the candidates of a search together, and keeps graphs and, if it ``continues``, states."""

    def __init__(self, continues: bool = False):
        self.continues = continues
        self._compilers: dict[Runtime, StackCompiler] = {}
        self._models: dict[tuple[int, Hashable], _FoldModel | None] = {}  # by fold and model
        self._states: dict[Hashable, TrainingState] = {}  # by fold, candidate and rates

    def train(
        self, candidates: Sequence[SearchCandidate], folds: Iterable[Fold]
    ) -> Iterator[list[FittedModel | None]]:
        """Yield the models of each fold; None for candidates to be trained alone."""
        entries: list[_Entry] = []
        n_bytes, n_folds = 0, 0
        for fold in folds:
            entries += self._entries(candidates, fold)
            n_folds += 1
            n_bytes += sum(_bytes(base.data) for base in self._models.values() if base is not None)
            if n_bytes > MAX_BYTES:  # the samples of the next folds would need too much memory
                yield from self._trained(candidates, entries, fold.number + 1 - n_folds, n_folds)
                entries, n_bytes, n_folds = [], 0, 0
                self._models.clear()
        if n_folds:
            yield from self._trained(candidates, entries, fold.number + 1 - n_folds, n_folds)
        if not self.continues:
            self._models.clear()

    def _entries(self, candidates: Sequence[SearchCandidate], fold: Fold) -> Iterator[_Entry]:
        """Yield the candidates that share prepared samples."""
        for number, candidate in enumerate(candidates):
            configuration = candidate.configuration
            if configuration is None or candidate.keys is None:
                continue
            rate = configuration.updates.learning_rate
            key = fold.number, (candidate.keys.model, rate is None or rate.full_batch)
            if key not in self._models:
                self._models[key] = self._prepared(candidate, fold)
            base = self._models[key]
            prepared = None if base is None else _as_member(base, configuration)
            if prepared is not None:
                start, member = prepared
                # the rates of a schedule that spans all epochs differ if these are more
                progress = *key, candidate.keys.updates, key_of(rate)
                known = self._states.get(progress)
                if member is not None and known is not None:
                    member = replace(member, state=known)
                assert base is not None
                yield _Entry(fold.number, number, progress, configuration, start, base.validation, member)

    def _prepared(self, candidate: SearchCandidate, fold: Fold) -> _FoldModel | None:
        """Prepare a model, on the samples of another model if they are equal."""
        base = _prepare(candidate, fold)
        if base is None:
            return None
        for (number, _), other in self._models.items():
            if number == fold.number and other is not None and _equal_data(other.data, base.data):
                return replace(base, data=other.data)
        return base

    def _trained(
        self, candidates: Sequence[SearchCandidate], entries: Sequence[_Entry], first: int, n_folds: int
    ) -> list[list[FittedModel | None]]:
        """Train candidates on some folds, and return the models of each fold."""
        models: list[list[FittedModel | None]] = [[None] * len(candidates) for _ in range(n_folds)]
        by_runtime: dict[Runtime, list[_Entry]] = {}
        for entry in entries:
            if entry.member is None:
                models[entry.fold - first][entry.number] = _solved(entry)
            else:
                by_runtime.setdefault(entry.configuration.runtime, []).append(entry)
        live: dict[tuple[int, Hashable], LiveInference] = {}
        for runtime, own in by_runtime.items():
            if runtime not in self._compilers:
                self._compilers[runtime] = StackCompiler(runtime.device, runtime.n_jobs)
            try:
                members = [entry.member for entry in own if entry.member is not None]
                outcomes = train_together(self._compilers[runtime], members)
            except OrtlearnError:  # raised again, for the user, when the candidates are trained alone
                continue
            for entry, outcome in zip(own, outcomes, strict=True):
                if outcome is None:
                    continue
                keys = candidates[entry.number].keys
                assert keys is not None
                key = entry.fold, keys.model
                if self.continues:
                    self._states[entry.progress] = outcome.last
                state = with_monotonic_leaves(entry.start.problem, outcome.final)
                model = model_after(entry.configuration, entry.start, None, state)
                # candidates with the same model share a session for predictions, with weights as inputs
                if key not in live:
                    live[key] = LiveInference(model.problem, model.trained, runtime)
                model.inference = live[key].with_weights(state.weights)
                models[entry.fold - first][entry.number] = model
        return models


def _solved(entry: _Entry) -> FittedModel | None:
    """Return the model that a solver finds; None if it fails, to be trained alone."""
    start = entry.start
    configuration = entry.configuration.in_batches(start.problem.updates.batch_size)
    settings = configuration.loop_settings(configuration.stopping.max_iter)
    try:
        return train(configuration, start, settings, entry.validation)
    except Unfinished as error:
        raise error.__cause__ or error from None
    except Exception:  # raised again, for the user, when the candidate is trained alone
        return None


def _bytes(data: Data) -> int:
    """Return the bytes of the samples of a fold."""
    arrays = [data.X, *(data.features or {}).values(), data.y]
    return sum(getattr(array, "nbytes", 0) for array in arrays)


def _equal_data(first: Data, second: Data) -> bool:
    """Return whether two trainings have equal data."""
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


def _prepare(candidate: SearchCandidate, fold: Fold) -> _FoldModel | None:
    """Convert the model of a candidate and prepare the samples; None if it must be trained alone."""
    configuration = candidate.configuration
    assert configuration is not None
    random_state = check_random_state(copy.deepcopy(configuration.random_state))
    try:
        samples, seed = Samples(fold.X, fold.y, fold.sample_weight), draw_seed(random_state)
        view, given = EstimatorView(candidate.estimator), InMemory(samples, None)
        given.check(configuration)
        beginning = Beginning(configuration, random_state, seed, None, None)
        call = Call(beginning, view, None, None, lambda: random_state, dict)
        samples = given.open(call)
        start = given.start(beginning)
        updates = start.problem.updates
        if start.from_model or updates.in_units or members_of(start.problem) is not None:
            return None
        is_chosen = configuration.updates.learning_rate is None
        start, validation = given.validated(call, start, False)
        samples, _ = labelled(start.problem, samples)
        step, data, _ = new_step(configuration, start)
    except Exception:  # raised again, for the user, when the candidate is trained alone
        return None
    if is_chosen and (validation is not None or not updates.is_solver):
        return None  # the rate is chosen by held-out samples
    if step.task.graph.statistics or leaf_estimates(configuration, start, step.task, data) is not None:
        return None
    loss, arrays = step.task.objective.loss, [data.X, *(data.features or {}).values()]
    if (loss is not None and loss.in_python) or any(issparse(a) or isinstance(a, Columns) for a in arrays):
        return None
    return _FoldModel(start, samples.with_checked_weights(), step, data, validation)


def _as_member(base: _FoldModel, configuration: Configuration) -> tuple[Start, Member | None] | None:
    """Return a candidate with the prepared model and its own penalty and updates; no member for a solver."""
    start, task = base.start, base.step.task
    weight, n_samples = base.samples.sample_weight, start.n_samples
    try:
        configuration = configuration.in_batches(automatic_batch_size(configuration, n_samples))
        problem = start.problem.with_objective_of(configuration, base.samples.y, weight, n_samples)
    except Exception:  # raised again, for the user, when the candidate is trained alone
        return None
    start, updates = replace(start, problem=problem), problem.updates
    if updates.is_solver:
        return start, None
    task = task.changed(
        penalty=problem.penalty,
        learning_rate=updates.rule(n_samples, 0),
        clip_value=updates.clip_value,
        clip_norm=updates.clip_norm,
    )
    settings = configuration.loop_settings(configuration.stopping.max_iter)
    validate = None if base.validation is None else base.validation.measure
    return start, Member(with_anchor(task, start), start.state, base.data, settings, validate)
