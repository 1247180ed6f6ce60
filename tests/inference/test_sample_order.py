"""Forms of trees and orders of samples do not change predictions."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn import OrtGradientOptimizer
from ortlearn.graphs import TensorType
from ortlearn.inference.tree_forms import MANY
from ortlearn.models import write_model
from ortlearn.models.trees.nodes import FusedTrees
from ortlearn.models.trees.ordering import order_graph

X = np.random.RandomState(0).normal(size=(3 * MANY, 4)).astype(np.float32)
Y = X[:, 0] - X[:, 1] * X[:, 2]
FEW = slice(200)
FOREST = RandomForestRegressor(50, random_state=0)


def trees_of(model):
    """Return the graph of a fitted model, and its trees."""
    written = write_model(model, {"X": TensorType(1, (None, 4))}, np.float32)
    (form,) = (form for form in written.fused if isinstance(form, FusedTrees))
    return written.model, form


@pytest.mark.parametrize(
    "model, y",
    [
        (FOREST, Y),
        (make_pipeline(StandardScaler(), FOREST), Y),
        (ExtraTreesClassifier(60, random_state=0), np.digitize(Y, [-1, 1])),
        (GradientBoostingClassifier(n_estimators=20), np.digitize(Y, [-1, 1])),
    ],
    ids=["regressor", "after a scaler", "three classes", "tables"],
)
def test_predictions_do_not_depend_on_the_number_of_samples(model, y):
    samples = X.astype(np.float64 if hasattr(model, "steps") else np.float32)
    if isinstance(model, ExtraTreesClassifier):
        samples[::7, 1] = np.nan
    model.fit(samples[FEW], y[FEW])
    ours = OrtGradientOptimizer(model, max_iter=1, warm_start=True, random_state=0)
    ours.fit(samples[FEW], y[FEW])
    runner = ours._model().runner
    order = runner._order(samples)
    if isinstance(model, GradientBoostingClassifier):
        assert order is None and runner.trees.limits == (MANY, 0)
    else:
        assert sorted(order) == list(range(len(X))) and runner._order(samples[: MANY - 1]) is None
    parts = np.array_split(samples, 7)
    for method in ("predict", "predict_proba")[: 1 + hasattr(ours, "classes_")]:
        one_by_one = np.concatenate([getattr(ours, method)(part) for part in parts])
        np.testing.assert_array_equal(getattr(ours, method)(samples), one_by_one)


def test_keys_are_leaves_from_left_to_right(run_onnx):
    forest = FOREST.fit(X[FEW], Y[FEW])
    (keys,) = run_onnx(order_graph(*trees_of(forest)), X).values()
    trees = sorted((member.tree_ for member in forest.estimators_), key=lambda tree: -tree.n_leaves)[:3]
    expected = np.zeros(len(X))
    for tree in trees:  # scikit-learn stores the nodes of a tree from left to right
        leaves = np.flatnonzero(tree.children_left < 0)
        expected = expected * len(leaves) + np.searchsorted(leaves, tree.apply(X))
    np.testing.assert_array_equal(np.ravel(keys), expected)


def test_few_or_small_trees_read_samples_as_given():
    for options in ({"n_estimators": 10}, {"max_depth": 4}):
        forest = RandomForestRegressor(**{"n_estimators": 50, "random_state": 0, **options})
        assert order_graph(*trees_of(forest.fit(X[FEW], Y[FEW]))) is None


@pytest.mark.slow
def test_levels_predict_until_the_operator_pays():
    model = RandomForestRegressor(100, bootstrap=False, max_features=2, random_state=0).fit(X[FEW], Y[FEW])
    ours = OrtGradientOptimizer(model, max_iter=1, warm_start=True, random_state=0).fit(X[FEW], Y[FEW])
    runner = ours._model().runner

    def opened():
        return sorted(key[0] for key in runner._calls.values if isinstance(key, tuple))

    first = ours.predict(X)
    assert opened() == ["levels"]
    np.testing.assert_array_equal(first[:3], [ours.predict(X[i : i + 1])[0] for i in range(3)])
    assert opened() == [""]
    np.testing.assert_array_equal(ours.predict(X), first)
    assert opened() == [""] and runner._calls.values["order"] is not None
