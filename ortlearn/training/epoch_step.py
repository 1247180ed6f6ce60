"""A whole epoch as one call: a Loop over batches inside the graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto

from .base_step import BaseStep
from .buffers import CarriedBuffers, Data
from .cache import cached_session
from .epoch_graph import LAST, LOSSES, ORDER, REST, EpochGraph, epoch_graph
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
        self._graph, self.session = cached_session(
            self.task,
            (self.size, self.rest),
            self.device,
            self.n_jobs,
            lambda: epoch_graph(self.task, self.size, self.rest),
        )
        self.carried = self._graph.carried

    def bind(self, data: Data, sizes: list[int], buffers: CarriedBuffers) -> None:
        """Bind data, row numbers, weights and results once for every copy of the weights."""
        self._data, self._sizes = data, sizes
        dtype = self.task.dtype
        names = {value.name for value in self.session.get_inputs()}
        columns = data.columns(self.task)
        values = {name: ort_value(a, self.device) for name, a in columns.items() if name in names}
        n_batches = len(data) // self.size
        self._order = ort_value(np.zeros((n_batches, self.size), dtype=np.int64), self.device)
        self._rate = ort_value(np.zeros((), dtype=dtype), self.device)
        values.update({ORDER: self._order, RATE: self._rate})
        if self.rest:
            self._rest = ort_value(np.zeros(self.rest, dtype=np.int64), self.device)
            self._last = ort_value(np.zeros((), dtype=dtype), self.device)
            values[REST] = self._rest
        self._values, self._names = values, names
        self._bindings = [self._binding(buffers, copy, values) for copy in range(buffers.COPIES)]

    def release(self) -> None:
        """Let go of data and weights; graphs and sessions stay."""
        self._data = None
        self._values, self._bindings = {}, []
        self._order = self._rest = self._last = None
        if self._single is not None:
            self._single.release()

    def _binding(self, buffers: CarriedBuffers, copy: int, values: dict[str, Any]) -> Any:
        binding = self.session.io_binding()
        written = (copy + 1) % buffers.COPIES
        for name, value in values.items():
            if name in self._names:
                binding.bind_ortvalue_input(name, value)
        binding.bind_output(LOSSES, "cpu")
        if self.rest:
            binding.bind_ortvalue_output(LAST, self._last)
        for item, old, new in zip(
            buffers.carried, buffers.values[copy], buffers.values[written], strict=True
        ):
            if item.source in self._names:
                binding.bind_ortvalue_input(item.source, old)
            binding.bind_ortvalue_output(item.result, new)
        return binding

    def set_rate(self, rate: float) -> None:
        """Set the learning rate of the next epochs."""
        self._rate_value = rate
        self._rate.update_inplace(np.array(rate, dtype=self.task.dtype))

    def run_epoch(self, order: np.ndarray, batch_size: int, buffers: CarriedBuffers) -> np.ndarray:
        """Update on every batch of an epoch, up to the first objective that is not finite."""
        full = len(order) - self.rest
        self._order.update_inplace(order[:full].reshape(-1, self.size))
        if self.rest:
            self._rest.update_inplace(order[full:])
        binding = self._bindings[buffers.current]
        self.session.run_with_iobinding(binding)
        values = binding.get_outputs()[0].numpy()
        if self.rest and len(values) == full // self.size:
            values = np.append(values, self._last.numpy())
        if np.isfinite(values).all():
            buffers.advance()
            return values
        return self._go_through_again(order, batch_size, buffers)

    def _go_through_again(
        self, order: np.ndarray, batch_size: int, buffers: CarriedBuffers
    ) -> np.ndarray:
        """Run an epoch batch by batch from the weights it started with."""
        step = self._single_step()
        own = self._single_buffers(step, buffers)
        values = step.run_epoch(order, batch_size, own)
        buffers.write(own.read())
        return values

    def _single_step(self) -> SingleGraphStep:
        if self._single is None:
            self._single = SingleGraphStep(self.task, self.device, self.n_jobs)
        return self._single

    def _single_buffers(self, step: SingleGraphStep, buffers: CarriedBuffers) -> CarriedBuffers:
        values = buffers.read()
        weights = {weight: value for (weight, state), value in values.items() if state is None}
        states = {key: value for key, value in values.items() if key[1] is not None}
        assert self._data is not None
        own = step.start(self._data, self._sizes, weights, states)
        step.set_rate(self._rate_value)
        return own

    def run(self, rows: np.ndarray, buffers: CarriedBuffers) -> float:
        """Return the objective of the rows of a last batch; what it writes is not kept."""
        short = len(rows) == self.rest
        order = np.zeros((0, self.size), dtype=np.int64) if short else rows.reshape(1, self.size)
        values = {**self._values, ORDER: ort_value(order, self.device)}
        if short:
            self._rest.update_inplace(rows)
        binding = self._binding(buffers, buffers.current, values)
        self.session.run_with_iobinding(binding)
        return float(self._last.numpy() if short else binding.get_outputs()[0].numpy()[0])

    def graphs(self) -> dict[str, ModelProto]:
        """Return the graph of a batch, and of an epoch once its batches are known."""
        step = {"step": self._single_step().model}
        return step if self._graph is None else {"epoch": self._graph.model, **step}
