"""Early stopping: monitored losses, patience, and kept weights."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, log_loss, make_scorer, mean_absolute_error
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from ortlearn.estimators import OrtGradientOptimizer
from ortlearn.exceptions import ConvergenceError, FallbackWarning

NETWORK = MLPRegressor(hidden_layer_sizes=(16,), random_state=0, max_iter=1)


def same_weights(one, other):
    assert one.trained_coef_.keys() == other.trained_coef_.keys()
    for name, array in one.trained_coef_.items():
        np.testing.assert_array_equal(array, other.trained_coef_[name])


@pytest.fixture
def overfitting(diabetes_units):
    """Return few samples for training, and samples for validation."""
    X, y = diabetes_units
    return (X[:60], y[:60]), (X[60:200], y[60:200])


def network(optimizer, **changes):
    options = {"max_iter": 400, "learning_rate": 0.05, "batch_size": 20, "early_stopping": True, "tol": 0.0}
    return optimizer(NETWORK, random_state=0, **{**options, **changes})


def test_best_weights_are_kept(optimizer, overfitting):
    (X, y), (X_val, y_val) = overfitting
    model = network(optimizer).fit(X, y, X_val=X_val, y_val=y_val)
    assert model.best_epoch_ == 1 + int(np.argmin(model.validation_losses_))
    assert model.n_iter_ == model.best_epoch_ + 10 < 400
    np.testing.assert_allclose(model.losses(X_val, y_val).mean(), min(model.validation_losses_), rtol=1e-6)
    np.testing.assert_allclose(model.score(X_val, y_val), model.validation_scores_[model.best_epoch_ - 1])
    short = network(optimizer, early_stopping=False, tol=None, max_iter=model.best_epoch_).fit(X, y)
    same_weights(model, short)


@pytest.mark.slow
@pytest.mark.parametrize("patience, tol", [(3, 0.0), (5, 0.01)])
def test_patience_and_tolerance(patience, tol, overfitting):
    (X, y), (X_val, y_val) = overfitting
    model = network(OrtGradientOptimizer, n_iter_no_change=patience, tol=tol)
    model.fit(X, y, X_val=X_val, y_val=y_val)
    free = network(OrtGradientOptimizer, early_stopping=False, tol=None, validation_every=1, max_iter=200)
    curve = free.fit(X, y, X_val=X_val, y_val=y_val).validation_losses_
    lowest, waited, stop = np.inf, 0, None
    for epoch, loss in enumerate(curve, 1):
        waited = 0 if loss < lowest - tol else waited + 1
        lowest = min(lowest, loss)
        if waited == patience:
            stop = epoch
            break
    assert model.n_iter_ == stop
    assert model.validation_losses_ == curve[:stop]


def test_validation_fraction(optimizer, diabetes_units):
    X, y = diabetes_units
    model = network(optimizer, validation_fraction=0.3, n_iter_no_change=3).fit(X, y)
    again = network(optimizer, validation_fraction=0.3, n_iter_no_change=3).fit(X, y)
    same_weights(model, again)
    assert model.n_iter_ == len(model.validation_losses_) == len(model.validation_scores_) < 400
    other = network(optimizer, validation_fraction=0.1, n_iter_no_change=3).fit(X, y)
    assert other.validation_losses_ != model.validation_losses_


def test_validation_split_is_stratified():
    X, y = make_classification(200, weights=[0.95], flip_y=0, random_state=0)
    counted = []

    def scoring(model, X, y):
        counted.append(np.bincount(y).tolist())
        return 0.0

    options = {"validation_fraction": 0.2, "n_iter_no_change": 1, "random_state": 0}
    model = OrtGradientOptimizer(LogisticRegression(), early_stopping=True, scoring=scoring, **options)
    model.fit(X, y)
    assert counted[0] == [38, 2]
    with pytest.raises(ValueError, match="cannot hold out.*Pass X_val and y_val"):
        model.fit(X, np.r_[1, np.zeros(199, dtype=int)])


def test_held_out_samples_are_not_used(diabetes_units):
    X, y = diabetes_units
    seen = []
    function = FunctionTransformer(lambda values: seen.append(len(values)) or values)
    wrapped = make_pipeline(StandardScaler(), function, Ridge())
    model = OrtGradientOptimizer(wrapped, early_stopping=True, validation_fraction=0.25, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        model.fit(X[:200], y[:200])
    assert seen[0] == 150
    assert max(seen) == 150


@pytest.mark.parametrize(
    "scoring, expected",
    [
        (None, accuracy_score),
        ("accuracy", accuracy_score),
        (make_scorer(log_loss, greater_is_better=False, response_method="predict_proba"), None),
        (lambda model, X, y: float((model.predict(X) == y).mean()), accuracy_score),
    ],
    ids=["own", "name", "scorer", "function"],
)
def test_scoring(scoring, expected, optimizer, wine):
    X, y = wine
    base = MLPClassifier(hidden_layer_sizes=(8,), random_state=0, max_iter=1)
    options = {"learning_rate": 0.1, "tol": 1e-3, "n_iter_no_change": 4, "random_state": 0}
    model = optimizer(base, early_stopping=True, scoring=scoring, **options)
    model.fit(X[:100], y[:100], X_val=X[100:], y_val=y[100:])
    best = model.validation_scores_[model.best_epoch_ - 1]
    assert best == max(model.validation_scores_)
    value = -log_loss(y[100:], model.predict_proba(X[100:])) if expected is None else None
    if expected is not None:
        value = expected(y[100:], model.predict(X[100:]))
    np.testing.assert_allclose(best, value, rtol=1e-5)


def test_weights_of_validation_samples(optimizer, diabetes_units):
    X, y = diabetes_units
    weight = np.random.RandomState(0).uniform(0.1, 3, 142)
    model = optimizer(LinearRegression(), max_iter=4, validation_every=2, learning_rate=0.01, random_state=0)
    model.fit(X[:300], y[:300], X_val=X[300:], y_val=y[300:], sample_weight_val=weight)
    expected = np.average(model.losses(X[300:], y[300:]), weights=weight)
    np.testing.assert_allclose(model.validation_losses_[-1], expected, rtol=1e-5)
    np.testing.assert_allclose(model.validation_scores_[-1], model.score(X[300:], y[300:], weight), rtol=1e-6)
    doubled = np.r_[np.arange(300, 442), np.arange(300, 350)]
    counts = np.r_[np.full(50, 2.0), np.ones(92)]
    again, weighted = clone(model), clone(model)
    again.fit(X[:300], y[:300], X_val=X[doubled], y_val=y[doubled])
    weighted.fit(X[:300], y[:300], X_val=X[300:], y_val=y[300:], sample_weight_val=counts)
    np.testing.assert_allclose(again.validation_losses_, weighted.validation_losses_, rtol=1e-5)
    np.testing.assert_allclose(again.validation_scores_, weighted.validation_scores_, rtol=1e-5)


def test_weights_are_split_with_samples(optimizer, diabetes_units):
    X, y = diabetes_units
    outliers = np.arange(len(y)) % 4 == 0
    labels = np.where(outliers, 100.0, y)
    model = network(optimizer, validation_fraction=0.3)
    model.fit(X, labels, sample_weight=np.where(outliers, 0.0, 1.0))
    assert max(model.validation_losses_) < 5  # labels of 100 have weight zero in both parts


@pytest.mark.parametrize("kind", ["frame", "sparse", "lists"])
def test_types_of_X(kind, optimizer, diabetes_units):
    X, y = diabetes_units[0][:120], diabetes_units[1][:120]
    made = {"frame": pd.DataFrame(X).add_prefix("c"), "sparse": csr_matrix(X), "lists": X.tolist()}[kind]
    labels = {"frame": pd.Series(y), "sparse": y, "lists": y.tolist()}[kind]
    options = {"early_stopping": True, "n_iter_no_change": 2, "tol": 1e-2, "random_state": 0}
    expected = optimizer(LinearRegression(), **options).fit(X, y)
    model = optimizer(LinearRegression(), **options).fit(made, labels)
    np.testing.assert_allclose(model.validation_losses_, expected.validation_losses_, rtol=1e-5)
    np.testing.assert_allclose(model.validation_scores_, expected.validation_scores_, rtol=1e-5)


def test_tolerance_of_the_training_loss(optimizer, diabetes_units):
    X, y = diabetes_units
    options = {"learning_rate": 0.01, "max_iter": 300, "random_state": 0}
    model = optimizer(LinearRegression(), tol=1e-3, n_iter_no_change=5, **options).fit(X, y)
    assert 5 < model.n_iter_ < 300
    assert not hasattr(model, "best_epoch_")
    losses, lowest = model.train_losses_, np.inf
    better = []
    for loss in losses:
        better.append(loss < lowest - 1e-3)
        lowest = min(lowest, loss)
    assert not any(better[-5:])
    assert better[-6]


def test_max_iter_is_reached(optimizer, diabetes_units):
    X, y = diabetes_units
    model = optimizer(LinearRegression(), tol=1e-9, max_iter=3, learning_rate=1e-4, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_iter=3 epochs before the loss stopped improving"):
        model.fit(X, y)
    assert model.n_iter_ == 3
    with pytest.warns(ConvergenceWarning, match="before the validation_loss stopped improving"):
        model.set_params(early_stopping=True).fit(X, y)
    assert model.best_epoch_ == 3


def test_validation_every(overfitting):
    (X, y), (X_val, y_val) = overfitting
    model = network(OrtGradientOptimizer, validation_every=4, n_iter_no_change=2)
    model.fit(X, y, X_val=X_val, y_val=y_val)
    assert model.n_iter_ % 4 == 0
    assert model.best_epoch_ == model.n_iter_ - 8
    measured = [record["epoch"] for record in model.history_ if record["validation_loss"] is not None]
    assert measured == list(range(4, model.n_iter_ + 1, 4))


def test_solver_stops_early(optimizer, overfitting):
    (X, y), (X_val, y_val) = overfitting
    model = network(optimizer, learning_rate="LBFGS", n_iter_no_change=3)
    model.fit(X, y, X_val=X_val, y_val=y_val)
    assert model.n_iter_ == model.best_epoch_ + 3
    np.testing.assert_allclose(model.losses(X_val, y_val).mean(), min(model.validation_losses_), rtol=1e-6)


def test_training_continues_after_the_best_epoch(overfitting):
    (X, y), (X_val, y_val) = overfitting
    model = network(OrtGradientOptimizer, learning_rate="Adam", n_iter_no_change=3)
    model.fit(X, y, X_val=X_val, y_val=y_val)
    best = model.losses(X, y).mean()
    model.set_params(early_stopping=False).partial_fit(X, y)
    assert abs(model.losses(X, y).mean() - best) < 0.3 * best
    assert not hasattr(model, "best_epoch_")


def test_single_validation_sample(diabetes_units):
    X, y = diabetes_units
    model = OrtGradientOptimizer(LinearRegression(), max_iter=2, validation_every=1, random_state=0)
    model.fit(X, y, X_val=X[:1], y_val=y[:1])
    assert len(model.validation_losses_) == 2
    assert model.validation_scores_ == []


def test_unknown_scorer(diabetes_units):
    X, y = diabetes_units
    model = OrtGradientOptimizer(LinearRegression(), early_stopping=True, scoring="mean_absolute")
    with pytest.raises(ValueError, match="mean_absolute"):
        model.fit(X, y)
    assert not hasattr(model, "onnx_")
    errors = make_scorer(mean_absolute_error, greater_is_better=False)
    model.set_params(scoring=errors, random_state=0).fit(X, y)
    assert max(model.validation_scores_) < 0


@pytest.mark.parametrize(
    "changes, arguments, match",
    [
        ({}, {"y_val": [1.0]}, "X_val is missing"),
        ({}, {"sample_weight_val": [1.0]}, "X_val is missing"),
        ({}, {"X_val": np.zeros((2, 10))}, "pass both X_val and y_val, or neither"),
        ({"validation_fraction": 1.0}, {}, "validation_fraction"),
        ({"n_iter_no_change": 0}, {}, "n_iter_no_change"),
        ({"tol": -1.0}, {}, "tol"),
    ],
)
def test_invalid_combinations_are_rejected(changes, arguments, match, diabetes_units):
    X, y = diabetes_units
    model = OrtGradientOptimizer(LinearRegression(), early_stopping=True, **changes)
    with pytest.raises(ValueError, match=match):
        model.fit(X, y, **arguments)


@pytest.mark.parametrize("exc", [True, False])
@pytest.mark.parametrize("rate", [0.01, "LBFGS"])
def test_non_finite_scores(rate, exc, optimizer, diabetes_units):
    X, y = diabetes_units
    options = {"early_stopping": True, "learning_rate": rate, "max_iter": 9, "random_state": 0, "exc": exc}
    model = optimizer(LinearRegression(), scoring=lambda *_: np.nan, **options)
    wild = optimizer(LinearRegression(), n_iter_no_change=2, **options)
    for trainer, arguments, what in (
        (model, {}, "The validation_score is nan in epoch 1"),
        (wild, {"X_val": X * 1e30, "y_val": y}, "The validation_loss was never finite"),
    ):
        if exc:
            with pytest.raises(ConvergenceError, match=what):
                trainer.fit(X, y, **arguments)
            assert not hasattr(trainer, "onnx_")
        else:
            with pytest.warns(ConvergenceWarning, match=what):
                trainer.fit(X, y, **arguments)
            assert not hasattr(trainer, "best_epoch_")
            assert np.isfinite(trainer.predict(X)).all()


def test_validation_every_above_max_iter(optimizer, diabetes_units):
    model = optimizer(LinearRegression(), early_stopping=True, validation_every=50, max_iter=6)
    with pytest.raises(ValueError, match="validation_every=50 epochs is more than max_iter=6"):
        model.fit(*diabetes_units)


def test_scalar_sample_weight(diabetes_units):
    X, y = diabetes_units
    options = {"max_iter": 2, "validation_every": 1, "random_state": 0}
    model = OrtGradientOptimizer(LinearRegression(), **options)
    plain = model.fit(X, y, X_val=X, y_val=y).validation_scores_
    assert model.fit(X, y, X_val=X, y_val=y, sample_weight_val=2.0).validation_scores_ == plain


def test_held_out_weights_of_zero(diabetes_units):
    X, y = diabetes_units
    weight = np.zeros(len(y))
    weight[7] = 1.0
    model = OrtGradientOptimizer(LinearRegression(), early_stopping=True, random_state=0)
    with pytest.raises(ValueError, match="all have a sample_weight of zero"):
        model.fit(X, y, sample_weight=weight)


def test_metric_instead_of_scorer(wine):
    X, y = wine
    model = OrtGradientOptimizer(LogisticRegression(), early_stopping=True, scoring=accuracy_score)
    with pytest.raises(ValueError, match="make_scorer"):
        model.fit(X, y)


def test_errors_of_scorers_name_the_parameter(wine):
    X, y = wine
    model = OrtGradientOptimizer(LogisticRegression(), early_stopping=True, scoring="neg_log_loss")
    some = y < 2
    with pytest.raises(ValueError, match="scoring='neg_log_loss' failed on the validation samples"):
        model.fit(X, y, X_val=X[some], y_val=y[some])


def test_partial_fit_requires_validation_data(diabetes_units):
    X, y = diabetes_units
    with pytest.raises(ValueError, match="early_stopping=True validates at every call"):
        OrtGradientOptimizer(LinearRegression(), early_stopping=True).partial_fit(X, y)
    model = OrtGradientOptimizer(LinearRegression(), tol=10.0, n_iter_no_change=1, random_state=0)
    for _ in range(4):
        model.partial_fit(X, y)
    assert model.n_iter_ == 4


@pytest.mark.parametrize("changes", [{"average": True}, {"clip_norm": 1.0}, {"clip_value": 1.0}])
def test_solvers_reject_update_parameters(changes, diabetes_units):
    model = OrtGradientOptimizer(LinearRegression(), learning_rate="LBFGS", **changes)
    with pytest.raises(ValueError, match=f"a solver.*{next(iter(changes))}"):
        model.fit(*diabetes_units)
