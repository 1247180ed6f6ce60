"""Trials of Optuna: epochs are reported, hopeless trainings are pruned, and leave the estimator as it was."""

import pytest
from sklearn.exceptions import NotFittedError

from ortlearn.callbacks import OptunaPruner
from ortlearn.learning_rates import LearningRateAdam, LearningRateSGDNesterov
from ortlearn.penalties import ElasticPenalty, L1Penalty
from ortlearn.search import suggest

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


def test_calls_of_partial_fit_are_epochs_of_a_trial(trainer, data):
    """A stream that its trial gives up keeps the weights of the call before."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    X, y = data
    stream = trainer.set_params(early_stopping=False)

    def objective(trial):
        stream.set_callbacks(OptunaPruner(trial))
        while stream.partial_fit(X[::2], y[::2], X_val=X[1::2], y_val=y[1::2]).n_iter_ < 5:
            pass

    study = optuna.create_study(
        direction="maximize", pruner=optuna.pruners.ThresholdPruner(upper=0.5, n_warmup_steps=3)
    )
    study.optimize(objective, n_trials=1)
    (trial,) = study.trials
    assert trial.state.name == "PRUNED" and [*trial.intermediate_values] == [1, 2, 3]
    assert stream.n_iter_ == 2 and [*trial.intermediate_values.values()][:2] == stream.validation_scores_


def test_a_missing_column_is_an_error(trainer, data):
    trial = optuna.create_study().ask()
    trainer.set_params(early_stopping=False, max_iter=2).set_callbacks(OptunaPruner(trial))
    with pytest.raises(ValueError, match="has no validation_score: pass X_val"):
        trainer.fit(*data)


RANGES = {
    "learning_rate__eta0": (float, 1e-5, 0.1, True),
    "learning_rate__beta_1": (float, 0.001, 0.999, True),
    "learning_rate__epsilon": (float, 1e-10, 1e-6, True),
    "learning_penalty__l1": (float, 1e-3, 10.0, True),
    "max_iter": (int, 1, 400, True),
    "validation_fraction": (float, 0.001, 0.999, True),
    "clip_norm": (float, 0.02, 200.0, True),
}
CHOICES = {
    "learning_penalty__proximal": (True, False),
    "shuffle": (True, False),
    "dtype": ("auto", "float32", "float64"),
}


def test_ranges_are_those_of_plugins(trainer):
    given = {"learning_rate": LearningRateAdam(), "learning_penalty": L1Penalty(0.1), "clip_norm": 2.0}
    trainer.set_params(**given)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for _ in range(20):
        trial = study.ask()
        own = suggest(trial, trainer, [*RANGES, *CHOICES])
        own.learning_rate.check()
        own.learning_penalty.check()
        own._validate_params()
        assert {name: own.get_params()[name] for name in trial.params} == trial.params
    for name, (kind, low, high, log) in RANGES.items():
        found = trial.distributions[name]
        assert isinstance(trial.params[name], kind)
        assert (found.low, found.high) == pytest.approx((low, high)) and found.log == log
    for name, choices in CHOICES.items():
        assert set(trial.distributions[name].choices) == set(choices)
    assert trainer.learning_rate.eta0 == 0.001 and trainer.max_iter == 4


def test_study_finds_a_rate(trainer, data):
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    trainer.set_params(learning_rate=LearningRateSGDNesterov(eta0=1e-3))

    def objective(trial):
        names = ["learning_rate__eta0", "learning_rate__momentum", "learning_penalty"]
        own = suggest(trial, trainer, names, ranges={"learning_penalty": ["l2", None]})
        return max(own.fit(*data).validation_scores_)

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=6)
    assert study.best_value > max(trainer.fit(*data).validation_scores_)


def test_parameters_without_a_range(trainer):
    trial = optuna.create_study().ask()
    trainer.set_params(learning_rate="Adam", learning_penalty=ElasticPenalty(l2=0.0))
    for name, message in {
        "learning_rate__eta0": "Pass learning_rate as an object",
        "learning_penalty__l2": "pass a positive value, or ranges",
        "device": "has no range that is known",
        "rate": "has no parameter 'rate'",
    }.items():
        with pytest.raises(ValueError, match=message):
            suggest(trial, trainer, [name])
    assert 1 <= suggest(trial, trainer, ["tol"], ranges={"tol": (1.0, 2.0)}).tol <= 2
    with pytest.raises(ValueError, match="factor=1"):
        suggest(trial, trainer, ["tol"], factor=1)
