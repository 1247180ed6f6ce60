"""Report the epochs of a training to a trial of Optuna, which may end it."""

from __future__ import annotations

from typing import Any

from .tasks import check_trainer, imported, is_round, numbers_of

__all__ = ["OptunaPruner"]


class OptunaPruner:
    """Report a column of the history to a trial of Optuna, and end trainings that its pruner gives up.

    A training that is pruned raises ``optuna.TrialPruned``, which ``study.optimize`` expects, and leaves the
    estimator as it was.

    Parameters
    ----------
    trial : optuna.Trial
        Trial of the objective that trains the estimator.
    monitor : str, default="validation_score"
        Column of the history; the direction of the study is "maximize" for scores, "minimize" for losses.

    Raises
    ------
    ImportError
        On the first training without optuna: ``pip install 'ortlearn[optuna]'``.
    ValueError
        If an epoch has no value of ``monitor``.

    Examples
    --------
    >>> from ortlearn.callbacks import OptunaPruner
    >>> def objective(trial):
    ...     rate = trial.suggest_float("rate", 1e-4, 1e-1, log=True)
    ...     trainer = OrtGradientOptimizer(MLPRegressor(), learning_rate=rate, early_stopping=True)
    ...     return max(trainer.set_callbacks(OptunaPruner(trial)).fit(X, y).validation_scores_)
    >>> optuna.create_study(direction="maximize").optimize(objective, n_trials=20)  # doctest: +SKIP
    """

    def __init__(self, trial: Any, *, monitor: str = "validation_score") -> None:
        self.trial = trial
        self.monitor = monitor

    def setup(self, estimator: Any, context: Any) -> None:
        """Check the estimator."""
        check_trainer(self, estimator)
        imported("optuna", "optuna", self)

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Do nothing."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Report an epoch; raise ``optuna.TrialPruned`` if the pruner ends the trial."""
        if not is_round(context):
            return
        record = estimator.history_[-1]
        value = numbers_of(record).get(self.monitor)
        if value is None:
            raise ValueError(
                f"Epoch {record['epoch']} has no {self.monitor}: pass X_val and y_val or "
                "early_stopping=True, or choose another column of history_ as monitor."
            )
        self.trial.report(value, record["epoch"])
        if self.trial.should_prune():
            from optuna import TrialPruned

            raise TrialPruned(f"Pruned in epoch {record['epoch']} with a {self.monitor} of {value:.6g}.")

    def teardown(self, estimator: Any, context: Any) -> None:
        """Do nothing."""
