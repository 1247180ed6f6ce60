"""Class shares of trees are mixed with constant ones for another loss than that of the trees."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from ortlearn import OrtGradientOptimizer
from ortlearn.losses import FocalLoss
from ortlearn.saving import load, save

TREES = [
    RandomForestClassifier(30, random_state=0),
    ExtraTreesClassifier(30, random_state=0),
    BaggingClassifier(n_estimators=10, random_state=0),
    make_pipeline(StandardScaler(), DecisionTreeClassifier(random_state=0)),
]


def data(n_classes=2):
    X, y = make_classification(2400, 10, n_informative=6, n_classes=n_classes, flip_y=0.2, random_state=0)
    return X, np.array(["a", "b", "c"])[y]


def focal(model, X, y):
    """Lin, T. et al., "Focal loss for dense object detection", ICCV 2017, with gamma 2."""
    shares = np.clip(model.predict_proba(X), 1e-6, 1)
    own = shares[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return np.mean(-((1 - own) ** 2) * np.log(own))


def trained(model, X, y, **options):
    return OrtGradientOptimizer(model, learning_loss=FocalLoss(2.0), random_state=0, **options).fit(X, y)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", TREES, ids=lambda model: type(model).__name__)
def test_trees_that_were_just_fitted_are_judged_by_samples_they_have_not_seen(model, n_classes):
    """Forests without bootstrap and single trees predict their samples without an error."""
    X, y = data(n_classes)
    own = clone(model).fit(X[:400], y[:400])
    trainer = trained(clone(model), X[:400], y[:400], keep_better=True)
    assert focal(trainer, X[400:], y[400:]) < focal(own, X[400:], y[400:]) - (
        0.005 if n_classes == 3 else 0.01
    )
    assert trainer.score(X[400:], y[400:]) > own.score(X[400:], y[400:]) - 0.02
    np.testing.assert_allclose(
        trainer.to_sklearn().predict_proba(X[400:]), trainer.predict_proba(X[400:]), atol=1e-5
    )


def test_probabilities_are_an_affine_map_of_those_of_the_forest():
    X, y = data(3)
    own = RandomForestClassifier(30, random_state=0).fit(X[:400], y[:400])
    found = trained(clone(own), X[:400], y[:400]).predict_proba(X[400:])
    shares = np.column_stack([own.predict_proba(X[400:]), np.ones(2000)])
    solution = np.linalg.lstsq(shares[:, [0, 1, 2]], found, rcond=None)[0]  # rows (1 - a) e + a c
    np.testing.assert_allclose(shares[:, :3] @ solution, found, atol=1e-4)
    share = 1 - np.mean(np.diag(solution) - solution.sum(axis=0) / 3) * 1.5
    assert 0.01 < share < 0.9 and np.abs(found - own.predict_proba(X[400:])).max() > 0.01


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", TREES[:3], ids=lambda model: type(model).__name__)
def test_a_warm_start_follows_a_drift(model, tmp_path):
    X, y = data()
    moved = X * np.where(np.arange(10) < 5, -1.0, 1.0)
    old = clone(model).fit(X[:400], y[:400])
    trainer = trained(old, moved[400:800], y[400:800], warm_start=True)
    assert focal(trainer, moved[800:], y[800:]) < focal(old, moved[800:], y[800:]) - 0.03
    assert trainer.score(moved[800:], y[800:]) > old.score(moved[800:], y[800:]) + 0.02
    save(trainer, tmp_path / "model.ortlearn")
    for copy in (pickle.loads(pickle.dumps(trainer)), load(tmp_path / "model.ortlearn")):
        np.testing.assert_array_equal(copy.predict_proba(X[:50]), trainer.predict_proba(X[:50]))


@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.StartKeptWarning")
def test_too_few_samples_keep_the_trees():
    X, y = data(3)
    chosen = [0, *np.flatnonzero(y == "b")[:3], *np.flatnonzero(y == "c")[:3]]
    model = ExtraTreesClassifier(5, random_state=0)
    trainer = trained(model, X[chosen], y[chosen])
    np.testing.assert_allclose(
        trainer.predict_proba(X), model.fit(X[chosen], y[chosen]).predict_proba(X), atol=1e-5
    )


def test_samples_without_weight_do_not_count():
    X, y = data()
    weights = (np.arange(600) < 400).astype(float)
    y = np.where(np.arange(len(y)) < 400, y, "a")
    trainers = [
        OrtGradientOptimizer(TREES[0], learning_loss=FocalLoss(), random_state=0).fit(
            X[:600], y[:600], sample_weight=own
        )
        for own in (weights, 2 * weights)
    ]
    np.testing.assert_allclose(*(own.predict_proba(X[600:]) for own in trainers), atol=1e-3)
    assert (trainers[0].predict(X[600:]) == "b").mean() > 0.3


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", [RandomForestClassifier(5, random_state=0), ExtraTreesClassifier(5, random_state=0)]
)
def test_a_part_of_many_samples_finds_the_mixture(model):
    X, y = make_classification(6500, 10, n_informative=6, flip_y=0.2, random_state=0)
    own, trainer = clone(model).fit(X[:6000], y[:6000]), trained(clone(model), X[:6000], y[:6000])
    assert focal(trainer, X[6000:], y[6000:]) < focal(own, X[6000:], y[6000:]) - 0.1
    later = trained(own, -X[:6000], y[:6000], warm_start=True)
    assert focal(later, -X[6000:], y[6000:]) < focal(own, -X[6000:], y[6000:]) - 0.1
