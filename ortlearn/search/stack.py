"""Training of several candidates in one graph."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..data.orders import batch_sizes, batch_weights, epoch_order
from ..data.samples import Data
from ..learning_rates import Rates
from ..runtime.buffers import CarriedBuffers
from ..runtime.calls import BoundCall
from ..runtime.devices import ort_value
from ..training.graphs.names import RATE
from ..training.graphs.task import TrainingTask
from ..training.settings import LoopSettings
from ..training.state import TrainingState
from ..training.steps.batch_loops import LOSSES
from ..training.steps.epoch_graph import LAST, order_arrays
from .compiler import CompiledStack, Sizes, StackCompiler

__all__ = ["Member", "train_together"]

#: Maximum number of weights of a stack: more do not fit into the cache of a core, and nothing is gained.
MAX_ELEMENTS = 100_000


@dataclass(frozen=True)
class Member:
    """One of several candidates that are trained on the same samples."""

    task: TrainingTask
    state: TrainingState  # with which it begins


def train_together(
    compiler: StackCompiler, members: Sequence[Member], data: Data, settings: LoopSettings
) -> list[TrainingState | None]:
    """Train candidates in stacks of the same graph structure; None for those to be trained alone."""
    results: list[TrainingState | None] = [None] * len(members)
    full, rest = [*batch_sizes(len(data), settings.batch_size), 0][:2]
    sizes = Sizes(full, rest, len(data) // full)
    for indices in compiler.groups([member.task for member in members], sizes):
        for plan in _plans(compiler, members, indices, sizes, settings.shuffle):
            group = [members[number] for number in plan.numbers]
            first_tasks = [member.task for member in group][: plan.leading[-1]]
            compiled = compiler.compiled(first_tasks, sizes, plan.leading, plan.n_orders)
            if compiled is None:
                continue
            stack = _Stack(compiler, compiled, group, plan, data, settings, sizes)
            for number, result in zip(plan.numbers, stack.train(), strict=True):
                results[number] = result
    return results


@dataclass(frozen=True)
class _Plan:
    """Numbers of the candidates of a stack, lengths of its leading axes, and number of sample orders."""

    numbers: list[int]
    leading: tuple[int, ...]
    n_orders: int


def _plans(
    compiler: StackCompiler, members: Sequence[Member], indices: list[int], sizes: Sizes, shuffle: bool
) -> list[_Plan]:
    """Divide candidates into stacks, such that candidates with the same order of samples share batches."""
    by_seed: dict[int | None, list[int]] = {}
    for number in indices:
        by_seed.setdefault(members[number].state.seed if shuffle else None, []).append(number)
    seed_groups = list(by_seed.values())
    size = sum(array.size for array in members[indices[0]].state.weights.values())
    max_candidates = max(1, MAX_ELEMENTS // max(1, size))
    if len(seed_groups) > 1 and 2 * len(seed_groups) <= len(indices) <= max_candidates:
        tasks = [[members[number].task for number in group] for group in seed_groups]
        if all(compiler.have_same_graphs(tasks[0], group, sizes) for group in tasks):
            numbers = [number for group in seed_groups for number in group]
            return [_Plan(numbers, (len(seed_groups), len(seed_groups[0])), len(seed_groups))]
    groups = seed_groups if 2 * len(seed_groups) <= len(indices) else [indices]
    found = []
    for group in groups:
        for part in np.array_split(group, -(-len(group) // max_candidates)):
            n_orders = 1 if len(groups) == len(seed_groups) else len(part)
            found.append(_Plan(part.tolist(), (len(part),), n_orders))
    return [plan for plan in found if len(plan.numbers) > 1]


class _Stack:
    """Joint training of the candidates of a plan."""

    def __init__(
        self,
        compiler: StackCompiler,
        compiled: CompiledStack,
        members: Sequence[Member],
        plan: _Plan,
        data: Data,
        settings: LoopSettings,
        sizes: Sizes,
    ):
        self.compiled, self.members, self.plan, self.data = compiled, members, plan, data
        self.settings, self.sizes, self.device = settings, sizes, compiler.device
        self.dtype = members[0].task.graph.dtype
        self.seeds = list(
            dict.fromkeys(member.state.seed if settings.shuffle else None for member in members)
        )
        self.buffers = CarriedBuffers(compiled.carried, self._starts(), self.device)
        columns = members[0].task.columns(data)
        self._columns = {name: ort_value(array, self.device) for name, array in columns.items()}

    def _starts(self) -> dict[tuple[str, str | None], np.ndarray]:
        """Return the stacked initial weights and states of all candidates."""
        parts: list[dict[tuple[str, str | None], np.ndarray]] = []
        for member in self.members:
            own: dict[tuple[str, str | None], np.ndarray] = {}
            for name, array in member.state.weights.items():
                states = member.task.update.learning_rate.init(array)
                own[name, None] = array
                own |= {(name, state): value for state, value in states.items()}
            parts.append(own)
        stacked = {key: np.stack([part[key] for part in parts]) for key in parts[0]}
        return {key: array.reshape(*self.plan.leading, *array.shape[1:]) for key, array in stacked.items()}

    def _read(self) -> dict[tuple[str, str | None], np.ndarray]:
        """Return the stacked weights and states of all candidates, with one leading axis."""
        n_axes, size = len(self.plan.leading), len(self.members)
        return {key: array.reshape(size, *array.shape[n_axes:]) for key, array in self.buffers.read().items()}

    def train(self) -> list[TrainingState | None]:
        """Train all epochs; return None for candidates whose losses or weights became non-finite."""
        rates = [Rates(member.task.update.learning_rate) for member in self.members]
        histories: list[list[dict[str, Any]]] = [[] for _ in self.members]
        finite = np.ones(len(self.members), dtype=bool)
        orders: list[np.ndarray] = []
        for epoch in range(self.settings.max_iter):
            begun = time.perf_counter()
            current = [rate.of(epoch) for rate in rates]
            orders = [epoch_order(len(self.data), seed, epoch) for seed in self.seeds]
            values = self._run(orders, current)
            self.buffers.advance()
            finite &= np.isfinite(values).all(axis=1)
            if not finite.any():
                break
            losses = self._means(values, orders)
            seconds = (time.perf_counter() - begun) / len(self.members)
            for history, rate, now, loss in zip(histories, rates, current, losses, strict=True):
                rate.note(float(loss))
                history.append(_record(epoch + 1, float(loss), now, seconds))
        return self._finished(histories, finite & self._stays_finite(orders, current))

    def _order_of(self, orders: Sequence[np.ndarray]) -> np.ndarray:
        """Return the shared order of samples, or one per seed or candidate."""
        if self.plan.n_orders == 1:
            return orders[0]
        if len(self.plan.leading) > 1:
            return np.stack(orders)
        found = dict(zip(self.seeds, orders, strict=True))
        return np.stack([found[member.state.seed] for member in self.members])

    def _run(self, orders: Sequence[np.ndarray], rates: Sequence[float]) -> np.ndarray:
        """Run an epoch on these samples and return the losses of all batches."""
        arrays = order_arrays(self._order_of(orders), self.sizes.full)
        arrays[RATE] = np.array(rates, dtype=self.dtype).reshape(self.plan.leading)
        values = {name: ort_value(array, self.device) for name, array in arrays.items()}
        read, written = self.buffers.between(self.buffers.current)
        call = BoundCall(self.compiled.session, {**self._columns, **values, **read}, written)
        call()
        found = {name: value.numpy() for name, value in call.new_outputs().items()}
        losses = found[LOSSES].reshape(len(self.members), found[LOSSES].shape[-1])
        return np.column_stack([losses, found[LAST].ravel()]) if self.sizes.rest else losses

    def _means(self, values: np.ndarray, orders: Sequence[np.ndarray]) -> np.ndarray:
        """Return the mean loss of each candidate."""
        size, weights = self.settings.batch_size, self.data.weight_per_sample
        found = {s: batch_weights(o, size, weights) for s, o in zip(self.seeds, orders, strict=True)}
        seeds = [m.state.seed if len(self.seeds) > 1 else self.seeds[0] for m in self.members]
        return np.array(
            [np.dot(line, found[s]) / found[s].sum() for line, s in zip(values, seeds, strict=True)]
        )

    def _stays_finite(self, orders: Sequence[np.ndarray], rates: Sequence[float]) -> np.ndarray:
        """Return which candidates have finite weights, and a finite loss on the last batch with them."""
        n_last = self.sizes.rest or self.sizes.full
        values = self._run([order[-n_last:] for order in orders], rates)  # its results are discarded
        finite = np.isfinite(values).all(axis=1)
        for (_, state), array in self._read().items():
            if state is None:
                finite &= np.isfinite(array.reshape(len(array), -1)).all(axis=1)
        return finite

    def _finished(
        self, histories: list[list[dict[str, Any]]], finite: np.ndarray
    ) -> list[TrainingState | None]:
        """Return the states after the training; None for candidates that became non-finite."""
        arrays, found = self._read(), []
        for number, (member, history) in enumerate(zip(self.members, histories, strict=True)):
            own = {key: np.array(array[number]) for key, array in arrays.items()}
            weights = {weight: array for (weight, state), array in own.items() if state is None}
            states = {(w, state): array for (w, state), array in own.items() if state is not None}
            found.append(replace(member.state, history=history).at(weights, states))
        return [state if good else None for state, good in zip(found, finite, strict=True)]


def _record(epoch: int, loss: float, rate: float, seconds: float) -> dict[str, Any]:
    measured = {"validation_loss": None, "validation_score": None}
    return {"epoch": epoch, "loss": loss, **measured, "rate": rate, "seconds": seconds}
