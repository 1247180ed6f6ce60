"""Ensembles of trees with smoothed thresholds."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    BaggingRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
)
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.tree import DecisionTreeRegressor

from ortlearn.exceptions import GradientError
from ortlearn.functions import differentiable

from .test_function import CLASSES, RNG, P, X, Y, differences

ENSEMBLES = {
    "tree": (DecisionTreeRegressor(max_depth=3), np.c_[Y, Y**2], "predict"),
    "forest": (RandomForestClassifier(5, random_state=0), CLASSES, "predict_proba"),
    "two forests": (RandomForestClassifier(3, random_state=0), np.c_[CLASSES, CLASSES > 1], "predict_proba"),
    "bagging": (BaggingRegressor(n_estimators=5, max_features=0.5, random_state=0), Y, "predict"),
    "boosting": (GradientBoostingClassifier(n_estimators=5), CLASSES, "decision_function"),
    "histograms": (HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=5), Y, "predict"),
    "isolation": (IsolationForest(n_estimators=5, random_state=0), None, "decision_function"),
}


@pytest.mark.parametrize("name", ENSEMBLES)
def test_smoothed_trees(name):
    model, y, output = ENSEMBLES[name]
    model.fit(X, y)
    f = differentiable(model, output, smooth=[0.3, 0.2, 0.5, 0.1])
    jacobian, v = f.jacobian(P), RNG.normal(size=P.shape)
    np.testing.assert_allclose(jacobian, differences(f, P), rtol=1e-6, atol=1e-7)
    assert np.abs(jacobian).max() > 1e-3
    along = (jacobian * v.reshape(len(P), *[1] * (jacobian.ndim - 2), -1)).sum(axis=-1)
    np.testing.assert_allclose(f.jvp(P, v), along, rtol=1e-9, atol=1e-12)
    errors = [differentiable(model, output, smooth=s).smoothing_error(P).mean() for s in (0.5, 0.1, 1e-9)]
    assert errors[0] > errors[1] > errors[2] == pytest.approx(0, abs=1e-12)


def test_smoothed_tree_of_one_split_is_a_sigmoid():
    model = DecisionTreeRegressor(max_depth=1).fit([[0.0], [1.0]], [3.0, 5.0])
    f, x = differentiable(model, smooth=0.1), np.array([[0.4], [0.55]])
    np.testing.assert_allclose(f(x), 3 + 2 / (1 + np.exp(-(x.ravel() - 0.5) / 0.1)), rtol=1e-12)


def test_trees_without_splits_are_constants():
    """The second tree of a fit without residuals is a leaf."""
    model = GradientBoostingRegressor(n_estimators=2, learning_rate=1.0, max_depth=1)
    model.fit([[0.0], [1.0]], [3.0, 5.0])
    assert [tree.tree_.node_count for tree in model.estimators_[:, 0]] == [3, 1]
    f, x = differentiable(model, smooth=0.1), np.array([[0.4]])
    np.testing.assert_allclose(f(x), 3 + 2 / (1 + np.exp(1.0)), rtol=1e-12)
    np.testing.assert_allclose(f.gradient(x), 20 * np.exp(1.0) / (1 + np.exp(1.0)) ** 2, rtol=1e-12)
    model = GradientBoostingRegressor(n_estimators=2).fit([[0.0], [1.0]], [3.0, 3.0])
    with pytest.raises(GradientError, match="piecewise constant"):
        differentiable(model, smooth=0.1)


def test_missing_values_of_smoothed_trees_take_their_side():
    samples = X.copy()
    samples[::3, 0] = np.nan
    model = HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=5).fit(samples, Y)
    f = differentiable(model, smooth=1e-9)
    np.testing.assert_allclose(f(samples), model.predict(samples), rtol=1e-9)
    assert np.isfinite(f.gradient(samples)).all()


@pytest.mark.parametrize(
    "steps", [[StandardScaler()], [MinMaxScaler((0, 5)), MaxAbsScaler()], [RobustScaler(), "passthrough"]]
)
@pytest.mark.parametrize("smooth", [0.4, [0.3, 0.2, 0.5, 0.1]])
def test_widths_are_those_of_features_before_scaling(steps, smooth):
    alone = DecisionTreeRegressor(max_depth=3, random_state=0).fit(100 * X, Y)
    scaled = make_pipeline(*steps, DecisionTreeRegressor(max_depth=3, random_state=0)).fit(100 * X, Y)
    smooth, P100 = 100 * np.asarray(smooth), 100 * P
    f, expected = differentiable(scaled, smooth=smooth), differentiable(alone, smooth=smooth)
    np.testing.assert_allclose(f(P100), expected(P100), rtol=1e-4)
    np.testing.assert_allclose(f.gradient(P100), expected.gradient(P100), rtol=1e-3, atol=1e-9)


def test_widths_after_steps_that_mix_features():
    model = make_pipeline(PCA(2), DecisionTreeRegressor(max_depth=3, random_state=0)).fit(X, Y)
    f = differentiable(model[-1], smooth=[0.3, 0.2])
    np.testing.assert_allclose(
        differentiable(model, smooth=[0.3, 0.2])(P), f(model[0].transform(P)), rtol=1e-6
    )
    with pytest.raises(ValueError, match="4 widths, but the steps before the trees make 2 columns"):
        differentiable(model, smooth=[0.3, 0.2, 0.5, 0.1])


def test_errors():
    with pytest.raises(GradientError, match="no ensemble of trees"):
        differentiable(Ridge().fit(X, Y), smooth=1.0)
    tree = DecisionTreeRegressor().fit(X, Y)
    for smooth in (0.0, -1.0, [1.0, np.nan, 1.0, 1.0]):
        with pytest.raises(ValueError, match="must be a positive number"):
            differentiable(tree, smooth=smooth)
    for widths in ([1.0], [1.0] * 5):
        with pytest.raises(ValueError, match=f"smooth has {len(widths)} widths, but X has 4 columns"):
            differentiable(tree, smooth=widths)
