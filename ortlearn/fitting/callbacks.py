"""scikit-learn callbacks of a training: a task for the call of ``fit``, and a subtask for each epoch."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from ..inference.running import LiveInference
from ..problem.samples import Samples
from ..training.settings import Observer
from ..training.state import TrainingState
from .callback_support import CALLBACKS
from .fitted_model import FittedModel

__all__ = ["EstimatorView", "FitTask", "Progress"]

#: Attribute that tells callbacks during their setup whether the training is resumed.
RESUMED = "_is_resumed"


@dataclass
class Progress:
    """Progress of a training, which replaces the fitted model of an estimator in callbacks."""

    is_final: ClassVar[bool] = False

    state: TrainingState  # state with the history so far
    estimator: Callable[[], Any] | None = None  # returns the estimator with the current weights


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

    _epochs: _Epochs | None = None

    @property
    def path_to_resume(self) -> Any:
        """File of the training that a callback wants to resume, or None."""
        for callback in getattr(self._estimator, "_skl_callbacks", ()):
            found = getattr(callback, "path_to_resume", lambda context: None)(self._context)
            if found is not None:
                return found
        return None

    @property
    def restarts(self) -> bool:
        """Whether a callback wants a call of ``partial_fit`` to begin with the weights alone."""
        callbacks = getattr(self._estimator, "_skl_callbacks", ())
        return any(getattr(callback, "restarts", False) for callback in callbacks)

    def observer(
        self, name: str, state: TrainingState, model_after: Callable[[TrainingState], FittedModel]
    ) -> Observer:
        """Return an observer that makes a task ``name`` of every epoch of a training from a state."""
        # Hooks read the history here; the list of an earlier call is not changed.
        progress = self._estimator._fitted = Progress(replace(state, history=[*state.history]))
        epochs = _Epochs(
            lambda: self._subtask(name),
            progress.state.history,
            model_after,
            partial(self._call_hook, "on_training_pause"),
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
        if self._epochs is None:  # the start was kept without a training
            self._estimator._fitted = model
        self._call_hook("on_training_over")
        if self._epochs is not None:
            self._epochs.close()
        self._estimator._fitted = model
        self._end(lambda: model)


class _Epochs:
    """Observer of a training: every epoch, or iteration of a solver, is a task."""

    def __init__(
        self,
        make_task: Callable[[], _Task],
        history: list,
        model_after: Callable[[TrainingState], FittedModel],
        pause: Callable[[], None],
    ):
        self._make_task = make_task
        self._history = history
        self._model_after = model_after
        self._pause = pause
        self._live: LiveInference | None = None
        self._state: Callable[[], TrainingState] | None = None

    def begin(self, epoch: int) -> None:
        self._task = self._make_task()

    def end(self, record: dict[str, Any], state: Callable[[], TrainingState]) -> bool:
        self._history.append(record)
        self._state = state
        return self._task._end(self.model)

    def pause(self, state: Callable[[], TrainingState]) -> None:
        self._state = state
        self._pause()

    def close(self) -> None:
        """Release weights and states."""
        self._state = None

    def model(self) -> FittedModel:
        """Return the model as it is now, with sessions that all epochs share."""
        assert self._state is not None
        model = self._model_after(self._state())
        if self._live is None:
            self._live = LiveInference(model.problem, model.trained, model.runner.runtime)
        model.step, model.inference = None, self._live.with_weights(model.state.weights)
        return model
