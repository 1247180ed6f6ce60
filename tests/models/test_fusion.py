"""Fused operators compute the same as the nodes they replace, and as scikit-learn."""

import cProfile
import pstats
from dataclasses import replace

import numpy as np
import pytest
from onnx import NodeProto, checker, helper, numpy_helper
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingClassifier,
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
    RandomTreesEmbedding,
    VotingRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.multiclass import OneVsOneClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeRegressor

from ortlearn.graphs import TensorType, initializer_arrays
from ortlearn.models import write_model
from ortlearn.models.fusion import add_array, fuse
from ortlearn.models.trees.nodes import MAX_LEAVES, FusedTrees

SAMPLES, Y = make_regression(150, 5, n_targets=2, noise=5.0, random_state=0)
SAMPLES = SAMPLES.astype(np.float32)
X, THREE = make_classification(150, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
X = X.astype(np.float32)
TWO = (THREE > 0).astype(int)
TEXTS = np.array(["low", "middle", "top"])
FEW = {"n_estimators": 7, "random_state": 0}
#: The operator of a fused tree model.
TREES = "TreeEnsembleRegressor"


def graphs(model, dtype=np.float32, n_features=5):
    """Return the graphs of a model for training and for inference."""
    elem_type = 1 if dtype == np.float32 else 11
    written = write_model(model, {"X": TensorType(elem_type, (None, n_features))}, dtype)
    return written.model, fuse(written.model, written.fused)


def operators(model):
    return [node.op_type for node in model.graph.node]


def check_same(model, samples, run, dtype=np.float32, atol=1e-5, wanted=TREES):
    """Check that both graphs of a model have equal outputs, and return those of the fused one."""
    plain, fused = graphs(model, dtype, samples.shape[1])
    checker.check_model(fused, full_check=True)
    assert wanted not in operators(plain) and wanted in operators(fused)
    assert "LessOrEqual" not in operators(fused) and len(fused.graph.node) < len(plain.graph.node)
    for part in ("input", "output"):
        own, other = (list(getattr(graph.graph, part)) for graph in (plain, fused))
        assert own == other  # names, types and shapes
    found, expected = run(fused, samples.astype(dtype)), run(plain, samples.astype(dtype))
    for one, other in zip(found, expected, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        if one.dtype.kind == "f":
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=atol)
        else:
            assert one.tolist() == other.tolist()
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeRegressor(random_state=0),
        ExtraTreeRegressor(max_depth=3, random_state=0),
        RandomForestRegressor(**FEW),
        ExtraTreesRegressor(max_depth=4, **FEW),
        GradientBoostingRegressor(**FEW),
        GradientBoostingRegressor(init=Ridge(), **FEW),
        GradientBoostingRegressor(init="zero", **FEW),
        HistGradientBoostingRegressor(max_iter=7),
        AdaBoostRegressor(**FEW),
        VotingRegressor(
            [("tree", DecisionTreeRegressor(max_depth=3)), ("forest", RandomForestRegressor(**FEW))]
        ),
    ],
    ids=lambda model: f"{type(model).__name__}-{getattr(model, 'init', None)}",
)
def test_regressors(run_onnx, model, dtype):
    model.fit(SAMPLES, Y[:, 0])
    (found,) = check_same(model, SAMPLES, run_onnx, dtype, atol=1e-3)
    expected = model.predict(SAMPLES)
    # scikit-learn passes float32 to init
    is_exact = dtype == np.float64 and not isinstance(getattr(model, "init", None), Ridge)
    np.testing.assert_allclose(found.ravel(), expected, atol=(1e-9 if is_exact else 1e-5) * 500)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("y", [TWO, THREE, TEXTS[THREE]], ids=["two", "three", "text"])
@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(max_depth=4, random_state=0),
        RandomForestClassifier(**FEW),
        RandomForestClassifier(max_depth=3, **FEW),
        ExtraTreesClassifier(max_depth=3, **FEW),
        GradientBoostingClassifier(**FEW),
        HistGradientBoostingClassifier(max_iter=5),
        BaggingClassifier(DecisionTreeClassifier(max_depth=3), max_features=0.6, **FEW),
    ],
    ids=lambda model: f"{type(model).__name__}-{getattr(model, 'max_depth', None)}",
)
def test_classifiers(run_onnx, model, y, dtype):
    model.fit(X, y)
    label, shares = check_same(model, X, run_onnx, dtype)
    assert label.tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(shares, model.predict_proba(X), atol=1e-5 if dtype == np.float32 else 1e-9)


@pytest.mark.parametrize("max_features", [1.0, 0.6])
@pytest.mark.parametrize(
    "model, y",
    [
        (BaggingRegressor(**FEW), Y[:, 0]),
        (BaggingRegressor(ExtraTreeRegressor(max_depth=3), **FEW), Y),
        (BaggingClassifier(**FEW), TEXTS[THREE]),
        (BaggingClassifier(DecisionTreeClassifier(max_depth=2), **FEW), TWO),
        (VotingRegressor([(name, DecisionTreeRegressor(max_depth=3)) for name in "ab"]), Y[:, 0]),
    ],
    ids=lambda value: getattr(type(value), "__name__", "") if hasattr(value, "fit") else "",
)
def test_members_that_are_trees_are_one_operator(run_onnx, model, y, max_features):
    if isinstance(model, BaggingRegressor | BaggingClassifier):
        model.set_params(max_features=max_features)
    found, expected = check_same(model.fit(X, y), X, run_onnx, atol=1e-3), [model.predict(X)]
    if hasattr(model, "classes_"):
        expected.append(model.predict_proba(X))
        np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_allclose(found[-1].reshape(expected[-1].shape), expected[-1], rtol=1e-6, atol=1e-4)
    fused = graphs(model)[1]
    assert operators(fused).count(TREES) == 1 and "Sum" not in operators(fused)
    forest = RandomForestClassifier if hasattr(model, "classes_") else RandomForestRegressor
    assert len(fused.graph.node) <= len(graphs(forest(**FEW).fit(X, y))[1].graph.node) + 1


def test_members_that_lack_a_class(run_onnx):
    model, known = BaggingClassifier(**FEW).fit(X, TEXTS[THREE]), THREE > 0
    model.estimators_[1] = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X[known], THREE[known])
    label, shares = check_same(model, X, run_onnx)
    assert label.tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(shares, model.predict_proba(X), atol=1e-6)


def test_ties_of_votes(run_onnx):
    """Trees of pure leaves whose votes are equal: the first class wins, as in scikit-learn."""
    model = RandomForestClassifier(n_estimators=6, max_features=1, random_state=0).fit(X[:40], THREE[:40])
    shares = np.sort(np.round(model.predict_proba(X), 12), axis=1)
    assert (shares[:, -1] == shares[:, -2]).sum() > 5
    label, _ = check_same(model, X, run_onnx)
    assert label.tolist() == model.predict(X).tolist()


def test_samples_at_thresholds(run_onnx):
    """Samples at a threshold, and next to it on both sides, reach the leaves of scikit-learn."""
    model = RandomForestRegressor(max_depth=5, **FEW).fit(SAMPLES, Y[:, 0])
    trees = [member.tree_ for member in model.estimators_]
    pairs = [(f, t) for tree in trees for f, t in zip(tree.feature, tree.threshold, strict=True) if f >= 0]
    samples = np.repeat(SAMPLES[:1], 3 * len(pairs), axis=0)
    for i, (feature, threshold) in enumerate(pairs):
        near = np.float32(threshold)
        around = near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))
        samples[3 * i : 3 * i + 3, feature] = around
    (found,) = check_same(model, samples, run_onnx, atol=1e-3)
    np.testing.assert_allclose(found.ravel(), model.predict(samples), rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_missing_values_follow_the_default_of_each_split(run_onnx, dtype):
    samples = np.where(
        np.random.default_rng(0).uniform(size=SAMPLES.shape) < 0.2, np.float32(np.nan), SAMPLES
    )
    for model in (
        DecisionTreeRegressor(max_depth=5, random_state=0),
        RandomForestRegressor(**FEW),
        HistGradientBoostingRegressor(max_iter=6, min_samples_leaf=5),
    ):
        (found,) = check_same(model.fit(samples, Y[:, 0]), samples, run_onnx, dtype, atol=1e-3)
        np.testing.assert_allclose(found.ravel(), model.predict(samples), rtol=1e-5, atol=1e-2)


def test_splits_on_categories(run_onnx):
    rng = np.random.default_rng(0)
    samples = np.column_stack([rng.normal(size=200), rng.integers(0, 5, 200)]).astype(np.float32)
    y = np.array([3.0, -2.0, 5.0, 0.0, 1.0])[samples[:, 1].astype(int)] * samples[:, 0]
    model = HistGradientBoostingRegressor(max_iter=8, categorical_features=[1]).fit(samples, y)
    (found,) = check_same(model, samples, run_onnx)
    np.testing.assert_allclose(found.ravel(), model.predict(samples), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_several_outputs(run_onnx, dtype):
    model = RandomForestRegressor(max_depth=4, **FEW).fit(SAMPLES, Y)
    (found,) = check_same(model, SAMPLES, run_onnx, dtype, atol=1e-3)
    np.testing.assert_allclose(found, model.predict(SAMPLES), rtol=1e-5, atol=1e-3)
    model = ExtraTreesClassifier(max_depth=4, **FEW).fit(X, np.stack([THREE, TWO], axis=1))
    label, *shares = check_same(model, X, run_onnx, dtype)
    assert label.tolist() == model.predict(X).tolist()
    for own, expected in zip(shares, model.predict_proba(X), strict=True):
        np.testing.assert_allclose(own, expected, atol=1e-6)


def test_outliers_and_embeddings(run_onnx):
    model = IsolationForest(max_features=0.6, contamination=0.2, **FEW).fit(SAMPLES)
    label, decision = check_same(model, SAMPLES, run_onnx)
    assert label.ravel().tolist() == model.predict(SAMPLES).tolist()
    np.testing.assert_allclose(decision.ravel(), model.decision_function(SAMPLES), atol=1e-6)
    model = RandomTreesEmbedding(n_estimators=4, max_depth=3, random_state=0).fit(SAMPLES)
    (found,) = check_same(model, SAMPLES, run_onnx)
    np.testing.assert_array_equal(found, model.transform(SAMPLES).toarray())


def test_trees_of_a_single_leaf(run_onnx):
    model = GradientBoostingRegressor(n_estimators=3, min_samples_leaf=150, random_state=0).fit(
        SAMPLES, Y[:, 0]
    )
    assert all(tree.tree_.node_count == 1 for tree in model.estimators_.ravel())
    (found,) = check_same(model, SAMPLES, run_onnx)
    np.testing.assert_allclose(found.ravel(), model.predict(SAMPLES), rtol=1e-5)


def test_more_leaves_than_float32_has_integers_are_not_fused():
    model = RandomForestRegressor(max_depth=4, **FEW).fit(SAMPLES, Y[:, 0])
    written = write_model(model, {"X": TensorType(11, (None, 5))}, np.float64)
    (trees,) = (form for form in written.fused if isinstance(form, FusedTrees))
    assert TREES in operators(fuse(written.model, [trees]))
    many = replace(trees, nodes=replace(trees.nodes, is_leaf=np.ones(MAX_LEAVES + 1, dtype=bool)))
    assert TREES not in operators(fuse(written.model, [many]))


@pytest.mark.parametrize(
    "values",
    [
        np.array([0, 1, 127, 128, 2**14 - 1, 2**14, 2**21, 2**28 - 1]),
        np.array([0, 1, 127]),
        np.array([0, 127, 128, 2**14 - 1]),
        np.array([3, -1]),
        np.array([2**28, 2**62]),
        np.array([], dtype=np.int64),
        np.array([True, False]),
        np.array([1.5, -2.0, np.inf, np.nan, 1e-45], dtype=np.float32),
        np.array([b"LEAF", b"BRANCH_LEQ"]),
    ],
    ids=["packed", "one byte", "two bytes", "negative", "large", "empty", "bool", "floats", "strings"],
)
def test_arrays_become_equal_attributes(values):
    node = NodeProto(op_type="TreeEnsembleRegressor")
    add_array(node, "values", values)
    found = NodeProto.FromString(node.SerializeToString()).attribute[0]
    assert found.name == "values"
    np.testing.assert_array_equal(helper.get_attribute_value(found), values)


def test_linear_regressors(run_onnx):
    for model, y in ((Ridge(), Y[:, 0]), (LinearRegression(fit_intercept=False), Y)):
        (found,) = check_same(model.fit(SAMPLES, y), SAMPLES, run_onnx, wanted="LinearRegressor", atol=1e-3)
        np.testing.assert_allclose(found.reshape(y.shape), model.predict(SAMPLES), rtol=1e-4, atol=1e-2)
        plain, fused = graphs(model, np.float64)
        assert operators(fused) == [kind for kind in operators(plain) if kind != "Identity"]


@pytest.mark.parametrize(
    "y", [TWO, THREE, TEXTS[TWO], TEXTS[THREE]], ids=["two", "three", "texts", "more texts"]
)
@pytest.mark.parametrize("scaled", [False, True])
def test_linear_classifiers(run_onnx, y, scaled):
    model = LogisticRegression()
    model = (make_pipeline(StandardScaler(), model) if scaled else model).fit(X, y)
    assert operators(graphs(model)[1]) == ["Sub"] * scaled + ["LinearClassifier"]
    label, shares = check_same(model, X, run_onnx, wanted="LinearClassifier")
    assert label.tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(shares, model.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC])
def test_a_score_of_zero_predicts_the_first_class(run_onnx, kind):
    model = kind(fit_intercept=False).fit(X, TEXTS[TWO])
    samples = np.concatenate([X, np.zeros((1, 5), dtype=np.float32)])
    label = check_same(model, samples, run_onnx, wanted="LinearClassifier")[0]
    assert label.tolist() == model.predict(samples).tolist() and label[-1] == "low"


def test_a_score_of_zero_of_boosting_predicts_the_second_class(run_onnx):
    samples, y = np.zeros((10, 1), dtype=np.float32), np.array(["a", "b"] * 5)
    model = GradientBoostingClassifier(init="zero", n_estimators=2).fit(samples, y)
    assert not model.decision_function(samples).any()
    label, _ = check_same(model, samples, run_onnx)
    assert label.tolist() == model.predict(samples).tolist() == ["b"] * 10


def test_scores_with_two_consumers(run_onnx):
    model = OneVsOneClassifier(LogisticRegression()).fit(X, THREE)
    _, fused = graphs(model)
    assert operators(fused).count("LinearRegressor") == operators(fused).count("LinearClassifier") == 3
    label, scores = check_same(model, X, run_onnx, wanted="LinearRegressor")
    assert label.tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(scores, model.decision_function(X), atol=1e-4)


def test_cost_is_linear_in_the_number_of_members():
    def calls(n_classes):
        y = np.arange(len(X)) % n_classes
        written = write_model(
            OneVsOneClassifier(RidgeClassifier()).fit(X, y), {"X": TensorType(1, (None, 5))}
        )
        profile = cProfile.Profile()
        profile.runcall(fuse, written.model, written.fused)
        return pstats.Stats(profile).total_calls

    assert calls(8) < 6 * calls(4)  # 28 members instead of 6


def test_classes_of_a_network(run_onnx):
    model = MLPClassifier(hidden_layer_sizes=(6,), tol=1.0, random_state=0).fit(X, TEXTS[TWO])
    assert operators(graphs(model)[1])[-2:] == ["Add", "LinearClassifier"]
    label, shares = check_same(model, X, run_onnx, wanted="LinearClassifier")
    assert label.tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(shares, model.predict_proba(X), atol=1e-5)


def test_scales_are_fused_unless_coefficients_overflow(run_onnx):
    model = make_pipeline(StandardScaler(), Ridge()).fit(SAMPLES, Y[:, 0])
    assert operators(graphs(model)[1]) == ["Sub", "LinearRegressor"]
    (found,) = check_same(model, SAMPLES, run_onnx, wanted="LinearRegressor", atol=1e-3)
    np.testing.assert_allclose(found.ravel(), model.predict(SAMPLES), rtol=1e-4, atol=1e-3)
    model[0].scale_ = model[0].scale_ * 1e36
    model[1].coef_ = model[1].coef_ * 1e-6
    assert operators(graphs(model)[1]) == ["Sub", "Div", "MatMul", "Add"]


def test_fusion_uses_the_values_in_the_graph():
    model = Ridge().fit(SAMPLES, Y[:, 0])
    written = write_model(model, {"X": TensorType(1, (None, 5))})
    for tensor in written.model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        tensor.CopyFrom(numpy_helper.from_array(np.full_like(array, 2.5), tensor.name))
    fused = fuse(written.model, written.fused)
    (attributes,) = ({a.name: list(a.floats) for a in node.attribute} for node in fused.graph.node)
    assert attributes["coefficients"] == [2.5] * 5 and attributes["intercepts"] == [2.5]
    assert not initializer_arrays(fused)
