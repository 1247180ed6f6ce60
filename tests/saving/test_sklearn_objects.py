"""Trees and neighbour searches are loaded without ``trusted``; altered ones are rejected."""

import numpy as np
import pytest
import skops.io
from sklearn.base import clone
from sklearn.ensemble import (
    AdaBoostRegressor,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    VotingRegressor,
)
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import Ridge
from sklearn.neighbors import BallTree, KDTree, KernelDensity, KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.tree._tree import Tree

from ortlearn import OrtGradientOptimizer, saving
from ortlearn.exceptions import SavedFileError
from ortlearn.saving.sklearn_objects import dump, load

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4))
X[:, 3] = rng.integers(5, size=120)
Y = np.sin(X[:, 0]) + X[:, 1] + (X[:, 3] == 2)
CLASSES = (Y > 0.3).astype(int) + (Y > 1)
SMALL = {"n_estimators": 3, "max_depth": 3, "random_state": 0}
MODELS = {
    "tree": (DecisionTreeClassifier(max_depth=4, random_state=0), CLASSES),
    "stump of one node": (DecisionTreeRegressor(max_depth=1, min_samples_split=200), Y),
    "forest": (RandomForestClassifier(**SMALL), CLASSES),
    "outputs": (ExtraTreesRegressor(**SMALL), np.stack([Y, -Y], axis=1)),
    "isolation": (IsolationForest(n_estimators=3, random_state=0), None),
    "adaboost": (AdaBoostRegressor(n_estimators=3, random_state=0), Y),
    "boosting": (GradientBoostingClassifier(**SMALL), CLASSES),
    "boosting from a model": (GradientBoostingRegressor(init=DecisionTreeRegressor(max_depth=1), **SMALL), Y),
    "histograms": (
        HistGradientBoostingClassifier(
            max_iter=3, categorical_features=[3], random_state=0, min_samples_leaf=5
        ),
        CLASSES,
    ),
    "neighbours": (KNeighborsClassifier(algorithm="kd_tree", leaf_size=4), CLASSES),
    "density": (KernelDensity(), None),
    "nested": (
        make_pipeline(
            SelectFromModel(DecisionTreeRegressor(random_state=0), max_features=2),
            VotingRegressor([("ridge", Ridge()), ("forest", ExtraTreesRegressor(**SMALL))]),
        ),
        Y,
    ),
}


def fitted(name):
    model, y = MODELS[name]
    return clone(model).fit(X, y)  # as tests change its attributes


def reloaded(model):
    """Return a model after a round trip."""
    content, reason = dump(model)
    assert not reason
    return load(content)


def outputs(model):
    names = ("predict", "predict_proba", "score_samples", "apply")
    return [getattr(model, name)(X) for name in names if hasattr(model, name)]


@pytest.mark.parametrize("name", MODELS)
def test_predictions_are_the_same(name):
    model = fitted(name)
    for found, expected in zip(outputs(reloaded(model)), outputs(model), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", MODELS)
def test_unfitted_models(name):
    model = clone(MODELS[name][0])
    assert repr(load(dump(model)[0])) == repr(model)


@pytest.mark.filterwarnings("ignore:The training reached max_iter")
def test_saved_estimators_have_their_trees(tmp_path):
    forest = RandomForestClassifier(**SMALL)
    trained = OrtGradientOptimizer(forest, learning_rate="Adam", max_iter=2, random_state=0).fit(X, CLASSES)
    saving.save(trained, tmp_path / "forest.zip")
    later = saving.load(tmp_path / "forest.zip")  # warnings are errors
    np.testing.assert_array_equal(later.to_sklearn().predict_proba(X), trained.to_sklearn().predict_proba(X))


def altered(tree, n_features=None, **changes):
    """Return a tree with other nodes, ``{field: (node, value)}``, or another attribute of its state."""
    state = tree.__getstate__()
    for name, change in changes.items():
        if isinstance(change, tuple):
            state["nodes"] = state["nodes"].copy()
            state["nodes"][name][change[0]] = change[1]
        else:
            state[name] = change
    n_classes = np.array([tree.max_n_classes] * tree.n_outputs, dtype=np.intp)
    found = Tree(n_features or tree.n_features, n_classes, tree.n_outputs)
    found.__setstate__(state)
    return found


ALTERED = {
    "a child after the last node": {"left_child": (0, 10**6)},
    "a negative child": {"right_child": (0, -7)},
    "a node that is its nodes_of_kind child": {"left_child": (1, 1)},
    "a child that is an ancestor": {"left_child": (1, 0)},
    "two parents of a node": {"left_child": (0, 2)},
    "one child": {"right_child": (0, -1)},
    "a feature that is not there": {"feature": (0, 4)},
    "a negative feature": {"feature": (1, -3)},
    "features of another model": {"n_features": 9},
    "a depth that is too small": {"max_depth": 1},
    "fewer nodes": {"node_count": 2},
    "no nodes": {"node_count": 0},
}


@pytest.mark.parametrize("name", ALTERED)
@pytest.mark.parametrize("kind", ["tree", "forest", "boosting"])
def test_altered_trees(kind, name):
    model = fitted(kind)
    assert len(outputs(reloaded(model))) > 1
    owner = {"tree": lambda: model, "forest": lambda: model.estimators_[1]}.get(
        kind, lambda: model.estimators_[1, 0]
    )()
    owner.tree_ = altered(owner.tree_, **ALTERED[name])
    with pytest.raises(SavedFileError, match="tree has invalid indices"):
        reloaded(model)


def test_trees_that_skops_trusts_are_checked(monkeypatch):
    model = fitted("tree")
    model.tree_ = altered(model.tree_, left_child=(0, 10**6))
    content, _ = dump(model)
    loads, types = skops.io.loads, skops.io.get_untrusted_types(data=content)
    monkeypatch.setattr(skops.io, "get_untrusted_types", lambda data: [])
    monkeypatch.setattr(skops.io, "loads", lambda data, trusted: loads(data, trusted=types))
    with pytest.raises(SavedFileError, match="tree has invalid indices"):
        load(content)


def test_trees_in_unknown_attributes():
    model, other = fitted("tree"), fitted("forest").estimators_[0].tree_
    model.kept_ = [other]
    with pytest.raises(SavedFileError, match="attributes in which scikit-learn does not store them"):
        reloaded(model)
    model.kept_ = [model.tree_]  # the same tree twice is one
    reloaded(model)


@pytest.mark.parametrize("change", ["columns", "features", "scores"])
def test_altered_boosting(change):
    model = fitted("boosting")
    if change == "columns":
        model.estimators_ = np.hstack([model.estimators_] * 2)
    elif change == "features":
        model.n_features_in_ = 3
    else:
        model.init_ = DecisionTreeClassifier(max_depth=1).fit(X, CLASSES > 1)
    with pytest.raises(SavedFileError):
        reloaded(model)


@pytest.mark.parametrize(
    "field, value",
    [
        ("left", 10**6),
        ("right", 0),
        ("feature_idx", 4),
        ("is_categorical", 1),
        ("bitset_idx", 99),
        ("is_leaf", 1),
    ],
)
def test_altered_histograms(field, value):
    model = fitted("histograms")
    predictors = [predictor for stage in model._predictors for predictor in stage]
    for predictor in predictors:
        nodes = predictor.nodes
        nodes_of_kind = (nodes["is_leaf"] == 0) & (nodes["is_categorical"] == (field == "bitset_idx"))
        if nodes_of_kind.any():
            nodes[field][np.flatnonzero(nodes_of_kind)[0]] = value
            break
    with pytest.raises(SavedFileError, match="tree has invalid indices"):
        reloaded(model)


@pytest.mark.parametrize("kind", [KDTree, BallTree])
def test_trees_of_neighbours_are_rebuilt(kind):
    name = "kd_tree" if kind is KDTree else "ball_tree"
    model = KNeighborsClassifier(algorithm=name, leaf_size=4, metric="manhattan").fit(X, CLASSES)
    expected, tree = model.kneighbors(X), model._tree
    state = list(tree.__getstate__())
    state[1] = np.full_like(np.asarray(state[1]), 10**6)
    model._tree = kind(X[:5])
    model._tree.__setstate__(tuple(state))
    for found, value in zip(reloaded(model).kneighbors(X), expected, strict=True):
        np.testing.assert_array_equal(found, value)
