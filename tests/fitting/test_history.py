"""history_ has a record for each epoch."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from ortlearn.estimators import OrtGradientOptimizer
from ortlearn.exceptions import ConvergenceError
from ortlearn.learning_rates import LearningRateSGD

KEYS = ["epoch", "loss", "validation_loss", "validation_score", "rate", "seconds"]


def test_records(optimizer, diabetes_units):
    X, y = diabetes_units
    rate = LearningRateSGD(eta0=0.02, learning_rate="invscaling")
    model = optimizer(LinearRegression(), learning_rate=rate, max_iter=6, validation_every=3, random_state=0)
    model.fit(X[:300], y[:300], X_val=X[300:], y_val=y[300:])
    assert [list(record) for record in model.history_] == [KEYS] * 6
    assert [record["epoch"] for record in model.history_] == [1, 2, 3, 4, 5, 6]
    assert [record["loss"] for record in model.history_] == model.train_losses_
    assert [record["rate"] for record in model.history_] == [rate.rate(epoch) for epoch in range(6)]
    measured = [record["validation_loss"] for record in model.history_]
    assert measured == [None, None, model.validation_losses_[0], None, None, model.validation_losses_[1]]
    assert model.history_[5]["validation_score"] == model.validation_scores_[1]
    np.testing.assert_allclose(model.validation_scores_[1], model.score(X[300:], y[300:]), rtol=1e-6)
    assert all(record["seconds"] > 0 for record in model.history_)


def test_data_frame(optimizer, diabetes_units):
    model = optimizer(LinearRegression(), max_iter=3, random_state=0).fit(*diabetes_units)
    table = pd.DataFrame(model.history_)
    assert table["loss"].tolist() == model.train_losses_
    assert table["validation_loss"].isna().all()


def test_partial_fit_continues(optimizer, diabetes_units):
    X, y = diabetes_units
    model = optimizer(LinearRegression(), max_iter=3, validation_every=1, random_state=0)
    model.fit(X, y, X_val=X, y_val=y)
    first = list(model.history_)
    model.partial_fit(X, y)
    assert model.history_[:3] == first
    assert model.history_[3]["epoch"] == model.n_iter_ == 4
    assert model.validation_losses_ == [record["validation_loss"] for record in first]
    model.fit(X, y)
    assert [record["epoch"] for record in model.history_] == [1, 2, 3]
    assert model.validation_losses_ == []


def test_solver_has_no_rate(optimizer, diabetes_units):
    model = optimizer(LinearRegression(), learning_rate="LBFGS", random_state=0).fit(*diabetes_units)
    assert {record["rate"] for record in model.history_} == {None}
    assert [record["epoch"] for record in model.history_] == list(range(1, model.n_iter_ + 1))


def test_failed_fit_keeps_the_records(diabetes_units):
    X, y = diabetes_units
    model = OrtGradientOptimizer(LinearRegression(), max_iter=2, random_state=0).fit(X, y)
    before = list(model.history_)
    with pytest.raises(ConvergenceError):
        model.set_params(learning_rate=1e30).fit(X, y)
    assert model.history_ == before
