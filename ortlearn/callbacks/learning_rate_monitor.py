"""Log the learning rate of every epoch, also of trainings in other processes."""

from __future__ import annotations

from typing import Any

from .tasks import check_trainer, is_round

__all__ = ["LearningRateMonitor"]


def _last_rate(estimator: Any, X: Any, y: Any, **metadata: Any) -> dict[str, Any]:
    """Return epoch and rate, in the form of a scorer of several scores."""
    record = estimator.history_[-1]
    return {"epoch": record["epoch"], "rate": record["rate"]}


class LearningRateMonitor:
    """Log the learning rate of every epoch of every run.

    Set it on a trainer, which may be inside a pipeline or a search. Like scikit-learn's ``ScoringMonitor``,
    it collects the rates of trainings in other processes in the process where it was created.

    Raises
    ------
    ImportError
        With scikit-learn before 1.9.

    See Also
    --------
    ortlearn.learning_rates.Rates : The rates of a schedule, without a training.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn import OrtGradientOptimizer
    >>> from ortlearn.callbacks import LearningRateMonitor
    >>> from ortlearn.learning_rates import LearningRateSGD
    >>> monitor = LearningRateMonitor()
    >>> rate = LearningRateSGD(eta0=0.1, learning_rate="exponential")
    >>> trainer = OrtGradientOptimizer(Ridge(), learning_rate=rate, max_iter=3).set_callbacks(monitor)
    >>> trainer = trainer.fit(*load_diabetes(return_X_y=True))
    >>> [round(row["rate"], 4) for row in monitor.get_logs().data]
    [0.1, 0.095, 0.0902]
    """

    def __init__(self) -> None:
        try:
            from sklearn.callback import ScoringMonitor
        except ImportError as error:
            raise ImportError(
                "LearningRateMonitor needs the callbacks of scikit-learn 1.9 or later: pip install "
                "'scikit-learn>=1.9'."
            ) from error
        self._monitor = ScoringMonitor(scoring=_last_rate)

    def setup(self, estimator: Any, context: Any) -> None:
        """Start logging a training."""
        check_trainer(self, estimator)
        self._monitor.setup(estimator, context)

    def teardown(self, estimator: Any, context: Any) -> None:
        """End logging a training."""
        self._monitor.teardown(estimator, context)

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Do nothing."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Log the rate of an epoch."""
        if is_round(context):
            self._monitor.on_fit_task_end(estimator, context, X=(), y=(), fitted_estimator=estimator)

    def get_logs(self, select: str = "most_recent", include_lineage: bool = False) -> Any:
        """Return the logged rates.

        Parameters
        ----------
        select : {"all", "most_recent"}, default="most_recent"
            Runs to return; a run is a call of ``fit`` of the outermost estimator.
        include_lineage : bool, default=False
            Whether to return rows of the enclosing tasks, too.

        Returns
        -------
        sklearn.callback.ScoringMonitorLog or list of them
            ``data`` is a list of dicts, a row per epoch, and ``data_as_pandas`` the same as a frame:
            ``epoch`` and ``rate`` (None for a solver), and the columns that identify the task, as in every
            log of scikit-learn.
        """
        return self._monitor.get_logs(select=select, include_lineage=include_lineage)
