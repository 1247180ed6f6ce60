"""Base class of callbacks that log trainings as runs; calls of ``partial_fit`` continue a run."""

from __future__ import annotations

from typing import Any

from .tasks import call_key, check_trainer, is_round

__all__ = ["RunLogger"]

#: Attribute of an estimator with the run of its training, by logger.
RUNS = "_tracked_runs"


class RunLogger:
    """Log every training as a run: an object with ``id``, ``is_continued``, ``add(record)`` and ``end()``."""

    def __init__(self) -> None:
        self._runs: dict[Any, Any] = {}

    @property
    def _key(self) -> tuple[str, ...]:
        """Key of this logger in the attribute of estimators, also in other processes."""
        raise NotImplementedError

    def _run(self, estimator: Any, context: Any, earlier: str | None) -> Any:
        """Return the run ``earlier``, or a new one."""
        raise NotImplementedError

    def setup(self, estimator: Any, context: Any) -> None:
        """Begin a run, or continue that of the last call."""
        check_trainer(self, estimator)
        is_later = context.task_name == "partial_fit"
        self._begin(estimator, context, getattr(estimator, RUNS, {}).get(self._key) if is_later else None)

    def _begin(self, estimator: Any, context: Any, earlier: str | None = None) -> None:
        run = self._runs[call_key(context)] = self._run(estimator, context, earlier)
        setattr(estimator, RUNS, {**getattr(estimator, RUNS, {}), self._key: run.id})

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Do nothing."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Log the record of an epoch."""
        if is_round(context):
            key, record = call_key(context.parent), estimator.history_[-1]
            if record["epoch"] == 1 and self._runs[key].is_continued:  # the training was restarted
                self._runs[key].end()
                self._begin(estimator, context.parent)
            self._runs[key].add(record)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_runs": {}}
