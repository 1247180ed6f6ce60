"""Training of several candidates in one graph."""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..data.orders import batch_sizes, batch_weights, epoch_order
from ..data.samples import Data
from ..exceptions import OrtlearnError
from ..learning_rates import Rates
from ..runtime.buffers import CarriedBuffers, sample_bytes
from ..runtime.calls import BoundCall
from ..runtime.devices import Device, ort_value
from ..training.graphs.names import RATE
from ..training.graphs.task import TrainingTask
from ..training.monitor import Monitor
from ..training.settings import LoopSettings, Validate
from ..training.state import States, TrainingState, Weights
from ..training.steps.batch_loops import LOSSES
from ..training.steps.epoch_graph import LAST, order_arrays
from .compiler import Family, Sizes, StackCompiler

__all__ = ["MAX_BYTES", "Member", "Outcome", "train_together"]

#: Maximum number of weights of a stack: more do not fit into the cache of a core, and nothing is gained.
MAX_ELEMENTS = 200_000
#: Number of candidates from which a stack for each order of samples is faster than one for several orders.
ENOUGH = 12
#: Share of the candidates of a stack that have stopped at which the others continue in a smaller one.
STOPPED = 0.25
#: Maximum bytes of samples of several folds that a stack joins.
MAX_BYTES = 1 << 28


@dataclass(frozen=True)
class Member:
    """A candidate on the samples of a fold."""

    task: TrainingTask
    state: TrainingState  # with which it begins
    data: Data
    settings: LoopSettings
    validate: Validate | None = None

    @property
    def sizes(self) -> Sizes:
        """Sizes of the batches of an epoch."""
        full, rest = [*batch_sizes(len(self.data), self.settings.batch_size), 0][:2]
        return Sizes(full, rest, len(self.data) // full)

    @property
    def order_key(self) -> tuple[int, int | None]:
        """Key of the order of samples, which some members share."""
        return id(self.data), self.state.seed if self.settings.shuffle else None


class Outcome(NamedTuple):
    """State after the last epoch, from which a training continues, and state of the trained model."""

    last: TrainingState
    final: TrainingState


def train_together(compiler: StackCompiler, members: Sequence[Member]) -> list[Outcome | None]:
    """Train members, in stacks of the same graph structure; None for those to be trained alone.

    Members that stop early leave their stack, and the others continue where they are.
    """
    results: list[Outcome | None] = [None] * len(members)
    current = dict(enumerate(members))
    while current:
        pending = {}
        for plan in _plans(compiler, current):
            session = compiler.session(plan.family, len(plan.leading))
            if session is None:
                continue
            stack = _Stack(session, compiler.device, plan, [current[number] for number in plan.numbers])
            for number, outcome in zip(plan.numbers, stack.train(), strict=True):
                if isinstance(outcome, TrainingState):
                    pending[number] = replace(current[number], state=outcome)
                else:
                    results[number] = outcome
        current = pending
    return results


@dataclass(frozen=True)
class _Plan:
    """Numbers of the members of a stack, and lengths of its leading axes: orders, if several, and members."""

    family: Family
    constants: list[dict[str, np.ndarray]]  # of each member
    numbers: list[int]
    leading: tuple[int, ...]


def _plans(compiler: StackCompiler, members: dict[int, Member]) -> list[_Plan]:
    """Divide members into stacks, such that those with the same order of samples share batches."""
    alike: dict[tuple[Sizes, Hashable], list[int]] = {}
    for number, member in members.items():
        loop = member.settings.shuffle, member.state.n_iter, member.settings.max_iter
        alike.setdefault((member.sizes, loop), []).append(number)
    plans = []
    for (sizes, _), numbers in alike.items():
        graphs = {number: compiler.key_of(members[number].task, sizes) for number in numbers}
        dtype = members[numbers[0]].task.graph.dtype
        for family, indices in compiler.families([key for key, _ in graphs.values()], dtype):
            own = {numbers[index]: members[numbers[index]] for index in indices}
            constants = {n: {**family.constants_of(graphs[n][0]), **graphs[n][1]} for n in own}
            for found, leading in _layouts(own):
                if len(found) > 1 or own[found[0]].state.n_iter:
                    plans.append(_Plan(family, [constants[n] for n in found], found, leading))
    return plans


def _layouts(members: dict[int, Member]) -> list[tuple[list[int], tuple[int, ...]]]:
    """Return numbers and leading axes of the stacks of members of the same family."""
    groups: dict[Any, list[int]] = {}
    for number, member in members.items():
        groups.setdefault(member.order_key, []).append(number)
    first = next(iter(members.values()))
    size = sum(array.size for array in first.state.weights.values())
    most = max(1, MAX_ELEMENTS // max(1, size))
    orders = list(groups.values())
    lengths = {len(order) for order in orders}
    distinct = {id(member.data): member.data for member in members.values()}
    n_bytes = sum(len(d) * sample_bytes(first.task.columns(d).values()) for d in distinct.values())
    if len(orders) == 1 or min(lengths) >= ENOUGH or (len(distinct) > 1 and n_bytes > MAX_BYTES):
        parts = [part.tolist() for order in orders for part in np.array_split(order, -(-len(order) // most))]
        return [(part, (len(part),)) for part in parts]
    if len(lengths) > 1:  # one order for each
        orders = [[number] for order in orders for number in order]
    length = len(orders[0])
    chunks = np.array_split(np.array(orders), -(-len(orders) // max(1, most // length)))
    return [(chunk.ravel().tolist(), (len(chunk), length)) for chunk in chunks]


class _Stack:
    """Joint training of the members of a plan."""

    def __init__(self, session: Any, device: Device, plan: _Plan, members: Sequence[Member]):
        self.session, self.device, self.plan, self.members = session, device, plan, members
        first = members[0]
        self.sizes, self.dtype, self.settings = first.sizes, first.task.graph.dtype, first.settings
        self.orders = {member.order_key: member for member in members}
        self.offsets: dict[int, int] = {}
        length = 0
        for member in members:
            if id(member.data) not in self.offsets:
                self.offsets[id(member.data)] = length
                length += len(member.data)
        self.buffers = CarriedBuffers(plan.family.carried, self._starts(), self.device)
        self._columns = {name: ort_value(array, self.device) for name, array in self._arrays().items()}
        self._known: tuple[Any, dict[tuple[str, str | None], np.ndarray]] | None = None

    def _starts(self) -> dict[tuple[str, str | None], np.ndarray]:
        """Return the stacked weights and states of all members."""
        parts: list[dict[tuple[str, str | None], np.ndarray]] = []
        for member in self.members:
            own: dict[tuple[str, str | None], np.ndarray] = {}
            own.update(member.state.states)  # type: ignore[arg-type]
            for name, array in member.state.points.items():
                own[name, None] = array
                if not member.state.states:
                    states = member.task.update.learning_rate.init(array)
                    own |= {(name, state): value for state, value in states.items()}
            parts.append(own)
        return {key: self._stacked([part[key] for part in parts]) for key in parts[0]}

    def _stacked(self, arrays: Sequence[Any]) -> np.ndarray:
        stacked = np.stack(arrays)
        return stacked.reshape(*self.plan.leading, *stacked.shape[1:])

    def _arrays(self) -> dict[str, np.ndarray]:
        """Return the samples of all folds, and the constants of each member."""
        parts = [
            member.task.columns(member.data)
            for member in {id(member.data): member for member in self.members}.values()
        ]
        found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0] if len(parts) > 1}
        constants = self.plan.constants
        stacked = {name: self._stacked([own[name] for own in constants]) for name in constants[0]}
        return {**parts[0], **found, **stacked}

    def _values(self, copy: int | None) -> dict[tuple[str, str | None], np.ndarray]:
        """Return the stacked weights and states of all members, with one leading axis."""
        copy = self.buffers.current if copy is None else copy
        moment = self.buffers.steps, copy
        if self._known is None or self._known[0] != moment:
            n_axes, size = len(self.plan.leading), len(self.members)
            read = self.buffers.read(copy)
            self._known = moment, {k: array.reshape(size, *array.shape[n_axes:]) for k, array in read.items()}
        return self._known[1]

    def read(self, number: int, copy: int | None = None) -> tuple[Weights, States]:
        """Return the weights of a member and the states of its update."""
        own = {key: np.array(array[number]) for key, array in self._values(copy).items()}
        weights = {weight: array for (weight, state), array in own.items() if state is None}
        return weights, {(w, state): array for (w, state), array in own.items() if state is not None}

    def train(self) -> list[Outcome | TrainingState | None]:
        """Train until the last epoch, or until enough members have stopped.

        Return the states of members that are complete, that continue in another stack, or None for those
        whose loss or weights became non-finite.
        """
        found: list[Outcome | TrainingState | None] = [None] * len(self.members)
        runs = {number: _Run(self, number) for number in range(len(self.members))}
        for number in [number for number, run in runs.items() if run.is_complete]:
            found[number] = runs.pop(number).outcome()
        enough = len(runs) - STOPPED * len(self.members)
        first = self.members[0].state.n_iter
        for epoch in range(first, self.settings.max_iter):
            if not runs or len(runs) < enough:
                break
            begun = time.perf_counter()
            rates = np.zeros(len(self.members))
            for number, run in runs.items():
                rates[number] = run.rates.of(epoch)
            orders = {
                key: epoch_order(len(member.data), member.order_key[1], epoch)
                for key, member in self.orders.items()
            }
            values = self._run(orders, rates)
            self.buffers.advance()
            losses, finite = self._means(values, orders), np.isfinite(values).all(axis=1)
            share = (time.perf_counter() - begun) / len(runs)
            for number in list(runs):
                if not finite[number] or not runs[number].end(losses[number], rates[number], share):
                    runs.pop(number)
            complete = [number for number, run in runs.items() if run.is_complete]
            finite = self._stays_finite(orders, rates) if complete else finite
            for number in complete:
                run = runs.pop(number)
                found[number] = run.outcome() if finite[number] else None
        for number, run in runs.items():
            found[number] = run.monitor.state()
        return found

    def _run(self, orders: dict[Any, np.ndarray], rates: np.ndarray) -> np.ndarray:
        """Run an epoch on these samples and return the losses of all batches."""
        placed = {key: order + self.offsets[key[0]] for key, order in orders.items()}
        order = np.stack([placed[member.order_key] for member in self.members[:: self.plan.leading[-1]]])
        order = order if len(self.plan.leading) > 1 else order[0]
        arrays = order_arrays(order, self.sizes.full)
        arrays[RATE] = rates.astype(self.dtype).reshape(self.plan.leading)
        values = {name: ort_value(array, self.device) for name, array in arrays.items()}
        read, written = self.buffers.between(self.buffers.current)
        call = BoundCall(self.session, {**self._columns, **values, **read}, written)
        call()
        found = {name: value.numpy() for name, value in call.new_outputs().items()}
        losses = found[LOSSES].reshape(len(self.members), found[LOSSES].shape[-1])
        return np.column_stack([losses, found[LAST].ravel()]) if self.sizes.rest else losses

    def _means(self, values: np.ndarray, orders: dict[Any, np.ndarray]) -> np.ndarray:
        """Return the mean loss of each member."""
        size, found = self.settings.batch_size, {}
        for key, member in self.orders.items():
            shares = batch_weights(orders[key], size, member.data.weight_per_sample)
            found[key] = shares / shares.sum()
        return np.array([line @ found[m.order_key] for line, m in zip(values, self.members, strict=True)])

    def _stays_finite(self, orders: dict[Any, np.ndarray], rates: np.ndarray) -> np.ndarray:
        """Return which members have finite weights, and a finite loss on the last batch with them."""
        n_last = self.sizes.rest or self.sizes.full
        values = self._run({key: order[-n_last:] for key, order in orders.items()}, rates)
        finite = np.isfinite(values).all(axis=1)  # the weights after this batch are not used
        for (_, state), array in self._values(None).items():
            if state is None:
                finite &= np.isfinite(array.reshape(len(array), -1)).all(axis=1)
        return finite


class _Run:
    """Progress of a member of a stack."""

    def __init__(self, stack: _Stack, number: int):
        member = stack.members[number]
        self._stack, self._settings = stack, member.settings
        self.monitor = Monitor(
            member.settings, member.state, lambda copy: stack.read(number, copy), member.validate
        )
        self.rates = Rates(member.task.update.learning_rate, self.monitor.losses)

    @property
    def is_complete(self) -> bool:
        """Whether the last epoch is complete, or early stopping ended the training."""
        return self.monitor.stopped or len(self.monitor.history) >= self._settings.max_iter

    def end(self, loss: float, rate: float, seconds: float) -> bool:
        """End an epoch; return False if the member must be trained alone, where its error is raised."""
        self.rates.note(float(loss))
        self.monitor.begin(time.perf_counter() - seconds)
        try:
            self.monitor.end(float(loss), float(rate), copy=self._stack.buffers.current)
        except OrtlearnError:
            return False
        return True

    def outcome(self) -> Outcome:
        """Return the states of a complete training."""
        self.monitor.check_end()
        return Outcome(self.monitor.state(), self.monitor.finish())
