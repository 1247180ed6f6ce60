"""scikit-learn callbacks of a training: a task for the call of ``fit``, and a subtask for each epoch."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

from ..inference.running import LiveInference
from ..problem.samples import Samples
from ..training.loop import TrainingResult
from ..training.loop_records import Observer, Snapshot
from .callback_support import CALLBACKS
from .fitted_model import FittedModel
from .state import Progress, TrainingState

__all__ = ["EstimatorView", "FitTask"]

#: Attribute that tells callbacks during their setup whether the training is resumed.
RESUMED = "_is_resumed"


class EstimatorView:
    """An estimator in training (a copy of the one whose ``fit`` was called), for scorers and callbacks."""

    def __init__(self, estimator: Any):
        self._estimator = estimator

    def with_model(self, model: Any) -> Any:
        """Return a copy of the estimator with a fitted model."""
        fitted = copy.copy(self._estimator)
        fitted._fitted = model
        return fitted

    def task(self, name: str, max_iter: int, is_resumed: bool = False) -> FitTask | None:
        """Return the task of a call, before it begins; None without callbacks."""
        if not any(hasattr(self._estimator, name) for name in CALLBACKS):
            return None
        setattr(self._estimator, RESUMED, is_resumed)  # for setup hooks of callbacks
        try:
            context = self._estimator._init_callback_context(task_name=name, max_subtasks=max_iter)
        finally:
            delattr(self._estimator, RESUMED)
        return FitTask(context, self._estimator)


class _Task:
    """A task of an estimator, which calls the hooks of callbacks."""

    def __init__(self, context: Any, estimator: Any):
        self._context = context
        self._estimator = estimator

    def begin(self, samples: Samples) -> None:
        """Call ``on_fit_task_begin`` with the samples."""
        weights = samples.sample_weight
        self._samples = samples
        metadata = None if weights is None else {"sample_weight": weights}
        self._arguments = {"estimator": self._estimator, "X": samples.X, "y": samples.y, "metadata": metadata}
        self._context.call_on_fit_task_begin(**self._arguments)

    def _end(self, model: Callable[[], FittedModel]) -> bool:
        """Call ``on_fit_task_end`` with the model for reconstructed estimators."""
        attributes = {"reconstruction_attributes": lambda: {"_fitted": model()}}
        return self._context.call_on_fit_task_end(**self._arguments, **attributes)


class FitTask(_Task):
    """A call of ``fit`` or ``partial_fit``."""

    @property
    def path_to_resume(self) -> Any:
        """File of the training that a callback wants to resume, or None."""
        for callback in getattr(self._estimator, "_skl_callbacks", ()):
            found = getattr(callback, "path_to_resume", lambda context: None)(self._context)
            if found is not None:
                return found
        return None

    def observer(
        self,
        name: str,
        history: list[dict[str, Any]],
        model_after: Callable[[TrainingResult], FittedModel],
        resumed: list[dict[str, Any]],
    ) -> Observer:
        """Return an observer that makes a task ``name`` of every epoch."""
        # Hooks read the history here; the list of an earlier call is not changed.
        progress = self._estimator._fitted = Progress(TrainingState(history=[*history, *resumed]))
        epochs = _Epochs(
            lambda: self._subtask(name),
            progress.state.history,
            model_after,
            partial(self._call_hook, "on_training_pause"),
            resumed,
        )
        progress.estimator = lambda: EstimatorView(self._estimator).with_model(epochs.model())
        self._epochs = epochs
        return epochs

    def _subtask(self, name: str) -> _Task:
        task = _Task(self._context.subcontext(task_name=name), self._estimator)
        task.begin(self._samples)
        return task

    def _call_hook(self, hook: str) -> None:
        """Call a hook of ortlearn on the callbacks that have it."""
        for callback in getattr(self._estimator, "_skl_callbacks", ()):
            if hasattr(callback, hook):
                getattr(callback, hook)(self._estimator, self._context)

    def end(self, model: FittedModel) -> None:
        """Call the hooks at the end of the training."""
        self._call_hook("on_training_over")
        self._epochs.close()
        self._estimator._fitted = model
        self._end(lambda: model)


class _Epochs:
    """Observer of a training: every epoch, or iteration of a solver, is a task."""

    def __init__(
        self,
        make_task: Callable[[], _Task],
        history: list,
        model_after: Callable,
        pause: Callable[[], None],
        resumed: list[dict[str, Any]],
    ):
        self._make_task = make_task
        self._history = history
        self._model_after = model_after
        self._pause = pause
        self._records: list[dict[str, Any]] = list(resumed)
        self._live: LiveInference | None = None
        self._snapshot: Callable[[], Snapshot] | None = None

    def begin(self, epoch: int) -> None:
        self._task = self._make_task()

    def end(self, record: dict[str, Any], snapshot: Callable[[], Snapshot]) -> bool:
        self._records.append(record)
        self._history.append(record)
        self._snapshot = snapshot
        return self._task._end(self.model)

    def pause(self, snapshot: Callable[[], Snapshot]) -> None:
        self._snapshot = snapshot
        self._pause()

    def close(self) -> None:
        """Release weights and states."""
        self._snapshot = None

    def model(self) -> FittedModel:
        """Return the model as it is now, with sessions that all epochs share."""
        assert self._snapshot is not None
        result = TrainingResult(history=list(self._records))
        result.keep(self._snapshot())
        model = self._model_after(result)
        if self._live is None:
            self._live = LiveInference(model.problem, model.trained, model.runner.runtime)
        model.step, model.inference = None, self._live.with_weights(result.weights)
        return model
