"""Callbacks: tasks, fitted estimators, and errors."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn.estimators import OrtGradientOptimizer
from ortlearn.exceptions import ConvergenceError
from ortlearn.learning_rates import LearningRateAdam
from tests.estimators.callback_recorders import MACHINERY, Lister, Recorder, ridge, rounds, same_model

pytestmark = pytest.mark.needs_callbacks


@pytest.mark.parametrize("callback", [Recorder, Lister])
def test_tasks_of_fit(optimizer, callback, small):
    seen = callback()
    trainer = ridge(optimizer).set_callbacks(seen).fit(*small)
    assert seen.calls == [
        ("setup", "fit", 0),
        ("begin", "fit", 0),
        *rounds(3),
        ("end", "fit", 0),
        ("teardown", "fit", 0),
    ]
    assert seen.max_subtasks == 3 and trainer.n_iter_ == 3


def test_tasks_of_partial_fit(optimizer, small):
    seen = Recorder()
    trainer = ridge(optimizer).set_callbacks(seen).partial_fit(*small)
    first = trainer.history_
    trainer.partial_fit(*small)
    call = [("setup", "partial_fit", 0), ("begin", "partial_fit", 0), *rounds(1)]
    call += [("end", "partial_fit", 0), ("teardown", "partial_fit", 0)]
    assert seen.calls == 2 * call and seen.max_subtasks == 1
    assert [record["epoch"] for record in seen.history] == [1, 2]
    assert len(first) == 1, "the history of an earlier call was changed"


def test_iterations_of_a_solver_are_tasks(small):
    seen = Recorder(keep=True)
    trainer = ridge(learning_rate="LBFGS", max_iter=50).set_callbacks(seen).fit(*small)
    inside = [call for call in seen.calls if call[1] == "iteration"]
    assert inside == rounds(trainer.n_iter_, "iteration") and trainer.n_iter_ > 1
    losses = [((fitted.predict(small[0]) - small[1]) ** 2).mean() / 2 for fitted in seen.fitted]
    np.testing.assert_allclose(losses[:-1], trainer.train_losses_, rtol=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"learning_rate": "Adam"},
        {"average": True, "learning_rate": 0.05},
        {"warm_start": True},
        {"shuffle": False, "dtype": "float64"},
    ],
    ids=["sgd", "adam", "average", "warm", "float64"],
)
def test_fitted_estimator_equals_training_of_fewer_epochs(optimizer, options, small, run_onnx):
    X, y = small
    source = LinearRegression().fit(X, -y)
    seen = Recorder(keep=True)
    options = {"max_iter": 3, "random_state": 0, "batch_size": 7, **options}
    trainer = optimizer(source, **options).set_callbacks(seen).fit(X, y)
    for epoch in (1, 2, 3):
        fitted = seen.fitted[epoch - 1]
        fewer = optimizer(source, **{**options, "max_iter": epoch}).fit(X, y)
        same_model(fitted, fewer, X)
        assert fitted.train_losses_ == fewer.train_losses_ and fitted.n_iter_ == epoch
        assert fitted.score(X, y) == pytest.approx(fewer.score(X, y), abs=1e-6)
        np.testing.assert_allclose(fitted.losses(X, y), fewer.losses(X, y), rtol=1e-4, atol=1e-6)
        (by_onnx,) = run_onnx(fitted.get_trained_onnx(), X).values()
        np.testing.assert_allclose(by_onnx.ravel(), fewer.predict(X), rtol=1e-5, atol=1e-6)
    same_model(seen.fitted[3], trainer, X)  # of the call of fit


def test_fitted_classifier(optimizer, wine):
    X, y = wine
    names = np.array(["red", "rosé", "white"])[y]
    seen = Recorder(keep=True)
    optimizer(LogisticRegression(), max_iter=2, random_state=0).set_callbacks(seen).fit(X, names)
    once = optimizer(LogisticRegression(), max_iter=1, random_state=0).fit(X, names)
    assert (seen.fitted[0].predict(X) == once.predict(X)).all()
    np.testing.assert_allclose(seen.fitted[0].predict_proba(X), once.predict_proba(X), rtol=1e-6)
    assert (seen.fitted[0].predict_proba(X) != seen.fitted[1].predict_proba(X)).any()
    assert (seen.fitted[0].classes_ == ["red", "rosé", "white"]).all()


def test_fitted_estimator_continues_the_training(optimizer, small):
    X, y = small
    seen = Recorder(keep=True)
    options = {"max_iter": 5, "batch_size": 13, "learning_rate": LearningRateAdam(eta0=0.01)}
    trainer = optimizer(MLPRegressor(hidden_layer_sizes=(4,), random_state=0), random_state=0, **options)
    trainer.set_callbacks(seen).fit(X, y)
    later = seen.fitted[1].set_callbacks()
    for _ in range(3):
        later.partial_fit(X, y)
    same_model(later, trainer, X)
    assert later.train_losses_ == trainer.train_losses_


def test_fitted_estimators_are_independent(small):
    seen = Recorder(keep=True)
    ridge().set_callbacks(seen).fit(*small)
    first, second = seen.fitted[:2]
    predicted = first.predict(small[0])
    assert (second.predict(small[0]) != predicted).any()
    np.testing.assert_array_equal(first.predict(small[0]), predicted)
    same_model(pickle.loads(pickle.dumps(first)), first, small[0])


def test_model_without_labels(wine):
    seen = Recorder(keep=True)
    trainer = OrtGradientOptimizer(KMeans(2, n_init=1, random_state=0), max_iter=2, learning_rate=0.01)
    trainer.set_callbacks(seen).fit(wine[0])
    assert seen.fitted[0].score(wine[0]) != seen.fitted[1].score(wine[0])
    assert seen.arguments[0][1] is None


def test_arguments_of_hooks(optimizer, small):
    X, y = small
    weights = np.linspace(0.5, 1.5, len(y))
    seen = Recorder()
    trainer = ridge(optimizer).set_callbacks(seen).fit(X, y, sample_weight=weights)
    for got_X, got_y, metadata in seen.arguments:
        assert got_X is X and got_y is y and metadata["sample_weight"] is weights
    assert seen.history == trainer.history_
    trainer.fit(X, y)
    assert seen.arguments[-1][2] is None


def test_held_out_samples_are_not_training_data(small):
    X, y = small
    seen = Recorder(keep=True)
    trainer = ridge(early_stopping=True, max_iter=99, learning_rate=0.1, n_iter_no_change=3)
    trainer.set_callbacks(seen).fit(X, y)
    assert all(len(got_X) == len(got_y) == 54 for got_X, got_y, _ in seen.arguments)
    assert seen.history[0]["validation_loss"] is not None
    same_model(seen.fitted[-1], trainer, X)  # has the best weights, like the one of the best epoch
    same_model(seen.fitted[trainer.best_epoch_ - 1], trainer, X)
    assert trainer.best_epoch_ < trainer.n_iter_
    with pytest.raises(AssertionError):
        same_model(seen.fitted[-2], trainer, X)


@pytest.mark.parametrize("rate, name", [("SGD", "epoch"), ("LBFGS", "iteration")])
def test_hook_stops_the_training(optimizer, rate, name, small):
    seen = Recorder(stop_at=(name, 1))
    trainer = ridge(optimizer, learning_rate=rate, max_iter=20).set_callbacks(seen).fit(*small)
    assert trainer.n_iter_ == 2 and [call for call in seen.calls if call[1] == name] == rounds(2, name)
    assert seen.calls[-2:] == [("end", "fit", 0), ("teardown", "fit", 0)]


def test_stop_by_a_hook_gives_no_convergence_warning(small):
    ridge(tol=0.0, max_iter=4).set_callbacks(Recorder(stop_at=("epoch", 3))).fit(*small)


@pytest.mark.parametrize(
    "where",
    ["setup", ("begin", "fit"), ("begin", "epoch"), ("end", "epoch"), ("end", "fit"), "teardown"],
    ids=str,
)
def test_failing_hook(optimizer, where, small):
    X, y = small
    trainer = ridge(optimizer).fit(X, y)
    seen, other = Recorder(fail_at=where), Lister()
    trainer.set_callbacks(seen, other)
    before = dict(vars(trainer))
    with pytest.raises(RuntimeError, match="failed at"):
        trainer.fit(X[::2], y[::2])
    assert vars(trainer).keys() == before.keys()
    assert all(vars(trainer)[name] is value for name, value in before.items())
    assert seen.calls[-1] == ("teardown", "fit", 0)
    assert where == "setup" or other.calls[-1] == ("teardown", "fit", 0)


@pytest.mark.parametrize("n_bad", [5, 60])
def test_failing_training(optimizer, n_bad, small):
    X, y = small
    seen = Recorder()
    trainer = ridge(optimizer, learning_rate=1e6, max_iter=50).set_callbacks(seen)
    if n_bad == 5:
        X = X.copy()
        X[:n_bad] = np.nan
    with pytest.raises((ConvergenceError, ValueError)):
        trainer.fit(X, y)
    assert seen.calls[0] == ("setup", "fit", 0) and seen.calls[-1] == ("teardown", "fit", 0)
    assert ("end", "fit", 0) not in seen.calls
    assert not MACHINERY & vars(trainer).keys()
    with pytest.raises(NotFittedError):
        trainer.predict(X)


def test_parameters_are_checked_before_any_hook(optimizer, small):
    seen = Recorder()
    with pytest.raises(ValueError, match="max_iter"):
        ridge(optimizer, max_iter=0).set_callbacks(seen).fit(*small)
    assert seen.calls == []


def test_no_state_of_callbacks_remains(optimizer, small):
    seen = Recorder()
    trainer = ridge(optimizer).set_callbacks(seen).fit(*small)
    assert not MACHINERY & vars(trainer).keys()
    plain = ridge(optimizer).fit(*small)
    assert vars(trainer).keys() - {"_skl_callbacks"} == vars(plain).keys()
    same_model(trainer, plain, small[0])
    again = pickle.loads(pickle.dumps(trainer))
    same_model(again, trainer, small[0])
    assert again._skl_callbacks[0].calls == seen.calls
    assert clone(trainer)._skl_callbacks == [seen]
    assert "_skl_callbacks" not in vars(trainer.set_callbacks())
    assert not MACHINERY & vars(copy.copy(again.fit(*small))).keys()


def test_invalid_callback(optimizer):
    with pytest.raises(TypeError, match="FitCallback"):
        ridge(optimizer).set_callbacks(print)


def test_callbacks_of_the_wrapped_model(small):
    inner, outer = Lister(), Lister()
    ridge_pipeline = make_pipeline(StandardScaler().set_callbacks(inner), Ridge())
    trainer = OrtGradientOptimizer(ridge_pipeline, max_iter=2, random_state=0).set_callbacks(outer)
    trainer.fit(*small)
    assert ("end", "epoch", 1) in outer.calls
    assert {call[1] for call in inner.calls} == {"fit"}


class Continuing(Lister):
    """Callback that trains each fitted estimator for another epoch."""

    def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator):
        super().on_fit_task_end(estimator, context)
        if context.task_name == "epoch":
            self.fitted.append(fitted_estimator.partial_fit(X, y))


@pytest.mark.parametrize("around", [False, True], ids=["alone", "pipeline"])
def test_training_inside_a_hook_calls_no_hooks(optimizer, around, small):
    seen = Continuing()
    trainer = ridge(optimizer).set_callbacks(seen)
    (make_pipeline(trainer) if around else trainer).fit(*small)
    assert [call[:2] for call in seen.calls if call[0] == "end"] == [*[("end", "epoch")] * 3, ("end", "fit")]
    assert [fitted.n_iter_ for fitted in seen.fitted] == [2, 3, 4]
    same_model(seen.fitted[0], ridge(optimizer, max_iter=2).fit(*small), small[0])
    again = Lister()
    seen.fitted[0].set_callbacks(again).fit(*small)
    assert len(again.calls) == 2 + 2 + 2 * 3
