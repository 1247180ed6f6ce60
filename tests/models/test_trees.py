"""Trees, forests and boosting: graph, gradients, training and write-back."""

import numpy as np
import pytest
from onnx import helper
from sklearn.base import clone
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

from ortlearn import OrtGradientOptimizer
from ortlearn.graphs import TensorType
from ortlearn.models import write_model, write_parameters
from ortlearn.models.trees import Nodes, leaf_numbers
from ortlearn.models.writer import ModelWriter
from ortlearn.testing import check_model

RNG = np.random.RandomState(0)
X = RNG.normal(size=(120, 5))
Y = X[:, 0] * X[:, 1] + 0.1 * RNG.normal(size=120)
TWO, THREE = (Y > 0).astype(int), np.digitize(Y, [-0.4, 0.4])
FEW = {"n_estimators": 4, "random_state": 0}
#: Leaves of all classes: the score of a probability of zero has no derivative.
MIXED = {"min_samples_leaf": 20, "random_state": 0}
EVEN = {"n_estimators": 4, "bootstrap": True, **MIXED}

REGRESSORS = [
    DecisionTreeRegressor(max_depth=4),
    ExtraTreeRegressor(max_depth=4, random_state=0),
    RandomForestRegressor(max_depth=4, **FEW),
    ExtraTreesRegressor(**FEW),
    *(
        GradientBoostingRegressor(loss=loss, **FEW)
        for loss in ("squared_error", "absolute_error", "huber", "quantile")
    ),
    GradientBoostingRegressor(init="zero", **FEW),
    GradientBoostingRegressor(init=Ridge(), **FEW),
    *(
        HistGradientBoostingRegressor(loss=loss, quantile=0.3, max_iter=4)
        for loss in ("squared_error", "absolute_error", "quantile", "poisson", "gamma")
    ),
    AdaBoostRegressor(Ridge(), loss="square", **FEW),
]
CLASSIFIERS = [
    DecisionTreeClassifier(**MIXED),
    ExtraTreeClassifier(**MIXED),
    RandomForestClassifier(**EVEN),
    ExtraTreesClassifier(**EVEN),
    GradientBoostingClassifier(**FEW),
    GradientBoostingClassifier(init="zero", **FEW),
    GradientBoostingClassifier(init=LogisticRegression(), **FEW),
    HistGradientBoostingClassifier(max_iter=4),
]


def written(model, dtype=np.float64, columns=5):
    return write_model(model, {"X": TensorType(11 if dtype == np.float64 else 1, (None, columns))}, dtype)


def shown(model):
    return f"{type(model).__name__}-{getattr(model, 'loss', '')}-{getattr(model, 'init', None) or ''}"


@pytest.mark.parametrize("model", REGRESSORS, ids=shown)
def test_regressors(model, run):
    positive = getattr(model, "loss", "") in ("poisson", "gamma")
    # scikit-learn passes float32 to init
    rtol = 1e-6 if isinstance(getattr(model, "init", None), Ridge) else 1e-7
    check_model(model.fit(X, np.exp(Y) if positive else Y), X, run=run, rtol=rtol)


def test_weighted_median_of_trees(run):
    model = AdaBoostRegressor(**FEW).fit(X, Y)
    members = np.sort([member.predict(X) for member in model.estimators_], axis=0)
    check_model(model, X[np.diff(members, axis=0).min(axis=0) > 1e-2], run=run)  # no ties


@pytest.mark.parametrize(
    "y", [TWO, THREE, np.array(["low", "mid", "top"])[THREE]], ids=["two", "three", "text"]
)
@pytest.mark.parametrize("model", CLASSIFIERS, ids=shown)
def test_classifiers(model, y, run):
    model = model.fit(X, y)
    if isinstance(model, GradientBoostingClassifier) and y is not TWO and model.init is None:
        return  # see the next test: base values of several classes are written back separately
    check_model(
        model, X, run=run, rtol=1e-6 if getattr(model, "init", "zero") not in ("zero", None) else 1e-7
    )


def test_exponential_loss_and_initial_scores(run):
    check_model(GradientBoostingClassifier(loss="exponential", **FEW).fit(X, TWO), X, run=run)
    model = GradientBoostingClassifier(**FEW).fit(X, THREE)
    graph = written(model)
    changed = write_parameters(model, graph.parameters, {"base_values": np.array([1.0, 2.0, 4.0])})
    gap = changed.decision_function(X) - model.decision_function(X)
    expected = np.array([1.0, 2.0, 4.0]) - graph.parameters["base_values"].value(model)
    np.testing.assert_allclose(gap, np.tile(expected, (len(X), 1)), atol=1e-10)


@pytest.mark.parametrize("model", [REGRESSORS[0], REGRESSORS[2]], ids=shown)
def test_regressors_of_several_outputs(model, run):
    check_model(model.fit(X, np.stack([Y, X[:, 2]], axis=1)), X, run=run)


@pytest.mark.parametrize("model", [CLASSIFIERS[0], CLASSIFIERS[2]], ids=shown)
@pytest.mark.parametrize(
    "y", [np.stack([THREE, TWO], 1), np.stack([TWO, 1 - TWO], 1)], ids=["sizes", "labels"]
)
def test_classifiers_of_several_outputs(model, y, run):
    model = model.fit(X, y)
    check_model(model, X, run=run)
    graph = written(model)
    label, *found = run(graph.model, {"X": X})
    np.testing.assert_array_equal(label, model.predict(X))
    for ours, theirs in zip(found, model.predict_proba(X), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


@pytest.mark.parametrize("contamination", ["auto", 0.1])
@pytest.mark.parametrize("max_samples", ["auto", 1])
def test_isolation_forest(contamination, max_samples, run):
    model = IsolationForest(contamination=contamination, max_features=3, max_samples=max_samples, **FEW)
    if max_samples == 1:
        graph = written(model.fit(X))
        np.testing.assert_allclose(run(graph.model, {"X": X})[1].ravel(), model.decision_function(X))
        return
    check_model(model.fit(X), X, run=run)
    reason = {p.expression: p.reason for p in written(model).parameters.values()}["offset_"]
    assert bool(reason) == (contamination == "auto")


def test_names_and_constraints():
    leaves, simplex = "estimators_[*].tree_.value", "kept on the simplex"
    expected = {
        DecisionTreeRegressor(): {"tree_.value": None},
        RandomForestRegressor(2): {leaves: None},
        RandomForestClassifier(2): {leaves: simplex},
        DecisionTreeClassifier(): {"tree_.value": simplex},
        GradientBoostingRegressor(n_estimators=2): {
            "estimators_[*][0].tree_.value": None,
            "init_.constant_": None,
        },
        GradientBoostingClassifier(n_estimators=2): {
            "estimators_[*][*].tree_.value": None,
            "_raw_predict_init(X)": None,
        },
        HistGradientBoostingClassifier(max_iter=2): {
            "_predictors[*][*].nodes['value']": None,
            "_baseline_prediction": None,
        },
    }
    for model, names in expected.items():
        parameters = written(model.fit(X, THREE)).parameters
        found = {p.attribute: p.constraint and p.constraint.text for p in parameters.values()}
        assert found == names
        assert "leaf_values" in parameters


def test_missing_values_reach_the_leaves_of_scikit_learn(run):
    gaps = X.copy()
    gaps[RNG.uniform(size=X.shape) < 0.2] = np.nan
    new = np.where(RNG.uniform(size=X.shape) < 0.3, np.nan, RNG.normal(size=X.shape))
    for model in (RandomForestRegressor(**FEW), HistGradientBoostingRegressor(max_iter=4)):
        for seen in (X, gaps):
            model.fit(seen, Y + 3 * np.isnan(seen[:, 0]))
            for samples in (new, gaps):
                found = run(written(model).model, {"X": samples})[0].ravel()
                np.testing.assert_allclose(found, model.predict(samples), rtol=1e-12)


def test_samples_at_thresholds_in_float32(run):
    wide = RNG.normal(size=(3000, 2)).astype(np.float32)
    model = RandomForestRegressor(3, random_state=0).fit(wide, wide.sum(axis=1))
    tree = model.estimators_[0].tree_
    near = tree.threshold[tree.children_left >= 0].astype(np.float32)
    samples = np.stack(
        [np.concatenate([near, np.nextafter(near, s * np.float32(9))]) for s in (-1, 1)], axis=1
    )
    for dtype in (np.float32, np.float64):
        op = ModelWriter(dtype, {"X": TensorType(1 if dtype == np.float32 else 11, (None, 2))})
        nodes = Nodes.of_trees([member.tree_ for member in model.estimators_])
        numbers = leaf_numbers(op, nodes, "X", 2)
        found = run_numbers(op, numbers, samples.astype(dtype), run)
        starts = np.cumsum([0, *((member.tree_.children_left < 0).sum() for member in model.estimators_)])
        for column, member in enumerate(model.estimators_):
            rank = np.cumsum(member.tree_.children_left < 0) - 1
            np.testing.assert_array_equal(found[:, column], starts[column] + rank[member.apply(samples)])


def run_numbers(op, name, samples, run):
    inputs = [helper.make_tensor_value_info("X", helper.np_dtype_to_tensor_dtype(samples.dtype), [None, 2])]
    outputs = [helper.make_tensor_value_info(name, 7, [None, None])]
    graph = helper.make_graph(op.nodes, "numbers", inputs, outputs, op.initializers)
    return run(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), {"X": samples}
    )[0]


def test_trees_of_one_leaf(run):
    model = RandomForestRegressor(**FEW).fit(X, np.full(len(X), 2.0))
    np.testing.assert_allclose(run(written(model).model, {"X": X})[0], 2.0)


def test_a_forest_of_pure_leaves_is_trained_and_written_back():
    model = RandomForestClassifier(20, random_state=0).fit(X[::2], THREE[::2])
    assert set(np.unique(model.estimators_[0].tree_.value)) >= {0.0, 1.0}
    trained = OrtGradientOptimizer(model, warm_start=True, max_iter=5, learning_rate=0.01).fit(X, THREE)
    assert trained.train_losses_[-1] < trained.train_losses_[0]
    back = trained.to_sklearn()
    np.testing.assert_allclose(back.predict_proba(X), trained.predict_proba(X), atol=1e-6)
    for member in back.estimators_:
        leaves = member.tree_.value[member.tree_.children_left < 0]
        assert leaves.min() >= 0
        np.testing.assert_allclose(leaves.sum(axis=-1), 1, atol=1e-6)
    assert np.abs(back.predict_proba(X) - model.predict_proba(X)).max() > 1e-3


@pytest.mark.parametrize("rate", [1e-4, 1e-3, 1e-2, "Adam"])
def test_training_keeps_the_accuracy_at_any_learning_rate(rate):
    model = RandomForestClassifier(30, max_depth=2, random_state=0).fit(X[::2], THREE[::2])
    trained = OrtGradientOptimizer(model, warm_start=True, max_iter=5, learning_rate=rate, random_state=0)
    assert (trained.fit(X, THREE).predict(X) == THREE).mean() >= (model.predict(X) == THREE).mean() - 0.05


def test_single_class_has_no_parameters():
    model = RandomForestClassifier(2).fit(X, np.zeros(len(X)))
    assert all(p.reason for p in written(model).parameters.values())


def test_trees_of_an_ensemble_share_their_nodes(run):
    check_model(BaggingRegressor(max_features=0.6, **FEW).fit(X, Y), X, run=run)
    few, many = (written(BaggingRegressor(n_estimators=n).fit(X, X[:, 0] > 0)).model.graph for n in (5, 20))
    assert len(many.node) - len(few.node) < 15 * 5


@pytest.mark.parametrize(
    "model",
    [
        *(RandomForestRegressor(**FEW), HistGradientBoostingRegressor(max_iter=5)),
        *(RandomForestClassifier(**FEW), DecisionTreeRegressor(max_depth=4)),
    ],
    ids=str,
)
@pytest.mark.parametrize("sign", [1, -1])
def test_monotonic_constraints_are_kept(model, sign):
    """Leaves are trained on labels that change in the other direction, and projected."""
    y = X[:, 0] > 0 if isinstance(model, RandomForestClassifier) else X[:, 0]
    model = clone(model).set_params(monotonic_cst=[sign, *[0] * (X.shape[1] - 1)]).fit(X, y)
    moved = np.repeat(X[:40], 21, axis=0)
    moved[:, 0] = np.tile(np.linspace(-2, 2, 21), 40)
    labels = ~y if y.dtype == bool else -sign * y + X[:, 1]
    trained = OrtGradientOptimizer(model, random_state=0, keep_better=False, warm_start=True).fit(X, labels)
    for fitted in (trained, trained.to_sklearn()):
        found = fitted.predict_proba(moved)[:, 1] if y.dtype == bool else fitted.predict(moved)
        assert (sign * np.diff(found.reshape(40, 21), axis=1)).min() >= -1e-6
    assert y.dtype == bool or np.abs(trained.predict(X) - model.predict(X)).max() > 0.01


def test_members_keep_monotonic_constraints():
    options = {"monotonic_cst": [1, *[0] * (X.shape[1] - 1)]}
    bagging = BaggingRegressor(DecisionTreeRegressor(**options), **FEW)
    model = VotingRegressor([("a", bagging), ("b", RandomForestRegressor(**FEW, **options))])
    moved = np.repeat(X[:40], 21, axis=0)
    moved[:, 0] = np.tile(np.linspace(-2, 2, 21), 40)
    for fitted in (bagging, model):
        fitted.fit(X[:60], X[:60, 0])
        trained = OrtGradientOptimizer(fitted, random_state=0, keep_better=False, warm_start=True)
        found = trained.fit(X[60:], X[60:, 1] - X[60:, 0]).predict(moved)
        assert np.diff(found.reshape(40, 21), axis=1).min() >= -1e-6
