"""Scores and losses of prepared samples, for which the frozen part of the graph is already computed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial

import numpy as np

from ..data.samples import Data
from ..graphs import extract_model
from ..problem.configuration import Runtime
from ..runtime.buffers import dense_samples, sample_bytes
from ..runtime.checked_sessions import open_session
from ..runtime.errors import runtime_errors
from ..training.graphs.objective import sample_loss_graph
from ..training.graphs.task import TrainingTask
from ..training.optimisations.hoisting import CHUNK_BYTES
from .sample_chunks import BoundedCall

__all__ = ["ScoreRunner"]


class ScoreRunner:
    """Sessions for the raw scores of samples, and for the losses of scores."""

    def __init__(self, task: TrainingTask, runtime: Runtime):
        self._task, self._score, self._label = task, task.graph.output, task.objective.label
        self._open = partial(open_session, device=runtime.device, n_jobs=runtime.n_jobs)
        self._graph, loss = task.graph.model, task.objective.loss
        self._in_python = loss if loss is not None and loss.in_python else None
        if self._in_python is None:
            self._graph, losses = sample_loss_graph(task)
            known = {self._score: task.graph.output_type}
            to_losses = extract_model(self._graph, [losses], [self._score, self._label], known)
            self._losses = self._open(to_losses)

    @cached_property
    def _call(self) -> BoundedCall:
        """Session for scores, which losses do not need."""
        to_scores = extract_model(self._graph, [self._score])
        return BoundedCall(self._open(to_scores), to_scores)

    @runtime_errors()
    def scores(self, weights: Mapping[str, np.ndarray], data: Data) -> np.ndarray:
        """Return raw scores of shape (n_samples, n_scores); chunks of sparse samples are made dense."""
        session, inputs = self._call.session, self._task.inputs(data)
        names = [value.name for value in session.get_inputs()]
        own = {name: array for name, array in weights.items() if name in names}
        features = {name: array for name, array in inputs.items() if name in names}
        size = min(self._call.n_samples(features), len(data))
        if data.is_sparse:
            size = min(size, max(1, CHUNK_BYTES // sample_bytes(features.values())))
        scores = []
        for start in range(0, len(data), size):
            part = slice(start, start + size)
            chunk = {name: dense_samples(array[part]) for name, array in features.items()}
            scores.append(session.run(None, own | chunk)[0])
        return np.concatenate(scores)

    @runtime_errors()
    def losses_of(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the loss of each sample, or of its positions, of shape (n, positions)."""
        if self._in_python is not None:
            return self._in_python.evaluate(labels.copy(), scores.copy())[0]  # it may overwrite both
        return self._losses.run(None, {self._score: scores, self._label: labels})[0]

    def losses(self, scores: np.ndarray, data: Data) -> np.ndarray:
        """Return the loss of each sample, averaged over positions."""
        losses = self.losses_of(scores, data.y)
        if losses.ndim == 1:
            return losses
        weights = np.ones(len(losses)) if data.sample_weight is None else data.sample_weight
        weights = np.broadcast_to(weights.reshape(len(losses), -1), losses.shape)
        return (losses * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), np.finfo(losses.dtype).tiny)
