"""A source in the buffer trains models that reproduce the samples of their fit as fit does."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.ensemble import (
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingRegressor,
)
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn import OrtGradientOptimizer
from ortlearn.callbacks import ModelCheckpoint
from ortlearn.exceptions import ObjectiveWarning, SourceError
from ortlearn.losses import QuantileLoss

X, Y = make_friedman1(700, noise=1.0, random_state=0)
TRAIN, TEST = (X[:400], Y[:400]), (X[400:], Y[400:])
FOREST = RandomForestRegressor(20, random_state=0)
MODELS = {
    "forest": FOREST,
    "boosting": GradientBoostingRegressor(n_estimators=20, random_state=0),
    "neighbours": KNeighborsRegressor(),
    "stacking": StackingRegressor([("a", LinearRegression()), ("b", KNeighborsRegressor())]),
    "pipeline": make_pipeline(StandardScaler(), FOREST),
}


def batches(X, y, size=90):
    """Return a function that returns an iterator of batches."""
    return lambda: ((X[start : start + size], y[start : start + size]) for start in range(0, len(y), size))


@pytest.mark.parametrize("loss", [None, QuantileLoss(0.9)], ids=["own loss", "quantile"])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.StartKeptWarning")
def test_stream_in_the_buffer_equals_fit(name, loss):
    options = {} if loss is None else {"learning_loss": loss}
    model = OrtGradientOptimizer(MODELS[name], random_state=0, **options)
    expected = model.fit(*TRAIN).predict(TEST[0])
    found = model.fit_stream(batches(*TRAIN)).predict(TEST[0])
    np.testing.assert_array_equal(found, expected)
    if loss is not None:
        assert abs(np.mean(TEST[1] <= found) - 0.9) < 0.08


@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.StartKeptWarning")
def test_warm_start_on_a_stream_in_the_buffer_equals_fit():
    model = RandomForestRegressor(20, random_state=0).fit(X[400:], Y[400:])
    moved = TRAIN[0], TRAIN[1] + 3 * TRAIN[0][:, 0]
    trainer = OrtGradientOptimizer(model, warm_start=True, random_state=0)
    expected = trainer.fit(*moved).predict(X)
    other = OrtGradientOptimizer(model, warm_start=True, random_state=0).fit_stream(batches(*moved))
    np.testing.assert_array_equal(other.predict(X), expected)


@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.StartKeptWarning")
def test_validation_source_and_classes():
    labels = np.where(Y > 14, "high", "low")
    model = OrtGradientOptimizer(RandomForestClassifier(10, random_state=0), random_state=0)
    expected = model.fit(X[:400], labels[:400], X_val=X[400:], y_val=labels[400:])
    losses, shares = expected.validation_losses_, expected.predict_proba(X)
    source_val = batches(X[400:], labels[400:])
    found = model.fit_stream(batches(X[:400], labels[:400]), source_val=source_val)
    assert found.validation_losses_ == losses
    np.testing.assert_array_equal(found.predict_proba(X), shares)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_stream_in_the_buffer_resumes(tmp_path):
    options = {"learning_rate": "Adam", "random_state": 0, "learning_loss": "absolute_error", "max_iter": 4}
    model = OrtGradientOptimizer(FOREST, **options)
    model.set_callbacks(ModelCheckpoint(tmp_path, every=1, overwrite=True)).fit_stream(batches(*TRAIN))
    first = next(path for path in sorted(tmp_path.iterdir()) if path.suffix != ".onnx")
    resumed = OrtGradientOptimizer(FOREST, **options).fit_stream(batches(*TRAIN), resume_from=first)
    np.testing.assert_array_equal(resumed.predict(X), model.predict(X))


def test_errors_of_samples_in_the_buffer_name_the_batch():
    wrong = TRAIN[0].copy()
    wrong[200, 3] = np.inf
    with pytest.raises(SourceError, match="batch 2"):
        OrtGradientOptimizer(FOREST, random_state=0).fit_stream(batches(wrong, TRAIN[1]))


def test_outputs_of_parts_are_those_of_each_buffer():
    """Later buffers have no outputs of cross-validation: the last part takes the outputs of the parts."""
    parts = [("a", LinearRegression()), ("b", KNeighborsRegressor())]
    model = OrtGradientOptimizer(StackingRegressor(parts), learning_rate="Adam", random_state=0)
    assert model.fit_stream(batches(*TRAIN), shuffle_buffer=200).score(*TEST) > 0.6


@pytest.mark.parametrize(
    ("model", "loss", "warns"),
    [
        (FOREST, QuantileLoss(0.9), True),
        (FOREST, "squared_error", False),
        (LinearRegression(), QuantileLoss(0.9), False),
    ],
    ids=["quantile of a forest", "own loss", "quantile of a linear model"],
)
def test_another_loss_on_several_buffers_warns(model, loss, warns):
    trainer = OrtGradientOptimizer(model, learning_loss=loss, max_iter=2, random_state=0)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        trainer.fit_stream(batches(*TRAIN), shuffle_buffer=200)
    messages = [str(one.message) for one in found if one.category is ObjectiveWarning]
    assert any("pass shuffle_buffer=400 instead of 200" in text for text in messages) == warns
