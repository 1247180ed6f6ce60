"""history_ converts to a data frame in one call."""

import numpy as np
import pandas
import polars
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer

COLUMNS = ["epoch", "loss", "validation_loss", "validation_score", "rate", "seconds"]


@pytest.fixture(
    scope="module", params=[OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer], ids=["one", "two"]
)
def trained(request, diabetes):
    trainer = request.param(Ridge(), max_iter=6, validation_every=3, random_state=0)
    return trainer.fit(diabetes.X_train, diabetes.y_train, X_val=diabetes.X_test, y_val=diabetes.y_test)


def test_pandas(trained):
    frame = pandas.DataFrame(trained.history_)
    assert list(frame.columns) == COLUMNS and len(frame) == trained.n_iter_ == 6
    assert frame["epoch"].tolist() == [1, 2, 3, 4, 5, 6]
    assert frame["loss"].tolist() == trained.train_losses_
    assert frame["validation_loss"].dropna().tolist() == trained.validation_losses_
    assert frame["epoch"][frame["validation_loss"].notna()].tolist() == [3, 6]
    assert (frame["seconds"] >= 0).all() and frame["rate"].notna().all()
    assert frame.set_index("epoch")[["loss", "validation_loss", "rate"]].dtypes.eq(float).all()


def test_polars(trained):
    frame = polars.DataFrame(trained.history_)
    assert frame.columns == COLUMNS and frame["loss"].to_list() == trained.train_losses_
    assert frame["validation_loss"].drop_nulls().to_list() == trained.validation_losses_
    assert frame["epoch"].dtype == polars.Int64 and frame["loss"].dtype == polars.Float64


def test_scores_of_a_classifier(breast_cancer):
    trainer = OrtGradientOptimizer(
        LogisticRegression(),
        learning_rate=0.1,
        max_iter=30,
        early_stopping=True,
        scoring=None,
        n_iter_no_change=3,
        tol=0.0,
        random_state=0,
    )
    trainer.fit(breast_cancer.X_train, breast_cancer.y_train)
    frame = pandas.DataFrame(trainer.history_).set_index("epoch")
    assert frame["validation_score"].tolist() == trainer.validation_scores_
    assert frame["validation_score"].idxmax() == trainer.best_epoch_
    assert np.isfinite(frame["validation_score"]).all() and frame["validation_score"].dtype == float
