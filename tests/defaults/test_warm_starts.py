"""Warm starts do not silently make a model worse, and few new samples change few weights."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine, make_classification
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
)
from sklearn.feature_selection import RFE
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import ObjectiveWarning, StartKeptWarning, UnfittedStartWarning
from ortlearn.learning_rates import LearningRateAdam, LearningRateSGD
from ortlearn.penalties import ElasticPenalty, L2Penalty
from ortlearn.trainable.from_estimator import sklearn_to_onnx

OPTIMIZERS = [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer]
WINE = load_wine(return_X_y=True)


@pytest.mark.slow
@pytest.mark.sweep(1)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_good_model_on_unscaled_features(optimizer):
    X, y = WINE
    model = LogisticRegression(max_iter=10_000).fit(X, y)
    with pytest.warns(StartKeptWarning):
        trainer = optimizer(model, warm_start=True, random_state=0).fit(X, y)
    assert trainer.start_kept_
    assert np.array_equal(trainer.predict(X), model.predict(X))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("model", [Ridge(), MLPClassifier((5,), max_iter=200, random_state=0)], ids=repr)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_harmful_learning_rate_is_undone(model, optimizer):
    X, y = WINE
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    trainer = optimizer(model.fit(X, y), warm_start=True, learning_rate=1.0, max_iter=1, random_state=0)
    trainer.set_params(exc=False, learning_rate=LearningRateSGD(100.0, learning_rate="constant"))
    with pytest.warns(StartKeptWarning, match="keep_better=False"):
        trainer.fit(X, y)
    np.testing.assert_allclose(trainer.predict(X), model.predict(X), rtol=1e-4)
    assert trainer.start_kept_
    changed = trainer.set_params(keep_better=False).fit(X, y)
    assert not changed.start_kept_
    assert changed.score(X, y) < model.score(X, y)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("seed", range(8))
def test_a_few_held_out_samples_do_not_undo_a_chosen_rate(seed, optimizer):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 3))
    file = sklearn_to_onnx(LinearRegression().fit(X, X @ [1.0, -2.0, 0.5] + 1.0), 3)
    X_new, X_test = rng.normal(size=(2, 30, 3))
    y_new, y_test = (X @ [2.5, -1.0, -0.5] + 2.0 + rng.normal(size=30) for X in (X_new, X_test))
    trainer = optimizer(file, warm_start=True, max_iter=30, random_state=0)
    trainer.set_params(learning_rate=LearningRateAdam(0.1, learning_rate="constant")).fit(X_new, y_new)
    assert not trainer.start_kept_
    assert trainer.score(X_test, y_test) > 0.5


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_kept_start_is_explained_by_its_losses():
    X, y = WINE
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    rate = LearningRateSGD(100.0, learning_rate="constant")
    options = {"warm_start": True, "learning_rate": rate, "max_iter": 1, "random_state": 0, "exc": False}
    network = MLPClassifier((5,), max_iter=200, random_state=0).fit(X, y)
    with pytest.warns(StartKeptWarning, match=r"the loss of 18 held-out samples is \S+ before and \S+ after"):
        OrtGradientOptimizer(network, **options).fit(X, y)
    with pytest.warns(StartKeptWarning, match=r"the training objective is \S+ before and \S+ after"):
        OrtGradientOptimizer(Ridge().fit(X, y), **options).fit(X, y)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_flexible_models_are_compared_on_held_out_samples():
    X, y = WINE
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    old = y < 2
    model = MLPClassifier((10,), max_iter=500, random_state=0).fit(X, y)
    trainer = OrtGradientOptimizer(model, warm_start=True, learning_rate="Adam", max_iter=5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StartKeptWarning)
        trainer.fit(X[old], y[old])
    assert trainer.validation_losses_
    assert len(trainer.set_params(keep_better=False).fit(X[old], y[old]).validation_losses_) == 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.StartKeptWarning")
def test_support_vectors_do_not_move_onto_samples():
    X, y = load_digits(return_X_y=True)
    model = SVC().fit(X[:1200], y[:1200])
    with pytest.warns(ObjectiveWarning):
        trainer = OrtGradientOptimizer(model, warm_start=True, random_state=0).fit(X[:1200], y[:1200])
    assert trainer.score(X[1200:], y[1200:]) > model.score(X[1200:], y[1200:]) - 0.02


@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.ObjectiveWarning")
def test_support_vectors_are_compared_on_held_out_samples():
    X, y = WINE
    samples = np.random.default_rng(0).permutation(len(X))
    train, test = samples[:130], samples[130:]
    trainer = OrtGradientOptimizer(SVC(), random_state=0).fit(X[train], y[train])
    assert trainer.start_kept_
    assert trainer.score(X[test], y[test]) == SVC().fit(X[train], y[train]).score(X[test], y[test])


def drifted(n_new):
    X, y = make_classification(4000, 8, n_informative=5, class_sep=0.8, random_state=0)
    moved = X[2000:] @ np.diag([1, -1, 1, -1, 1, -1, 1, -1]) + 0.3
    return (X[:2000], y[:2000]), (moved[:n_new], y[2000 : 2000 + n_new]), (moved[500:], y[2500:])


@pytest.mark.sweep(1)
@pytest.mark.parametrize(
    "model", [LogisticRegression(), GradientBoostingClassifier(random_state=0)], ids=repr
)
def test_new_samples_improve_a_model(model):
    old, new, test = drifted(300)
    model.fit(*old)
    trainer = OrtGradientOptimizer(model, warm_start=True, random_state=0).fit(*new)
    assert trainer.score(*test) > model.score(*test) + 0.02


@pytest.mark.slow
def test_few_new_samples_keep_the_score():
    old, new, test = drifted(20)
    model = LogisticRegression().fit(*old)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StartKeptWarning)
        trainer = OrtGradientOptimizer(model, warm_start=True, random_state=0).fit(*new)
    assert trainer.score(*test) >= model.score(*test) - 0.01


@pytest.mark.parametrize("loss", ["perceptron", "squared_hinge"])
@pytest.mark.parametrize("model", [GaussianNB(), LogisticRegression()], ids=repr)
def test_losses_of_margins_do_not_increase_errors(model, loss):
    X, y = make_classification(
        1500, 6, n_informative=5, n_redundant=1, n_classes=4, flip_y=0.1, random_state=1
    )
    model.fit(X[:500], y[:500])
    trainer = OrtGradientOptimizer(model, warm_start=True, learning_loss=loss, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StartKeptWarning)
        trainer.fit(X[500:600], y[500:600])
    assert trainer.score(X[600:], y[600:]) > model.score(X[600:], y[600:]) - 0.02


def test_samples_without_a_class_keep_the_model():
    X, y = make_classification(900, 5, n_informative=5, n_redundant=0, n_classes=3, random_state=0)
    model = LogisticRegression().fit(X[:200], y[:200])
    some = 200 + np.flatnonzero(y[200:400] != 2)
    trainer = OrtGradientOptimizer(model, warm_start=True, random_state=0)
    with pytest.warns(StartKeptWarning, match=r"the samples lack the classes \[2\]"):
        trainer.fit(X[some], y[some])
    np.testing.assert_array_equal(trainer.predict(X), model.predict(X))
    assert not trainer.set_params(keep_better=False).fit(X[some], y[some]).start_kept_


def test_one_sample_keeps_the_model():
    model = LinearRegression().fit(np.eye(4)[:, :2], np.arange(4.0))
    with pytest.warns(StartKeptWarning):
        trainer = OrtGradientOptimizer(model, warm_start=True).fit(np.ones((1, 2)), [5.0])
    np.testing.assert_allclose(trainer.coef_, model.coef_, rtol=1e-6)


def test_warm_start_from_an_unfitted_model():
    X, y = WINE
    with pytest.warns(UnfittedStartWarning, match=r"Ridge is not fitted.*FrozenEstimator.*cross-validation"):
        OrtGradientOptimizer(Ridge(), warm_start=True, keep_better=False, random_state=0).fit(X, y)
    frozen = OrtGradientOptimizer(
        FrozenEstimator(Ridge(alpha=0.1).fit(X, y)), warm_start=True, keep_better=False, max_iter=5
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnfittedStartWarning)
        GridSearchCV(frozen, {"learning_rate": [1e-7, 1e-6]}, cv=3).fit(X, y)


@pytest.mark.parametrize("search", ["grid", "validation", "elimination"])
def test_one_warning_of_an_unfitted_model_in_a_search(search):
    X, y = WINE
    trainer = OrtGradientOptimizer(Ridge(), warm_start=True, max_iter=2, learning_rate=1e-6, random_state=0)
    runs = {
        "grid": lambda: GridSearchCV(trainer, {"learning_rate": [1e-7, 1e-6]}, cv=3).fit(X, y),
        "validation": lambda: cross_val_score(trainer, X, y, cv=4),
        "elimination": lambda: RFE(trainer, n_features_to_select=10).fit(X, y),
    }
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        runs[search]()
    assert sum(item.category is UnfittedStartWarning for item in caught) == 1
    with warnings.catch_warnings():  # as an error it ends every training
        warnings.simplefilter("error", UnfittedStartWarning)
        for _ in range(2):
            with pytest.raises(UnfittedStartWarning):
                trainer.fit(X, y)


@pytest.mark.slow
def test_one_warning_of_kept_starts_in_a_search():
    X, y = WINE
    trainer = OrtGradientOptimizer(FrozenEstimator(Ridge().fit(X, y)), warm_start=True, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        GridSearchCV(trainer, {"max_iter": [2, 3]}, cv=3).fit(X, y)
    assert sum(item.category is StartKeptWarning for item in caught) == 1


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize(
    "rate",
    ["LBFGS", LearningRateAdam(0.01, learning_rate="cosine"), LearningRateSGD(0.3, learning_rate="constant")],
)
@pytest.mark.parametrize(
    "penalty", [L2Penalty(0.1, toward="start"), ElasticPenalty(0.05, 0.1, toward="start")]
)
def test_penalty_toward_the_start(optimizer, rate, penalty):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.3
    model = Ridge(alpha=1e-6).fit(X, y)
    new = X @ [1.0, -1.0, 0.5] + 0.3
    trainer = optimizer(
        model, learning_penalty=penalty, learning_rate=rate, max_iter=300, random_state=0, batch_size=200
    )
    trainer.set_params(warm_start=True, keep_better=False, dtype="float64", shuffle=False)
    if rate != "LBFGS":
        trainer.set_params(max_iter=2000)
    found = trainer.fit(X, new).to_sklearn().coef_
    # minimises |X (v - d)|^2 / 2n + l2 |v|^2 + l1 |v| for changes v of coefficients and d of labels
    centred, d = X - X.mean(axis=0), np.array([0.0, 1.0, 0.0])
    gram, l1 = centred.T @ centred / len(X), getattr(penalty, "l1", 0.0)
    change = np.zeros(3)
    for _ in range(1000):
        for j in range(3):
            slope = gram[j] @ (d - change) + gram[j, j] * change[j]
            change[j] = np.sign(slope) * max(abs(slope) - l1, 0) / (gram[j, j] + 2 * penalty.l2)
    np.testing.assert_allclose(found - model.coef_, change, atol=5e-3)
    assert "toward='start'" in repr(trainer.penalty_)


def test_invalid_toward():
    with pytest.raises(ValueError, match="toward='zer' must be 'zero' or 'start'"):
        OrtGradientOptimizer(Ridge(), learning_penalty=L2Penalty(toward="zer")).fit(*WINE)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model, limit",
    [
        (GradientBoostingRegressor(n_estimators=10, random_state=0), "n_estimators"),
        (HistGradientBoostingRegressor(max_iter=10, random_state=0), "max_iter"),
    ],
)
@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.StartKeptWarning")
def test_many_warm_starts_do_not_grow_boosting_without_bound(model, limit):
    rng, sizes = np.random.default_rng(0), []
    for night in range(7):
        X = rng.normal(size=(200, 3))
        y = X[:, 0] * np.cos(night / 2) + X[:, 1] * np.sin(night / 2)
        trainer = OrtGradientOptimizer(model, warm_start=night > 0, random_state=0).fit(X, y)
        model = trainer.to_sklearn()
        sizes.append(len(getattr(model, "_predictors", getattr(model, "estimators_", ()))))
    assert max(sizes) in (20, 30) and getattr(model, limit) == 10
    assert model.score(X, y) > 0.5  # follows the last labels
