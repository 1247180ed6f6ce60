"""Training of several candidates at once, in one graph."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..learning_rates import Rates
from ..training import Data, LoopSettings, Snapshot, TrainingResult, TrainingTask
from ..training.batch_loops import LOSSES, ORDER
from ..training.batches import batch_shares, batch_sizes, epoch_order
from ..training.buffers import CarriedBuffers
from ..training.devices import ort_value
from ..training.epoch_graph import LAST, REST
from ..training.step_graphs import RATE
from .compiler import CompiledStack, Sizes, StackCompiler

__all__ = ["Member", "train_together"]

#: Weights of a stack: with more, they leave the caches of a core, and training together gains nothing.
MAX_ELEMENTS = 100_000


@dataclass(frozen=True)
class Member:
    """One of several candidates that are trained on the same samples.

    Attributes
    ----------
    task : TrainingTask
        What is trained.
    weights : dict of str to ndarray
        Starting weights.
    seed : int
        Seed of the orders of the samples.
    """

    task: TrainingTask
    weights: dict[str, np.ndarray]
    seed: int


def train_together(
    compiler: StackCompiler, members: Sequence[Member], data: Data, settings: LoopSettings
) -> list[TrainingResult | None]:
    """Train candidates, as many at once as have graphs of the same structure.

    Parameters
    ----------
    compiler : StackCompiler
        Builds and keeps graphs.
    members : sequence of Member
        Candidates.
    data : Data
        Samples.
    settings : LoopSettings
        Epochs, size of a batch and whether samples are shuffled.

    Returns
    -------
    list of (TrainingResult or None)
        What each training leaves; None for one that must be trained alone: its graph is like no other or
        has no batched form, or its loss stops being finite.
    """
    results: list[TrainingResult | None] = [None] * len(members)
    full, rest = [*batch_sizes(len(data), settings.batch_size), 0][:2]
    sizes = Sizes(full, rest, len(data) // full)
    for alike in compiler.groups([member.task for member in members], sizes):
        for numbers in _stacks(members, alike, settings.shuffle):
            group = [members[number] for number in numbers]
            shared = not settings.shuffle or len({member.seed for member in group}) == 1
            compiled = compiler.compiled([member.task for member in group], sizes, shared)
            if compiled is None:
                continue
            stack = _Stack(compiler, compiled, group, data, settings, sizes)
            for number, result in zip(numbers, stack.train(), strict=True):
                results[number] = result
    return results


def _stacks(members: Sequence[Member], alike: list[int], shuffle: bool) -> list[list[int]]:
    """Divide candidates into stacks: by the order of their samples where it is not that of each alone.

    Those that share an order share the product of a batch with the weights of all of them.
    """
    by_seed: dict[int | None, list[int]] = {}
    for number in alike:
        by_seed.setdefault(members[number].seed if shuffle else None, []).append(number)
    groups = list(by_seed.values()) if 2 * len(by_seed) <= len(alike) else [alike]
    size = sum(array.size for array in members[alike[0]].weights.values())
    most = max(1, MAX_ELEMENTS // max(1, size))
    found: list[list[int]] = []
    for group in groups:
        found += [part.tolist() for part in np.array_split(group, -(-len(group) // most))]
    return [group for group in found if len(group) > 1]


class _Stack:
    """Candidates in training."""

    def __init__(
        self,
        compiler: StackCompiler,
        compiled: CompiledStack,
        members: Sequence[Member],
        data: Data,
        settings: LoopSettings,
        sizes: Sizes,
    ):
        self.compiled, self.members, self.data = compiled, members, data
        self.settings, self.sizes, self.device = settings, sizes, compiler.device
        self.dtype = members[0].task.graph.dtype
        self.seeds = list(dict.fromkeys(member.seed if settings.shuffle else None for member in members))
        self.buffers = CarriedBuffers(compiled.carried, self._starts(), self.device)
        self._names = {value.name for value in compiled.session.get_inputs()}
        columns = data.columns(members[0].task)
        self._columns = {name: ort_value(array, self.device) for name, array in columns.items()}

    def _starts(self) -> dict[tuple[str, str | None], np.ndarray]:
        """Return weights and fresh states of all candidates, one above the other."""
        parts: list[dict[tuple[str, str | None], np.ndarray]] = []
        for member in self.members:
            own: dict[tuple[str, str | None], np.ndarray] = {}
            for name, array in member.weights.items():
                states = member.task.update.learning_rate.init(array)
                own[name, None] = array
                own |= {(name, state): value for state, value in states.items()}
            parts.append(own)
        return {key: np.stack([part[key] for part in parts]) for key in parts[0]}

    def train(self) -> list[TrainingResult | None]:
        """Train up to the last epoch; None for those whose losses or weights stopped being finite."""
        rates = [Rates(member.task.update.learning_rate) for member in self.members]
        results = [TrainingResult() for _ in self.members]
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
            for result, rate, now, loss in zip(results, rates, current, losses, strict=True):
                rate.note(float(loss))
                result.history.append(_record(epoch + 1, float(loss), now, seconds))
        return self._finished(results, finite & self._stays_finite(orders, current))

    def _order_of(self, orders: Sequence[np.ndarray]) -> np.ndarray:
        """Return the order that all candidates share, or that of each."""
        if len(orders) == 1:
            return orders[0]
        found = dict(zip(self.seeds, orders, strict=True))
        return np.stack([found[member.seed] for member in self.members])

    def _run(self, orders: Sequence[np.ndarray], rates: Sequence[float]) -> np.ndarray:
        """Run the batches of some samples, the last of which may be the short one; return all losses."""
        order, binding = self._order_of(orders), self.compiled.session.io_binding()
        stop = order.shape[-1] // self.sizes.full * self.sizes.full
        values: dict[str, Any] = {
            ORDER: order[..., :stop].reshape(*order.shape[:-1], -1, self.sizes.full),
            REST: order[..., stop:],
            RATE: np.array(rates, dtype=self.dtype),
        }
        values = {name: ort_value(np.ascontiguousarray(a), self.device) for name, a in values.items()}
        for name, value in {**self._columns, **values}.items():
            if name in self._names:
                binding.bind_ortvalue_input(name, value)
        copies = self.buffers.values[self.buffers.current], self.buffers.values[self.buffers.next]
        for item, old, new in zip(self.compiled.carried, *copies, strict=True):
            if item.source in self._names:
                binding.bind_ortvalue_input(item.source, old)
            binding.bind_ortvalue_output(item.result, new)
        outputs = [LOSSES, LAST] if self.sizes.rest else [LOSSES]
        for name in outputs:
            binding.bind_output(name, "cpu")
        self.compiled.session.run_with_iobinding(binding)
        found = dict(zip(outputs, _last_outputs(binding, len(outputs)), strict=True))
        losses = found[LOSSES]
        return np.column_stack([losses, found[LAST]]) if self.sizes.rest else losses

    def _means(self, values: np.ndarray, orders: Sequence[np.ndarray]) -> np.ndarray:
        """Return the mean loss of each candidate."""
        size, weights = self.settings.batch_size, self.data.sample_weight
        found = {s: batch_shares(o, size, weights) for s, o in zip(self.seeds, orders, strict=True)}
        seeds = [m.seed if len(self.seeds) > 1 else self.seeds[0] for m in self.members]
        return np.array(
            [np.dot(line, found[s]) / found[s].sum() for line, s in zip(values, seeds, strict=True)]
        )

    def _stays_finite(self, orders: Sequence[np.ndarray], rates: Sequence[float]) -> np.ndarray:
        """Return which candidates have a finite loss after the last batch, seen once more, and weights."""
        n_last = self.sizes.rest or self.sizes.full
        values = self._run([order[-n_last:] for order in orders], rates)  # what it writes is not kept
        finite = np.isfinite(values).all(axis=1)
        for (_, state), array in self.buffers.read().items():
            if state is None:
                finite &= np.isfinite(array.reshape(len(array), -1)).all(axis=1)
        return finite

    def _finished(self, results: list[TrainingResult], finite: np.ndarray) -> list[TrainingResult | None]:
        """Put weights and states into the results of trainings that stayed finite."""
        arrays = self.buffers.read()
        for number, result in enumerate(results):
            own = {key: np.array(array[number]) for key, array in arrays.items()}
            weights = {weight: array for (weight, state), array in own.items() if state is None}
            states = {(w, state): array for (w, state), array in own.items() if state is not None}
            result.keep(Snapshot(weights, states))
        return [result if good else None for result, good in zip(results, finite, strict=True)]


def _record(epoch: int, loss: float, rate: float, seconds: float) -> dict[str, Any]:
    measured = {"validation_loss": None, "validation_score": None}
    return {"epoch": epoch, "loss": loss, **measured, "rate": rate, "seconds": seconds}


def _last_outputs(binding: Any, count: int) -> list[np.ndarray]:
    """Return the last outputs that were bound."""
    return [value.numpy() for value in binding.get_outputs()[-count:]]
