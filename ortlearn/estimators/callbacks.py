"""scikit-learn's callbacks around a training: a task for the call, and one inside it for each epoch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn import __version__

from ..training import Observer, Snapshot, TrainingResult
from .inference import LiveInference
from .validation import Rows

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """What stands for callbacks where scikit-learn has none."""

        def set_callbacks(self, *callbacks):
            """Raise an error: the callbacks are scikit-learn's.

            Parameters
            ----------
            *callbacks : callback instances
                Callbacks.

            Raises
            ------
            ImportError
                Always.
            """
            raise ImportError(
                f"Callbacks begin with scikit-learn 1.9, and {__version__} is installed: "
                "pip install 'scikit-learn>=1.9'."
            )

    def with_callbacks(method):  # type: ignore[no-redef]
        """Return a method as it is."""
        return method


__all__ = ["DURING_FIT", "CallbackSupportMixin", "FitTask", "begin_task", "with_callbacks"]

#: What scikit-learn keeps on an estimator while it is trained.
DURING_FIT = ("_callback_fit_ctx", "_skl_callbacks_to_teardown")
#: What it has of its callbacks, and of those around it.
OF_CALLBACKS = ("_skl_callbacks", "_parent_callback_ctx")
#: What sets the attributes that a training leaves.
TakeOver = Callable[[Any, TrainingResult], None]


class _Task:
    """A task of an estimator, as callbacks hear of it."""

    def __init__(self, context: Any, estimator: Any, rows: Rows):
        weights = rows.sample_weight
        self._context = context
        self._estimator = estimator
        self._rows = rows
        metadata = None if weights is None else {"sample_weight": weights}
        self._said = {"estimator": estimator, "X": rows.X, "y": rows.y, "metadata": metadata}
        context.call_on_fit_task_begin(**self._said)

    def _end(self, attributes: Callable[[], dict[str, Any]]) -> bool:
        """Tell that it ends; with these attributes a copy of the estimator predicts."""
        return self._context.call_on_fit_task_end(**self._said, reconstruction_attributes=attributes)


class FitTask(_Task):
    """A call of ``fit`` or ``partial_fit``."""

    def observer(self, take_over: TakeOver) -> Observer:
        """Return what makes a task of every epoch.

        Parameters
        ----------
        take_over : callable
            Takes an estimator and a result, and sets the attributes that such a training leaves.

        Returns
        -------
        Observer
            For the training loop.
        """
        return _Epochs(self._context, self._estimator, self._rows, take_over)

    def end(self) -> None:
        """Tell that the estimator is trained."""
        self._end(dict)


class _Epochs:
    """Observer of a training: every epoch, or iteration of a solver, is a task."""

    def __init__(self, context: Any, estimator: Any, rows: Rows, take_over: TakeOver):
        name = "iteration" if estimator._step.task.learning_rate.full_batch else "epoch"
        self._make = lambda: _Task(context.subcontext(task_name=name), estimator, rows)
        self._estimator = estimator
        self._take_over = take_over
        self._records: list[dict[str, Any]] = []
        self._live: LiveInference | None = None
        # Hooks look here for what was measured; the list of an earlier call stays as it is.
        estimator.history_ = list(estimator.history_)

    def begin(self, epoch: int) -> None:
        self._task = self._make()

    def end(self, record: dict[str, Any], snapshot: Callable[[], Snapshot]) -> bool:
        self._records.append(record)
        self._estimator.history_.append(record)
        return self._task._end(lambda: self._attributes(snapshot()))

    def _attributes(self, snapshot: Snapshot) -> dict[str, Any]:
        """Return what the training would leave if it ended now: all that a copy has, but no callbacks."""
        result = TrainingResult(history=list(self._records))
        result.keep(snapshot)
        trained = object.__new__(type(self._estimator))
        trained.__dict__.update(self._estimator.__dict__)
        self._take_over(trained, result)
        if self._live is None:
            self._live = LiveInference(trained._problem, trained._trained, trained._device(), trained.n_jobs)
        state = {key: value for key, value in trained.__getstate__().items() if key not in OF_CALLBACKS}
        # Set as a whole: a training inside a hook would call that hook again, if the copy kept its callbacks.
        return {"__dict__": state | {"_inference": self._live.holding(result.weights)}}


def begin_task(estimator: Any, name: str, rows: Rows, max_iter: int) -> FitTask | None:
    """Begin the task of a call, where somebody listens.

    Parameters
    ----------
    estimator : BaseOrtGradientEstimator
        What is trained.
    name : {"fit", "partial_fit"}
        Name of the task.
    rows : Rows
        What it is trained on.
    max_iter : int
        How many epochs there are at most.

    Returns
    -------
    FitTask or None
        None where there are no callbacks, nor a pipeline or a search around.
    """
    if not (hasattr(estimator, "_skl_callbacks") or hasattr(estimator, "_parent_callback_ctx")):
        return None
    context = estimator._init_callback_context(task_name=name, max_subtasks=max_iter)
    return FitTask(context, estimator, rows)
