"""Trainings with a limit of time end in a state that can be resumed."""

import time

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge, SGDRegressor
from sklearn.preprocessing import scale

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.training.loop import PAUSE

ESTIMATORS = (OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer)
#: Shorter than any epoch: the training ends after the first one, whatever the machine.
MOMENT = 1e-9


@pytest.fixture
def data():
    X, y = load_diabetes(return_X_y=True)
    return scale(X).astype(np.float32), scale(y).astype(np.float32)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_training_ends_and_can_be_resumed(kind, data):
    options = {"learning_rate": "Adam", "max_iter": 4, "random_state": 0}
    short = kind(SGDRegressor(), max_seconds=MOMENT, **options)
    with pytest.warns(ConvergenceWarning, match="ended after max_seconds=1e-09.*resume_from"):
        short.fit(*data)
    assert short.n_iter_ <= 1 and np.isfinite(short.predict(data[0])).all()
    whole = kind(SGDRegressor(), **options).fit(*data)
    short.set_params(max_seconds=None).fit(*data, resume_from=short)
    assert short.n_iter_ == 4
    for name, array in whole.trained_coef_.items():
        np.testing.assert_array_equal(short.trained_coef_[name], array)


def test_solver_ends(data):
    trainer = OrtGradientOptimizer(Ridge(), max_seconds=MOMENT, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_seconds"):
        trainer.fit(*data)
    assert trainer.n_iter_ == 1
    full = OrtGradientOptimizer(Ridge(), max_seconds=3600, random_state=0).fit(*data)
    assert full.score(*data) > trainer.score(*data)


@pytest.mark.slow
def test_stream_ends_within_a_pass(data):
    X, y = data

    def source():
        for start in range(0, len(X), 50):
            time.sleep(2 * PAUSE)
            yield X[start : start + 50], y[start : start + 50]

    trainer = OrtGradientOptimizer(SGDRegressor(), learning_rate="SGD", max_seconds=MOMENT, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_seconds"):
        trainer.fit_stream(source, shuffle_buffer=50)
    assert trainer.n_iter_ == 0 and np.isfinite(trainer.coef_).all()


def test_time_that_is_no_time(data):
    with pytest.raises(ValueError, match="max_seconds"):
        OrtGradientOptimizer(Ridge(), max_seconds=0).fit(*data)
