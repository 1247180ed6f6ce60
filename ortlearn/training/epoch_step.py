"""A whole epoch as one call: a Loop over batches inside the graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto

from .base_step import BaseStep
from .batch_loops import LOSSES, ORDER, is_long
from .buffers import CarriedBuffers, Data, row_bytes, take_rows
from .cache import cached_session
from .epoch_graph import LAST, REST, EpochGraph, epoch_graph
from .hoisting import CHUNK_BYTES
from .sessions import ort_value
from .single_graph_step import SingleGraphStep
from .step_graphs import RATE, Carried

__all__ = ["EpochStep"]


class EpochStep(BaseStep):
    """Train with one call of onnxruntime for each epoch.

    Data, weights and results are bound once. A loop that meets a loss that is not finite stops
    itself; the epoch is then gone through again batch by batch, from the weights it started with,
    to find the last good ones. An epoch that goes well costs nothing for that.

    Parameters
    ----------
    task : TrainingTask
        What is trained.
    device : Device
        Where.
    n_jobs : int, default=None
        Threads of an operator.
    """

    def build(self) -> list[Carried]:
        """Return nothing yet: the graph needs to know the size of a batch."""
        self._graph: EpochGraph | None = None
        self._data: Data | None = None
        self._single: SingleGraphStep | None = None
        return []

    def prepare(self, data: Data, sizes: list[int]) -> None:
        """Build the graph for the sizes of batch that will come."""
        self.size, self.rest = sizes[0], sizes[1] if len(sizes) > 1 else 0
        self._long = is_long(len(data) // self.size)
        self._graph, self.session = self._compiled(self.rest)
        self.carried = self._graph.carried

    def _compiled(self, rest: int) -> tuple[EpochGraph, Any]:
        return cached_session(
            self.task,
            (self.size, rest, self._long),
            self.device,
            self.n_jobs,
            lambda: epoch_graph(self.task, self.size, rest, self._long),
        )

    def bind(self, data: Data, sizes: list[int], buffers: CarriedBuffers) -> None:
        """Bind data, row numbers, weights and results once for every copy of the weights."""
        self._data, self._sizes = data, sizes
        self._ran: tuple[np.ndarray, float, dict | None] | None = None
        self._rate = ort_value(np.zeros((), dtype=self.task.dtype), self.device)
        self._last = ort_value(np.zeros((), dtype=self.task.dtype), self.device)
        self._values: dict[str, Any] = {}
        self._bindings: list[Any] = []
        if data.is_sparse:
            return
        self._values = self._inputs(data.columns(self.task), len(data) // self.size)
        self._order, self._rest = self._values[ORDER], self._values.get(REST)
        compiled = self._compiled(self.rest)
        self._bindings = [
            self._binding(buffers, copy, self._values, compiled) for copy in range(buffers.COPIES)
        ]

    def _inputs(self, columns: dict[str, np.ndarray], n_batches: int) -> dict[str, Any]:
        """Return the inputs of the graph besides what is carried; row numbers to be filled in."""
        values = {name: ort_value(array, self.device) for name, array in columns.items()}
        values[ORDER] = ort_value(np.zeros((n_batches, self.size), dtype=np.int64), self.device)
        values[RATE] = self._rate
        if self.rest:
            values[REST] = ort_value(np.zeros(self.rest, dtype=np.int64), self.device)
        return values

    def release(self) -> None:
        """Let go of data and weights; graphs and sessions stay."""
        self._data = self._ran = None
        self._values, self._bindings = {}, []
        self._order = self._rest = None
        if self._single is not None:
            self._single.release()

    def _binding(
        self,
        buffers: CarriedBuffers,
        copy: int,
        values: dict[str, Any],
        compiled: tuple[EpochGraph, Any],
    ) -> Any:
        graph, session = compiled
        names = {value.name for value in session.get_inputs()}
        binding = session.io_binding()
        for name, value in values.items():
            if name in names:
                binding.bind_ortvalue_input(name, value)
        binding.bind_output(LOSSES, "cpu")
        if REST in names:
            binding.bind_ortvalue_output(LAST, self._last)
        written = buffers.values[(copy + 1) % buffers.COPIES]
        for item, old, new in zip(graph.carried, buffers.values[copy], written, strict=True):
            if item.source in names:
                binding.bind_ortvalue_input(item.source, old)
            binding.bind_ortvalue_output(item.result, new)
        return binding

    def set_rate(self, rate: float) -> None:
        """Set the learning rate of the next epochs."""
        self._rate_value = rate
        self._rate.update_inplace(np.array(rate, dtype=self.task.dtype))

    def run_epoch(self, order: np.ndarray, batch_size: int, buffers: CarriedBuffers) -> np.ndarray:
        """Update on every batch of an epoch, up to the first objective that is not finite."""
        if self._data is not None and self._data.is_sparse:
            return self._run_sparse(self._data, order, buffers)
        full = len(order) - self.rest
        self._order.update_inplace(order[:full].reshape(-1, self.size))
        if self._rest is not None:
            self._rest.update_inplace(order[full:])
        values = self._call(self.session, self._bindings[buffers.current], full // self.size, self.rest)
        if np.isfinite(values).all():
            buffers.advance()
            self._ran = order, self._rate_value, None
            return values
        return self._go_through_again(order, buffers)

    def _call(self, session: Any, binding: Any, n_batches: int, rest: int) -> np.ndarray:
        """Run a graph and return the objectives it met."""
        binding.bind_output(LOSSES, "cpu")  # the one of the last call would force its length
        session.run_with_iobinding(binding)
        values = binding.get_outputs()[0].numpy()
        return np.append(values, self._last.numpy()) if rest and len(values) == n_batches else values

    def _run_sparse(self, data: Data, order: np.ndarray, buffers: CarriedBuffers) -> np.ndarray:
        """Run an epoch chunk by chunk, the rows of a chunk made dense in the order they come."""
        begun = buffers.read()
        bytes_of_row = max(1, row_bytes(data.inputs(self.task).values()))
        per_chunk = max(1, CHUNK_BYTES // (self.size * bytes_of_row)) * self.size
        values: list[np.ndarray] = []
        for start in range(0, len(order), per_chunk):
            rows = order[start : start + per_chunk]
            rest = len(rows) % self.size
            compiled = self._compiled(rest)
            n_batches = len(rows) // self.size
            columns = {name: take_rows(a, rows) for name, a in data.columns(self.task).items()}
            inputs = self._inputs(columns, n_batches)
            numbers = np.arange(len(rows), dtype=np.int64)
            inputs[ORDER].update_inplace(numbers[: n_batches * self.size].reshape(-1, self.size))
            if rest:
                inputs[REST].update_inplace(numbers[n_batches * self.size :])
            binding = self._binding(buffers, buffers.current, inputs, compiled)
            values.append(self._call(compiled[1], binding, n_batches, rest))
            if not np.isfinite(values[-1]).all():
                buffers.write(begun)
                return self._go_through_again(order, buffers)
            buffers.advance()
        self._ran = order, self._rate_value, begun
        return np.concatenate(values)

    def _go_through_again(self, order: np.ndarray, buffers: CarriedBuffers) -> np.ndarray:
        """Run an epoch batch by batch from the weights it started with."""
        values, own = self._replay(order, self._rate_value, buffers)
        if np.isfinite(values).all():  # sums made in another order may stay just below an overflow
            buffers.advance()
            self._ran = order, self._rate_value, None
        elif len(values) == 1 and self._ran is not None:
            self._undo_last_batch(buffers)  # the epoch before ended with the weights at fault
            return values
        buffers.write(own.read())
        return values

    def _undo_last_batch(self, buffers: CarriedBuffers) -> None:
        """Step back to the weights that the last batch of the last epoch started with."""
        assert self._ran is not None
        order, rate, begun = self._ran
        buffers.step_back(1)
        if begun is not None:
            buffers.write(begun)
        _, own = self._replay(order[: -(self.rest or self.size)], rate, buffers)
        buffers.write(own.read())

    def _replay(
        self, order: np.ndarray, rate: float, buffers: CarriedBuffers
    ) -> tuple[np.ndarray, CarriedBuffers]:
        """Return the objectives of batches one by one, and what they leave."""
        step = self._single_step()
        values = buffers.read()
        weights = {weight: value for (weight, state), value in values.items() if state is None}
        states = {key: value for key, value in values.items() if key[1] is not None}
        assert self._data is not None
        own = step.start(self._data, self._sizes, weights, states)
        step.set_rate(rate)
        return step.run_epoch(order, self.size, own), own

    def _single_step(self) -> SingleGraphStep:
        if self._single is None:
            self._single = SingleGraphStep(self.task, self.device, self.n_jobs)
        return self._single

    def run(self, rows: np.ndarray, buffers: CarriedBuffers) -> float:
        """Return the objective of the rows of a last batch; what it writes is not kept."""
        assert self._data is not None
        short = len(rows) == self.rest
        columns = {name: take_rows(a, rows) for name, a in self._data.columns(self.task).items()}
        values = self._inputs(columns, 0 if short else 1)
        numbers = np.arange(len(rows), dtype=np.int64)
        values[REST if short else ORDER].update_inplace(numbers if short else numbers.reshape(1, -1))
        compiled = self._compiled(self.rest if short else 0)
        binding = self._binding(buffers, buffers.current, values, compiled)
        value = float(self._call(compiled[1], binding, 0 if short else 1, self.rest if short else 0)[0])
        carried = buffers.read()
        if not np.isfinite(value) or not all(np.isfinite(array).all() for array in carried.values()):
            self._undo_last_batch(buffers)  # the caller steps back to these
            buffers.advance()
        return value

    def graphs(self) -> dict[str, ModelProto]:
        """Return the graph of a batch, and of an epoch once its batches are known."""
        step = {"step": self._single_step().model}
        return step if self._graph is None else {"epoch": self._graph.model, **step}
