"""Trials of Optuna: epochs are reported, hopeless trainings are pruned, and leave the estimator as it was."""

import pytest
from sklearn.exceptions import NotFittedError

from ortlearn.callbacks import OptunaPruner

optuna = pytest.importorskip("optuna")
pytestmark = [
    pytest.mark.needs_callbacks,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def test_epochs_are_reported_and_hopeless_trainings_pruned(trainer, data):
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    trainers = []

    def objective(trial):
        rate = trial.suggest_float("rate", 1e-7, 1.0, log=True)
        own = trainer.set_params(learning_rate=rate).__sklearn_clone__()
        trainers.append(own.set_callbacks(OptunaPruner(trial)))
        return max(own.fit(*data).validation_scores_)

    pruner = optuna.pruners.MedianPruner(n_startup_trials=1, n_warmup_steps=1)
    study = optuna.create_study(direction="maximize", pruner=pruner)
    for rate in (0.1, 1e-7):
        study.enqueue_trial({"rate": rate})
    study.optimize(objective, n_trials=2)
    good, bad = study.trials
    assert [good.state.name, bad.state.name] == ["COMPLETE", "PRUNED"]
    scores = [record["validation_score"] for record in trainers[0].history_]
    assert list(good.intermediate_values.values()) == scores
    with pytest.raises(NotFittedError):
        trainers[1].predict(data[0])


def test_a_missing_column_is_an_error(trainer, data):
    trial = optuna.create_study().ask()
    trainer.set_params(early_stopping=False, max_iter=2).set_callbacks(OptunaPruner(trial))
    with pytest.raises(ValueError, match="has no validation_score: pass X_val"):
        trainer.fit(*data)
