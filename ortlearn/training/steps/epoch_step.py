"""An epoch as one call, or several if it takes long: a Loop over batches inside the graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import ModelProto

from ...data.samples import Data
from ...runtime.buffers import Carried, CarriedBuffers
from ...runtime.calls import BoundCall
from ...runtime.devices import Device, ort_scalar, ort_value
from ..graphs.names import RATE
from ..graphs.sparse_products import taken_samples, with_sparse_samples
from ..graphs.step_graphs import step_graph
from ..optimisations.activations import samples_per_copy
from ..optimisations.hoisting import CHUNK_BYTES
from ..optimisations.layouts import faster_layouts
from . import batch_timer
from .base_step import BaseStep, Pause, run_batches
from .batch_loops import LOSSES, MIN_ITERATIONS, ORDER, batches_per_iteration
from .batch_timer import BatchTimer
from .compiled import compiled_graph
from .epoch_graph import LAST, REST, EpochGraph, epoch_graph, order_arrays
from .single_graph_step import SingleGraphStep

__all__ = ["EpochStep"]

#: Maximum number of batches of a trial before the first epoch, and its maximum seconds.
TRIAL_BATCHES, TRIAL_SECONDS = 16, 0.01


class EpochStep(BaseStep):
    """Train with one call of onnxruntime per epoch, or several if an epoch takes seconds.

    Data, weights and results are bound once. Interrupts are handled between calls. A loop stops at a
    non-finite loss; the call is then repeated up to the batch whose weights gave the last finite one. Other
    epochs have no additional cost.
    """

    #: Minimum number of iterations, by the number of batches of one.
    min_iterations: Mapping[int, int] = MIN_ITERATIONS
    #: Selection of the matrices that are stored transposed.
    layout = staticmethod(faster_layouts)
    #: Approximate bytes of the samples that are copied at once, if they are sparse.
    chunk_bytes = CHUNK_BYTES

    def build(self) -> list[Carried]:
        """Return an empty list: the graph depends on the batch size."""
        self._graph: EpochGraph | None = None
        self._sessions: dict[tuple, tuple[EpochGraph, Any]] = {}
        self._single: SingleGraphStep | None = None
        return []

    def prepare(self, data: Data, sizes: list[int]) -> None:
        """Build the graph for the batch sizes."""
        self.size, self.rest = sizes[0], sizes[1] if len(sizes) > 1 else 0
        self._trained = with_sparse_samples(self.task, data) if self.device.reads_entries else self.task
        n_batches = self.n_samples // self.size
        self._n_joined = batches_per_iteration(n_batches, self.min_iterations) if self.device.is_native else 1
        self._graph, self.session = self._compiled(self.size, self.rest)
        self.carried = self._graph.carried

    def _compiled(self, size: int, rest: int) -> tuple[EpochGraph, Any]:
        """Return graph and session, always the same ones for this step since bindings belong to a session."""
        sizes, layout = (size, rest, self._n_joined), self.layout if self.device.is_native else None
        key = (*sizes, self._trained.graph.sparse)
        if key not in self._sessions:
            self._sessions[key] = compiled_graph(
                self._trained,
                sizes,
                self.device,
                1 if self._trained.graph.sparse else self.threads(size),
                lambda: epoch_graph(self._trained, size, rest, self._n_joined, layout),
            )
        return self._sessions[key]

    def bind(self, data: Data, sizes: list[int], buffers: CarriedBuffers) -> None:
        """Bind data, sample indices, weights and results once for every copy of the weights."""
        self._last_call: tuple[np.ndarray, float] | None = None  # its samples and rate
        self._rate, self._last = (ort_scalar(self.task.graph.dtype, self.device) for _ in range(2))
        self._rate_value = 0.0
        self._columns: dict[str, Any] = {}
        self._values: dict[str, Any] = {}
        self._calls: list[BoundCall] = []
        if data.is_sparse:
            return
        self._columns = self._tensors(self.task.columns(data))
        if not self.has_all_samples:  # inputs differ between the chunks of an epoch
            return
        self._values = self._inputs(np.arange(len(data), dtype=np.int64), self.size)
        compiled, copies = self._compiled(self.size, self.rest), range(buffers.COPIES)
        self._calls = [self._bound(buffers, copy, self._values, compiled) for copy in copies]

    def rebind(self, data: Data, buffers: CarriedBuffers) -> None:
        """Bind other samples for the next calls."""
        self._columns = {} if data.is_sparse else self._tensors(self.task.columns(data))

    def _tensors(self, columns: dict[str, np.ndarray]) -> dict[str, Any]:
        return {name: ort_value(array, self.device) for name, array in columns.items()}

    def _inputs(self, samples: np.ndarray, size: int) -> dict[str, Any]:
        """Return the inputs of a call on batches of a size, without weights and states."""
        columns = self._columns
        if self._data.is_sparse or self._trained.graph.sparse:
            taken = taken_samples(self._trained, self.task.columns(self._data).items(), samples, size)
            columns, samples = self._tensors(taken), np.arange(len(samples), dtype=np.int64)
        return {**columns, **self._tensors(order_arrays(samples, size)), RATE: self._rate}

    def release(self) -> None:
        """Release data and weights; keep graphs and sessions."""
        self._data = self._last_call = None
        self._columns, self._values, self._calls = {}, {}, []
        if self._single is not None:
            self._single.release()

    def _bound(
        self, buffers: CarriedBuffers, copy: int, values: dict[str, Any], compiled: tuple[EpochGraph, Any]
    ) -> BoundCall:
        graph, session = compiled
        read, written = buffers.between(copy, graph.carried)
        return BoundCall(session, values | read, {LAST: self._last, **written})

    def set_rate(self, rate: float) -> None:
        """Set the learning rate of the next epochs."""
        if rate != self._rate_value:
            super().set_rate(rate)
        self._rate_value = rate

    def run_epoch(
        self, order: np.ndarray, batch_size: int, buffers: CarriedBuffers, pause: Pause | None = None
    ) -> np.ndarray:
        """Update on every batch of an epoch, up to the first non-finite objective."""
        n_batches = len(order) // self.size
        self._run_trial(order, n_batches, buffers)
        is_whole = len(order) == len(self._data)
        if not self._calls or not is_whole or self._timer.batches(n_batches) < n_batches:
            return self._run_in_parts(order, buffers, pause)
        full = n_batches * self.size
        self._values[ORDER].update_inplace(order[:full].reshape(-1, self.size))
        if self.rest:
            self._values[REST].update_inplace(order[full:])
        values = self._call(self._calls[buffers.current], n_batches, self.rest)
        return self._ended(order, values, buffers)

    def _run_trial(self, order: np.ndarray, n_batches: int, buffers: CarriedBuffers) -> None:
        """Measure the time per batch before the first epoch, which might be a long call."""
        assert self._graph is not None
        if self._timer.is_known or n_batches <= 1 or self._graph.draws:  # a trial would advance the generator
            return
        for count in (1, min(TRIAL_BATCHES, n_batches)):
            samples = np.append(order[: count * self.size], order[n_batches * self.size :])
            self._run_samples(samples, buffers)  # its updates are discarded
            if self._timer.seconds * TRIAL_BATCHES > TRIAL_SECONDS:
                return

    @property
    def _timer(self) -> BatchTimer:
        assert self._graph is not None
        return self._graph.timer

    def _call(self, call: BoundCall, n_batches: int, rest: int) -> np.ndarray:
        """Run a graph and return the objectives of its batches."""
        begun = batch_timer.clock()
        call()
        seconds = batch_timer.clock() - begun
        values = call.new_outputs()[LOSSES].numpy()
        self._timer.note(max(1, len(values)), seconds)
        return np.append(values, self._last.numpy()) if rest and len(values) == n_batches else values

    def _run_samples(self, samples: np.ndarray, buffers: CarriedBuffers) -> np.ndarray:
        """Update on some batches, of which the last may be short; return their objectives."""
        # Other providers may return wrong results for a loop without iterations.
        size = self.size if self.device.is_native else min(self.size, len(samples))
        compiled, inputs = self._compiled(size, len(samples) % size), self._inputs(samples, size)
        call = self._bound(buffers, buffers.current, inputs, compiled)
        return self._call(call, len(samples) // size, len(samples) % size)

    def _run_in_parts(
        self, order: np.ndarray, buffers: CarriedBuffers, pause: Pause | None = None
    ) -> np.ndarray:
        """Run an epoch in several calls, with bounds on the time and the sparse samples of a call."""
        n_left = len(order) // self.size
        most = max(1, samples_per_copy(self._trained, self._data, self.chunk_bytes) // self.size)
        values: list[np.ndarray] = []
        start = 0
        while start < len(order):
            count = min(self._timer.batches(n_left), most)
            n_left = max(0, n_left - count)
            stop = start + count * self.size if n_left else len(order)
            part = order[start:stop]
            values.append(self._ended(part, self._run_samples(part, buffers), buffers))
            if not np.isfinite(values[-1][-1]):
                break
            start = stop
            if pause is not None and n_left:
                pause(values)
        return np.concatenate(values)

    def _ended(self, samples: np.ndarray, values: np.ndarray, buffers: CarriedBuffers) -> np.ndarray:
        """Keep the update of a call, or return to the last weights with a finite objective.

        Return the objectives up to the first non-finite one. Batches before the last finite one are repeated
        in one call, the others one by one.
        """
        finite = np.isfinite(values)
        if finite.all():
            buffers.advance()
            self._remember(samples)
            return values
        first = max(int(np.argmin(finite)) - 1, 0)
        self._repeat(samples, first, buffers)
        others, own = self._one_by_one(samples[first * self.size :], buffers)
        if np.isfinite(others).all():  # sums in another order may avoid an overflow
            buffers.advance()
            self._remember(samples)
        elif first + len(others) == 1 and self._last_call is not None:
            buffers.step_back(1)
            self._repeat_last_call(buffers)
            return others
        buffers.write(own.read())
        return np.append(values[:first], others)

    def _one_by_one(self, samples: np.ndarray, buffers: CarriedBuffers) -> tuple[np.ndarray, CarriedBuffers]:
        """Run batches one by one from the current weights; return objectives and the updated buffers."""
        carried = buffers.read()
        if self._trained.graph.sparse:  # SingleGraphStep needs dense samples, which may be too large
            own = CarriedBuffers(self.carried, carried, self.device)
            return run_batches(self._run_batch, samples, self.size, own), own
        device = self.device if self.device.is_native else Device("cpu")  # always supported
        step = self._single = self._single or SingleGraphStep(self.task, device, self.n_jobs)
        sizes = list({self.size: None, len(samples) % self.size or self.size: None})
        weights = {weight: value for (weight, state), value in carried.items() if state is None}
        own = step.start(self._data, sizes, weights, {k: v for k, v in carried.items() if k[1] is not None})
        step.set_rate(self._rate_value)
        return step.run_epoch(samples, self.size, own), own

    def _remember(self, samples: np.ndarray) -> None:
        """Remember samples and rate of a call, for :meth:`_repeat_last_call`."""
        self._last_call = samples.astype(np.int32 if len(samples) < 2**31 else np.int64), self._rate_value

    def _repeat_last_call(self, buffers: CarriedBuffers) -> None:
        """Repeat the last call without its last batch, whose update gave the faulty weights."""
        assert self._last_call is not None
        (samples, rate), now = self._last_call, self._rate_value
        self.set_rate(rate)
        self._repeat(samples.astype(np.int64), -(-len(samples) // self.size) - 1, buffers)
        self.set_rate(now)

    def _repeat(self, samples: np.ndarray, n_batches: int, buffers: CarriedBuffers) -> None:
        """Replace the current weights by those after the first batches of a call."""
        while n_batches:
            values = self._run_samples(samples[: n_batches * self.size], buffers)
            arrays = buffers.read(buffers.next)
            weights = [array for (_, state), array in arrays.items() if state is None]
            if all(np.isfinite(own).all() for own in (values, *weights)):
                return buffers.write(arrays)
            n_batches //= 2  # other random numbers are drawn

    def _run_batch(self, samples: np.ndarray, buffers: CarriedBuffers) -> float:
        return float(self._run_samples(samples, buffers)[0])

    def run(self, samples: np.ndarray, buffers: CarriedBuffers) -> float:
        """Return the objective of a last batch with the current weights; the update is discarded."""
        value = self._run_batch(samples, buffers)
        carried = buffers.read()
        if not np.isfinite(value) or not all(np.isfinite(array).all() for array in carried.values()):
            buffers.step_back(1)
            self._repeat_last_call(buffers)
            buffers.advance()  # the caller steps back to these weights
        return value

    def graphs(self) -> dict[str, ModelProto]:
        """Return the graph of a batch, and that of an epoch once the batch sizes are known."""
        step = {"step": step_graph(self.task).model}
        return step if self._graph is None else {"epoch": self._graph.model, **step}
