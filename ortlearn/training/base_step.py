"""Base class of training steps."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

import numpy as np
from onnx import ModelProto

from .batches import split_batches
from .buffers import CarriedBuffers, Data
from .devices import Device
from .sessions import make_session
from .step_graphs import Carried
from .task import TrainingTask
from .threads import threads_of_training

__all__ = ["BaseStep", "Pause", "run_batches"]

#: Takes the objectives of the batches so far, some arrays or numbers.
Pause = Callable[[list[Any]], None]


def run_batches(
    run: Callable[[np.ndarray, CarriedBuffers], float],
    order: np.ndarray,
    batch_size: int,
    buffers: CarriedBuffers,
    pause: Pause | None = None,
) -> np.ndarray:
    """Run batches one by one, up to the first objective that is not finite."""
    values: list[Any] = []
    advance, note = buffers.advance, values.append
    for rows in split_batches(order, batch_size):
        if pause is not None and values:
            pause(values)
        value = run(rows, buffers)
        note(value)
        if not isfinite(value):
            buffers.step_back(1)  # the weights that gave this value are not the last good ones
            break
        advance()
    return np.array(values)


class BaseStep:
    """Base class of the steps: build once, bind data and weights, then run epoch after epoch.

    Parameters
    ----------
    task : TrainingTask
        What is trained.
    device : Device
        Where.
    n_jobs : int, default=None
        Threads of an operator.

    Attributes
    ----------
    checks_loss : bool
        Whether the next batch checks the gradient of a loss in Python.
    """

    checks_loss = False
    #: Rows that are bound, and rows of an epoch.
    _loaded: Data | None = None
    n_samples = 0

    def __init__(self, task: TrainingTask, device: Device, n_jobs: int | None = None):
        self.task = task
        self.device = device
        self.n_jobs = n_jobs
        self.carried = self.build()

    def threads(self, size: int | str) -> int | None:
        """Return the threads that pay for batches of a size, as ``n_jobs``.

        Parameters
        ----------
        size : int or str
            Rows of a full batch; a name where any number will do.

        Returns
        -------
        int or None
            What was asked for, or 1.
        """
        return threads_of_training(self.task, size, self.n_jobs)

    def make_session(self, model: ModelProto) -> Any:
        """Return a session on the step's device.

        Parameters
        ----------
        model : onnx.ModelProto
            Graph.

        Returns
        -------
        onnxruntime.InferenceSession
            Session.
        """
        return make_session(model, self.device, self.n_jobs)

    def start(
        self,
        data: Data,
        sizes: list[int],
        weights: dict[str, np.ndarray],
        states: dict | None = None,
        n_samples: int | None = None,
    ) -> CarriedBuffers:
        """Put weights and states on the device and bind them to the data.

        Parameters
        ----------
        data : Data
            Rows to train on.
        sizes : list of int
            Sizes of batch that will come: the full one, and the last short one if there is any.
        weights : dict of str to ndarray
            Initial weights.
        states : dict of (str, str) to ndarray, default=None
            States to go on from, those of names and shapes that the update has; fresh ones by default.
        n_samples : int, default=None
            Rows of an epoch, where these are the first of several chunks (see :meth:`load`); those of data
            by default.

        Returns
        -------
        CarriedBuffers
            Weights and states of this training.
        """
        self.sizes, self.n_samples = sizes, len(data) if n_samples is None else n_samples
        self.prepare(data, sizes)
        arrays: dict = {(name, None): array for name, array in weights.items()}
        for name, array in weights.items():
            for state, value in self.task.update.learning_rate.init(array).items():
                arrays[name, state] = value
        for key, value in (states or {}).items():
            if key in arrays and arrays[key].shape == value.shape:
                arrays[key] = value.astype(arrays[key].dtype)
        buffers = CarriedBuffers(self.carried, arrays, self.device)
        self.bind(data, sizes, buffers)
        self._loaded = data
        return buffers

    def load(self, data: Data, buffers: CarriedBuffers) -> None:
        """Take other rows, the next chunk of an epoch; nothing happens where they are those of now.

        Parameters
        ----------
        data : Data
            Rows of the same columns.
        buffers : CarriedBuffers
            Weights and states, as they are.
        """
        if data is not self._loaded:
            self.rebind(data, buffers)
            self._loaded = data

    def run_epoch(
        self, order: np.ndarray, batch_size: int, buffers: CarriedBuffers, pause: Pause | None = None
    ) -> np.ndarray:
        """Update on every batch of an epoch, up to the first objective that is not finite.

        Parameters
        ----------
        order : ndarray of shape (n_samples,), int64
            Row numbers in the order they are visited: those of an epoch, or of its last batches.
        batch_size : int
            Rows of a batch.
        buffers : CarriedBuffers
            Weights and states; those of the last finite objective where one is not.
        pause : callable, default=None
            Called between two parts of the epoch with the objectives so far, in a list that grows.

        Returns
        -------
        ndarray of shape (n_batches,)
            Objective of each batch; the last one is the only one that may not be finite.
        """
        return run_batches(self.run, order, batch_size, buffers, pause)

    def build(self) -> list[Carried]:
        """Build graphs and sessions; return what is carried from step to step."""
        raise NotImplementedError

    def prepare(self, data: Data, sizes: list[int]) -> None:
        """Build what depends on the sizes of batch; nothing by default.

        Parameters
        ----------
        data : Data
            Rows that will come.
        sizes : list of int
            Sizes of batch: the full one, and the last short one if there is one.
        """

    def bind(self, data: Data, sizes: list[int], buffers: CarriedBuffers) -> None:
        """Bind data, weights and results."""
        raise NotImplementedError

    def rebind(self, data: Data, buffers: CarriedBuffers) -> None:
        """Bind other rows.

        Parameters
        ----------
        data : Data
            Rows of the same columns.
        buffers : CarriedBuffers
            Weights and states, as they are.
        """
        self.bind(data, self.sizes, buffers)

    def release(self) -> None:
        """Let go of data and weights; graphs and sessions stay."""
        raise NotImplementedError

    def set_rate(self, rate: float) -> None:
        """Set the learning rate of the next steps."""
        raise NotImplementedError

    def run(self, rows: np.ndarray, buffers: CarriedBuffers) -> float:
        """Return the objective of a batch; what it writes counts once the caller advances the buffers."""
        raise NotImplementedError

    def graphs(self) -> dict[str, ModelProto]:
        """Return the graphs of the step by name."""
        raise NotImplementedError
