"""Base class of training steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

import numpy as np
from onnx import ModelProto

from ...data.orders import batch_weights
from ...data.samples import Data
from ...runtime.buffers import Carried, CarriedBuffers
from ...runtime.devices import Device
from ...runtime.providers import CPU
from ..graphs.task import TrainingTask
from ..optimisations.activations import check_memory
from .threads import threads_of_training

__all__ = ["BaseStep", "Pause", "run_batches"]

#: Learning rate of a trial.
TRIAL_RATE = 0.1
#: Called with the objectives of the batches so far, as arrays or numbers.
Pause = Callable[[list[Any]], None]


def run_batches(
    run: Callable[[np.ndarray, CarriedBuffers], float],
    order: np.ndarray,
    batch_size: int,
    buffers: CarriedBuffers,
    pause: Pause | None = None,
) -> np.ndarray:
    """Run batches one by one, up to the first non-finite objective."""
    values: list[Any] = []
    for start in range(0, len(order), batch_size):
        if start and pause is not None:
            pause(values)
        value = run(order[start : start + batch_size], buffers)
        values.append(value)
        if not isfinite(value):
            buffers.step_back(1)  # to the weights before those that gave this objective
            break
        buffers.advance()
    return np.array(values)


class BaseStep:
    """Base class of training steps: built once, bound to data and weights, then run for each epoch."""

    checks_loss = False
    #: Whether the weights, without states, are read and written as parts of vectors.
    carries_vectors = False
    #: Samples that are bound (of a cluster, the result of a round), and number of samples of an epoch.
    _data: Any = None
    n_samples = 0
    #: Numbers of samples of batches, by the number of samples of a call.
    _sizes: tuple[int, np.ndarray] = 0, np.zeros(0)
    #: Scalar tensor with the learning rate.
    _rate: Any

    def __init__(self, task: TrainingTask, device: Device, n_jobs: int | None = None):
        self.task = task
        self.device = device
        self.n_jobs = n_jobs
        self.carried = self.build()

    def threads(self, size: int | str) -> int | None:
        """Return the number of threads for a batch size: ``n_jobs``, or 1 if more are not faster."""
        return threads_of_training(self.task, size, self.n_jobs)

    def selected(self, *arguments: Any) -> BaseStep:
        """Return the step that trains, given the arguments of :meth:`start`: this one by default."""
        return self

    def start(
        self,
        data: Data,
        sizes: list[int],
        weights: dict[str, np.ndarray],
        states: dict | None = None,
        n_samples: int | None = None,
    ) -> CarriedBuffers:
        """Put weights and states on the device, bind them to the data, and return them.

        ``sizes`` are those of full batches and of a short last one; for :meth:`evaluate` there are none.
        Initial ``states`` are used if name and shape match. An epoch has ``n_samples``, if ``data`` is the
        first of several chunks (see :meth:`load`).
        """
        if self.device.provider == CPU and sizes:
            check_memory(self.task, data, max(sizes))
        self.sizes, self.n_samples = sizes, len(data) if n_samples is None else n_samples
        self.prepare(data, sizes)
        arrays: dict = {(name, None): array for name, array in weights.items()}
        for name, array in weights.items():
            for state, value in self.task.update.learning_rate.init(array).items():
                arrays[name, state] = value
        for key, value in (states or {}).items():
            if key in arrays and arrays[key].shape == value.shape:
                arrays[key] = value.astype(arrays[key].dtype)
        buffers = CarriedBuffers(self.carried, arrays, self.device, self.carries_vectors)
        self._data = data
        self.bind(data, sizes, buffers)
        return buffers

    def load(self, data: Any, buffers: CarriedBuffers) -> None:
        """Bind the next chunk of an epoch, with the same columns, unless it is already bound."""
        if data is not self._data:
            self._data = data
            self.rebind(data, buffers)

    @property
    def has_all_samples(self) -> bool:
        """Whether all samples of an epoch are bound."""
        return len(self._data) == self.n_samples

    def batch_weights(self, order: np.ndarray, batch_size: int) -> np.ndarray:
        """Return the weights of batches in the mean objective; without sample weights they are cached."""
        weights = self._data.weight_per_sample
        if weights is not None:
            return batch_weights(order, batch_size, weights)
        if self._sizes[0] != len(order):
            self._sizes = len(order), batch_weights(order, batch_size, None)
        return self._sizes[1]

    def run_epoch(
        self, order: np.ndarray, batch_size: int, buffers: CarriedBuffers, pause: Pause | None = None
    ) -> np.ndarray:
        """Update on every batch of an epoch, up to the first non-finite objective; return the objectives.

        ``order`` has the sample indices of the (remaining) batches. If the last objective is non-finite,
        weights and states are those of the last finite one. ``pause`` is called with the objectives so far.
        """
        return run_batches(self.run, order, batch_size, buffers, pause)

    def build(self) -> list[Carried]:
        """Build graphs and sessions; return the weights and states that steps update."""
        raise NotImplementedError

    def prepare(self, data: Data, sizes: list[int]) -> None:
        """Build graphs and sessions that depend on the batch sizes; nothing by default."""

    def bind(self, data: Data, sizes: list[int], buffers: CarriedBuffers) -> None:
        """Bind data, weights and results."""
        raise NotImplementedError

    def rebind(self, data: Data, buffers: CarriedBuffers) -> None:
        """Bind other samples with the same columns; weights and states do not change."""
        self.bind(data, self.sizes, buffers)

    def release(self) -> None:
        """Release data and weights; keep graphs and sessions."""
        raise NotImplementedError

    def set_rate(self, rate: float) -> None:
        """Set the learning rate of the next steps."""
        self._rate.update_inplace(np.array(rate, dtype=self.task.graph.dtype))

    def run(self, samples: np.ndarray, buffers: CarriedBuffers) -> float:
        """Update on a batch and return its objective; the caller advances the buffers to keep the update."""
        raise NotImplementedError

    def evaluate(self, weights: Mapping[str, np.ndarray], width: float = 0.0) -> tuple[float, np.ndarray]:
        """Return the objective of all samples and its gradient, a float64 vector in the order of the weights.

        Steps for solvers do it, here or on other machines. Absolute values of weights are omitted; other
        kinks are rounded if ``width`` is positive.
        """
        raise NotImplementedError

    def trial(self, *arguments: Any) -> tuple[dict, dict]:
        """Return weights before and after a full and a short batch, to compare devices."""
        data, sizes, weights, *_ = arguments
        buffers = self.start(*arguments)
        self.set_rate(TRIAL_RATE)
        self.run_epoch(np.arange(sum(sizes), dtype=np.int64) % len(data), sizes[0], buffers)
        return weights, buffers.split()[0]

    def graphs(self) -> dict[str, ModelProto]:
        """Return the graphs of the step by name."""
        raise NotImplementedError
