"""Trees for many samples, by tables of packed comparisons, give the sums of TreeEnsemble bit for bit."""

import numpy as np
import pytest
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from ortlearn.graphs import TensorType
from ortlearn.models import write_model
from ortlearn.models.fusion import fuse
from ortlearn.models.trees.packed import PackedTrees, by_levels, for_many

X = np.random.RandomState(0).normal(size=(800, 4)).round(1)  # many samples are equal to thresholds
MISSING = np.where(np.random.RandomState(1).uniform(size=X.shape) < 0.1, np.nan, X)
Y = X[:, 0] - X[:, 1] * X[:, 2] + 0.1 * X[:, 3]
THREE = np.digitize(Y, [-0.5, 0.5])
GRADIENT = {"n_estimators": 20, "random_state": 0}
HISTOGRAM = {"max_iter": 20, "random_state": 0}
HISTOGRAMS = HistGradientBoostingClassifier, HistGradientBoostingRegressor  # may compare float64


def written_model(model, dtype):
    elem_type = 1 if dtype == np.float32 else 11
    return write_model(model, {"X": TensorType(elem_type, (None, 4))}, np.float32, front_dtype=dtype)


def packed(written, n_threads=1):
    """Return the forms of a model for many samples, and those that are packed."""
    forms = for_many(written.fused, n_threads)
    return forms, [form for form in forms if isinstance(form, PackedTrees)]


def check_same(run, written, model, samples):
    """Check that a graph has the outputs of the operator, for several numbers of samples."""
    operator = fuse(written.model, written.fused)
    for part in (samples, samples[:5], samples[300:301]):
        for found, expected in zip(run(model, part), run(operator, part), strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "model, samples, y, keys",
    [
        (GradientBoostingRegressor(**GRADIENT), X, Y, 1),
        (GradientBoostingClassifier(max_depth=2, **GRADIENT), X, THREE > 0, 1),
        (GradientBoostingClassifier(**GRADIENT), X, THREE, 1),
        (GradientBoostingRegressor(max_leaf_nodes=20, max_depth=None, **GRADIENT), X, Y, 4),
        (HistGradientBoostingRegressor(min_samples_leaf=5, **HISTOGRAM), MISSING, Y, 6),
        (HistGradientBoostingClassifier(max_leaf_nodes=12, **HISTOGRAM), MISSING, THREE, 3),
        (HistGradientBoostingClassifier(max_depth=3, **HISTOGRAM), MISSING, THREE > 0, 1),
        (ExtraTreesRegressor(20, max_depth=3, random_state=0), MISSING, np.column_stack([Y, -Y]), 1),
        (RandomForestClassifier(20, max_depth=1, random_state=0), MISSING, THREE, 1),
    ],
    ids=[
        "depth 3",
        "stumps of two",
        "classes",
        "20 leaves",
        "histograms",
        "rounds",
        "small",
        "outputs",
        "shares",
    ],
)
def test_sums_are_those_of_the_operator(run_onnx, model, samples, y, keys, dtype):
    samples = samples.astype(dtype)
    written = written_model(model.fit(samples[:300], y[:300]), dtype)
    forms, found = packed(written)
    if keys > 1 and isinstance(model, HISTOGRAMS) and dtype == np.float64:
        assert found == []
        return
    (form,) = found
    assert form.keys == keys
    tables = fuse(written.model, forms)
    kinds = {node.op_type for node in tables.graph.node}
    assert "MatMulInteger" in kinds and "TreeEnsembleRegressor" not in kinds
    check_same(run_onnx, written, tables, samples)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "model, y",
    [
        (ExtraTreesRegressor(20, random_state=0), Y),
        (RandomForestRegressor(20, random_state=0), np.column_stack([Y, -Y])),
        (RandomForestClassifier(20, random_state=0), THREE),
        (HistGradientBoostingClassifier(max_leaf_nodes=80, min_samples_leaf=2, **HISTOGRAM), THREE),
    ],
    ids=["regressor", "outputs", "shares", "rounds"],
)
def test_levels_have_the_sums_of_the_operator(run_onnx, model, y, dtype):
    samples = MISSING.astype(dtype)
    written = written_model(model.fit(samples[:300], y[:300]), dtype)
    levels = fuse(written.model, by_levels(written.fused))
    assert "TreeEnsembleRegressor" not in {node.op_type for node in levels.graph.node}
    check_same(run_onnx, written, levels, samples)


@pytest.mark.parametrize(
    "model, n_threads",
    [
        (GradientBoostingRegressor(n_estimators=5), 1),
        (RandomForestRegressor(30), 1),
        (HistGradientBoostingRegressor(**HISTOGRAM), 2),
        (HistGradientBoostingRegressor(max_iter=30, min_samples_leaf=1000), 1),
    ],
    ids=["few trees", "many leaves", "two threads", "no splits"],
)
def test_other_trees_keep_the_operator(model, n_threads):
    written = written_model(model.fit(X[:300], Y[:300]), np.float64)
    assert packed(written, n_threads)[1] == []


def test_more_columns_than_tables_keep_the_operator(run_onnx):
    y = np.repeat(np.arange(10), 30)
    forest = RandomForestClassifier(20, max_depth=3, random_state=0).fit(X[:300], y)
    written = written_model(forest, np.float64)
    forms, (_,) = packed(written)
    model = fuse(written.model, forms)
    assert "TreeEnsembleRegressor" in {node.op_type for node in model.graph.node}
    _, shares = run_onnx(model, X)
    np.testing.assert_allclose(shares, forest.predict_proba(X), atol=1e-6)
