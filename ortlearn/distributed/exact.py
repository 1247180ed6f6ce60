"""Exact training: workers compute objective and gradient of shards, the driver sums them and updates."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from ..learning_rates import LearningRateLBFGS
from ..penalties import NoPenalty
from ..runtime.sessions import make_session
from ..training.graphs.names import RATE
from ..training.steps.two_call_graphs import update_graph
from .rounds import ClusterStep, Round
from .shards import ShardSamples

__all__ = ["GradientRounds"]


class GradientRounds:
    """Epochs of one batch: a round sums the gradients of all shards, and the driver updates the weights."""

    n_samples = 1

    def __init__(self, samples: ShardSamples, step: ClusterStep):
        self._step = step
        task = step.task.changed(learning_rate=LearningRateLBFGS(), penalty=NoPenalty())
        self._of_loss = ClusterStep(samples, task)
        self._update = update_graph(step.task)
        self._session = make_session(self._update.model, samples.runtime.device, samples.runtime.n_jobs)

    def chunks(self, epoch: int, n_skipped: int) -> Generator[tuple[Round, np.ndarray], None, None]:
        """Yield the result of the round of an epoch, unless it is done."""
        if not n_skipped:
            yield self._run(), np.array([0])

    def _run(self) -> Round:
        """Return the updated weights and states."""
        arrays, names = self._step.buffers.read(), self._step.task.graph.weights
        weights = {name: arrays[name, None] for name in names}
        loss, gradient = self._of_loss.evaluate(weights)
        ends = np.cumsum([array.size for array in weights.values()])
        feeds: dict[str, Any] = {RATE: np.array(self._step.rate, dtype=self._step.task.graph.dtype)}
        feeds |= {item.source: arrays[item.weight, item.state] for item in self._update.carried}
        for (name, array), part in zip(weights.items(), np.split(gradient, ends[:-1]), strict=True):
            feeds[f"{name}_grad"] = part.reshape(array.shape).astype(array.dtype)
        known = {value.name for value in self._session.get_inputs()}
        results = [item.result for item in self._update.carried]
        values = [] if self._update.value is None else [self._update.value]
        found = self._session.run([*results, *values], {k: v for k, v in feeds.items() if k in known})
        new = {
            (item.weight, item.state): array
            for item, array in zip(self._update.carried, found[: len(results)], strict=True)
        }
        return Round(new, loss + sum(map(float, found[len(results) :])))
