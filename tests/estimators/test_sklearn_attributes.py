"""coef_, intercept_ and feature_importances_ of trained estimators, and tools that use them."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.feature_selection import RFE, RFECV, SelectFromModel, SequentialFeatureSelector
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from ortlearn.trainable.from_estimator import sklearn_to_onnx

NAMES = ("coef_", "intercept_", "feature_importances_")
RNG = np.random.RandomState(0)
X = RNG.randn(90, 6)
#: Labels depend on columns 1 and 4.
Y = 3 * X[:, 1] - 2 * X[:, 4] + 0.1 * RNG.randn(90)
LABELS = np.where(Y > 0.3, "yes", "no")


def names_of(estimator):
    return {name for name in NAMES if hasattr(estimator, name)}


@pytest.mark.parametrize(
    "model, y, expected",
    [
        (Ridge(), Y, {"coef_", "intercept_"}),
        (Ridge(), np.stack([Y, -Y], axis=1), {"coef_", "intercept_"}),
        (LogisticRegression(), LABELS, {"coef_", "intercept_"}),
        (SVC(kernel="linear"), LABELS, {"coef_", "intercept_"}),
        (SVC(), LABELS, {"intercept_"}),
        (RandomForestRegressor(3, max_depth=3, random_state=0), Y, {"feature_importances_"}),
        (KNeighborsRegressor(), Y, set()),
        (make_pipeline(StandardScaler(), Ridge()), Y, set()),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else "",
)
def test_attributes_of_the_trained_model(model, y, expected, optimizer):
    trainer = optimizer(model, max_iter=2, random_state=0, learning_rate=0.01)
    assert not names_of(trainer)
    with pytest.raises(AttributeError, match="has no attribute 'coef_'"):
        _ = trainer.coef_
    trainer.fit(X, y)
    assert names_of(trainer) == names_of(trainer.to_sklearn()) == expected
    for name in expected:
        np.testing.assert_array_equal(getattr(trainer, name), getattr(trainer.to_sklearn(), name))
    copied = pickle.loads(pickle.dumps(trainer))
    assert names_of(copied) == expected and not names_of(clone(trainer))
    assert expected.isdisjoint(vars(trainer))


def test_onnx_model_without_attributes(optimizer):
    model = sklearn_to_onnx(Ridge().fit(X, Y), 6)
    assert not names_of(optimizer(model, max_iter=1, random_state=0).fit(X, Y))


def test_attributes_are_updated(optimizer):
    trainer = optimizer(Ridge(), max_iter=30, random_state=0, learning_rate=0.05).fit(X, Y)
    first = trainer.coef_
    assert first.shape == (6,) and set(np.argsort(-np.abs(first))[:2]) == {1, 4}
    second = trainer.partial_fit(X, Y).coef_
    assert not np.array_equal(first, second)
    trainer.set_weights({"coef": np.zeros_like(trainer.get_weights()["coef"])})
    np.testing.assert_array_equal(trainer.coef_, np.zeros(6))


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    "selector",
    [
        lambda trainer: RFE(trainer, n_features_to_select=2, step=2),
        lambda trainer: RFECV(trainer, cv=2, min_features_to_select=2, step=2),
        lambda trainer: SelectFromModel(trainer, max_features=2, threshold=-np.inf),
        lambda trainer: SequentialFeatureSelector(trainer, n_features_to_select=2, cv=2),
        lambda trainer: SelectFromModel(trainer.fit(X, Y), prefit=True, max_features=2, threshold=-np.inf),
    ],
    ids=["RFE", "RFECV", "SelectFromModel", "Sequential", "prefit"],
)
def test_feature_selection(selector, optimizer):
    trainer = optimizer(Ridge(), max_iter=15, random_state=0, learning_rate=0.05)
    found = selector(trainer).fit(X, Y)
    assert {1, 4} <= set(np.flatnonzero(found.get_support()))
    assert found.transform(X).shape[1] == 2 or isinstance(found, RFECV)


def test_feature_selection_in_a_pipeline(optimizer):
    forest = RandomForestRegressor(5, max_depth=3, random_state=0)
    found = SelectFromModel(optimizer(forest, max_iter=2, random_state=0), max_features=2).fit(X, Y)
    assert set(np.flatnonzero(found.get_support())) <= {1, 4}
    scaled = make_pipeline(
        StandardScaler(), optimizer(Ridge(), max_iter=15, random_state=0, learning_rate=0.05)
    )
    getter = f"named_steps.{scaled.steps[-1][0]}.coef_"
    found = RFE(scaled, n_features_to_select=2, importance_getter=getter).fit(X, Y)
    assert set(np.flatnonzero(found.get_support())) == {1, 4}
