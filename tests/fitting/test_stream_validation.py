"""``partial_fit`` with validation data, and early stopping over a window of calls."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from ortlearn import saving

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4))
Y = X @ [1.0, -2.0, 0.5, 0.0] + 0.5 * rng.normal(size=200)
CLASSES = (Y > 0).astype(int)
OPTIONS = {"random_state": 0, "learning_penalty": None}
VALIDATION = {"X_val": X[150:], "y_val": Y[150:]}


def chunks(n, labels=Y):
    for number in range(n):
        samples = np.arange(number * 10, number * 10 + 10) % 150
        yield X[samples], labels[samples]


def test_every_call_is_validated(optimizer):
    model = optimizer(Ridge(), learning_rate=0.05, validation_every=5, **OPTIONS)
    measured = []
    for number, (samples, labels) in enumerate(chunks(6)):
        model.partial_fit(samples, labels, **(VALIDATION if number % 2 else {}))
        if number % 2:
            measured.append(np.mean((model.predict(X[150:]) - Y[150:]) ** 2) / 2)
    np.testing.assert_allclose(model.validation_losses_, measured, rtol=1e-5)
    assert [record["validation_loss"] is None for record in model.history_] == [True, False] * 3
    assert not model.stopped_


@pytest.mark.slow
@pytest.mark.parametrize("scoring", ["loss", None])
def test_training_stops_without_improvement_in_the_window(optimizer, scoring):
    """The documented rule is applied to the measured scores."""
    options = {"early_stopping": True, "n_iter_no_change": 3, "tol": 0.0, "scoring": scoring}
    model = optimizer(Ridge(), learning_rate=0.3, **options, **OPTIONS)
    weights = []
    for samples, labels in chunks(60):
        model.partial_fit(samples, labels, **VALIDATION)
        if model.stopped_:
            break
        weights.append(model.get_weights())
    values = model.validation_losses_ if scoring == "loss" else [-score for score in model.validation_scores_]
    best = int(np.argmin(values))
    assert model.stopped_ and len(values) == best + 1 + 3 < 60
    assert model.best_epoch_ == best + 1
    for name, array in model.get_weights().items():
        np.testing.assert_array_equal(array, weights[best][name])
    model.partial_fit(*next(chunks(1)), **VALIDATION)
    assert not model.stopped_ and model.n_iter_ == len(values) + 1


def test_averages_and_states_of_the_best_call_are_kept(optimizer):
    options = {"early_stopping": True, "n_iter_no_change": 2, "tol": 10.0, "average": True}
    model = optimizer(Ridge(), learning_rate="Adam", **options, **OPTIONS)
    reference = optimizer(Ridge(), learning_rate="Adam", average=True, **OPTIONS)
    for number, (samples, labels) in enumerate(chunks(3)):
        model.partial_fit(samples, labels, **VALIDATION)
        if number < 3:
            reference.partial_fit(samples, labels)
        if model.stopped_:
            break
    assert model.stopped_
    best = model.best_epoch_
    again = optimizer(Ridge(), learning_rate="Adam", average=True, **OPTIONS)
    for samples, labels in chunks(best):
        again.partial_fit(samples, labels)
    for key, state in again._fitted.state.states.items():
        np.testing.assert_array_equal(model._fitted.state.states[key], state)
    for name, array in model.get_weights().items():
        np.testing.assert_array_equal(array, again.get_weights()[name])


@pytest.mark.slow
def test_window_is_saved(optimizer, tmp_path):
    options = {"early_stopping": True, "n_iter_no_change": 4, "tol": 0.0, "learning_rate": "Adam"}
    whole = optimizer(LogisticRegression(), **options, **OPTIONS)
    validation = {"X_val": X[150:], "y_val": CLASSES[150:]}
    parts = list(chunks(12, CLASSES))
    for samples, labels in parts[:7]:
        whole.partial_fit(samples, labels, classes=[0, 1], **validation)
    saving.save(whole, tmp_path / "stream.zip")
    later = saving.load(tmp_path / "stream.zip")
    for samples, labels in parts[7:]:
        for model in (whole, later):
            model.partial_fit(samples, labels, **validation)
        assert later.stopped_ == whole.stopped_
        assert later.validation_losses_ == whole.validation_losses_
    for name, array in whole.get_weights().items():
        np.testing.assert_array_equal(later.get_weights()[name], array)


def test_early_stopping_requires_validation_data(optimizer):
    model = optimizer(Ridge(), early_stopping=True, **OPTIONS)
    with pytest.raises(ValueError, match="early_stopping=True validates at every call: pass the same X_val"):
        model.partial_fit(X, Y)
    with pytest.raises(ValueError, match="X_val is missing"):
        model.partial_fit(X, Y, y_val=Y)
