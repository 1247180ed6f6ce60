"""Evaluate a model on the same samples again and again: raw scores are computed once for its weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..graphs import extract_model
from ..runtime.errors import runtime_errors
from ..training.optimisations.hoisting import needs_hoisting, split_prefix
from .running import LiveInference
from .score_runner import ScoreRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from onnx import ModelProto

    from ..data.samples import Data
    from ..problem.configuration import Runtime
    from ..problem.problem import Problem
    from ..training.graphs.task import TrainingTask

__all__ = ["FixedInference"]


class FixedInference(LiveInference):
    """Live inference with samples in memory, whose frozen part of the graph is computed in advance.

    ``task`` computes their losses, maybe by the unseen members of an ensemble. If it does not, predictions
    for the same samples begin with the raw scores of the last losses.
    """

    def __init__(
        self,
        problem: Problem,
        model: ModelProto,
        runtime: Runtime,
        task: TrainingTask,
        data: Data,
        precompute: bool,
    ) -> None:
        super().__init__(problem, model, runtime)
        self._task, self._data, self._precompute = task, data, precompute
        self._raw: np.ndarray | None = None

    def _fixed(self) -> tuple[ScoreRunner, Data]:
        """Return the graph without its frozen part, and samples with the results of that part."""
        calls, task, data, runtime = self._calls.values, self._task, self._data, self.runtime
        if "fixed" not in calls:
            if self._precompute or needs_hoisting(task):
                task, prefix = split_prefix(task, data, runtime.device, runtime.n_jobs)
                data = data if prefix is None else prefix.apply(data)
            calls["fixed"] = ScoreRunner(task, runtime), data
        return calls["fixed"]

    def losses(self, samples: Any, labels: np.ndarray) -> np.ndarray:
        if samples is not self._data.X:
            return super().losses(samples, labels)
        runner, data = self._fixed()
        scores = runner.scores(self.weights, data)
        self._raw = scores if data.members is None else None
        return runner.losses_of(scores, labels)

    def _finished(self, outputs: Sequence[str], finish: Callable[..., Any], samples: Any) -> Any:
        if self._raw is None or not _are_equal(samples, self._data.X):
            return super()._finished(outputs, finish, samples)
        score = self.problem.trainable.objective_tensor
        others = tuple(name for name in outputs if name != score)
        found = dict(zip(others, self._after_score(score, others, samples), strict=True)) if others else {}
        return finish(*(self._raw if name == score else found[name] for name in outputs))

    @runtime_errors()
    def _after_score(self, score: str, outputs: tuple[str, ...], samples: np.ndarray) -> list[np.ndarray]:
        """Return outputs of the model that are computed from the raw scores."""
        calls, key = self._calls.values, ("after", *outputs)
        if key not in calls:
            part = self._part(*outputs, fused=False)
            inputs = [score, *(value.name for value in part.graph.input)]
            declared = {score: self._task.graph.output_type}
            calls[key] = self._session(extract_model(part, outputs, inputs, declared))
        session = calls[key]
        known = {score: self._raw, **self._inputs(samples), **self.weights}
        return session.run(list(outputs), {value.name: known[value.name] for value in session.get_inputs()})


def _are_equal(left: Any, right: Any) -> bool:
    """Return whether two matrices have the same type and values."""
    if type(left) is not np.ndarray or type(right) is not np.ndarray:
        return False
    return left is right or (left.dtype == right.dtype and np.array_equal(left, right, equal_nan=True))
