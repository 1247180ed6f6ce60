"""Samples reach the leaves that they reach in scikit-learn, also those at thresholds or next to them."""

import copy

import numpy as np
import pandas as pd
import pytest
import sklearn
from onnx import ModelProto, TensorProto, helper
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestRegressor,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from ortlearn.models.trees.nodes import FusedTrees
from ortlearn.models.trees.thresholds import rounded_down
from ortlearn.preprocessing.column_reading import read_columns
from ortlearn.trainable.conversion import to_trainable

RNG = np.random.RandomState(0)
# few digits, so that many samples are equal to thresholds of histograms, or midway between two others
SAMPLES = np.round(RNG.normal(size=(400, 4)) * [1, 30, 0.1, 2], 2)
SAMPLES[:, 3] = np.round(SAMPLES[:, 3])
TARGET = SAMPLES @ [1, 0.1, 10, 0.5] + np.sin(3 * SAMPLES[:, 0])
FEW = {"n_estimators": 4, "random_state": 0}
HISTOGRAMS = HistGradientBoostingRegressor(max_iter=4, min_samples_leaf=5)
TREES = [
    RandomForestRegressor(**FEW),
    ExtraTreesRegressor(**FEW),
    GradientBoostingRegressor(max_depth=4, **FEW),
    HISTOGRAMS,
]
BINS = {"encode": "ordinal", "strategy": "uniform"}
COLUMNS = make_column_transformer(
    (make_pipeline(SimpleImputer(), StandardScaler()), [0, 1]),
    (OneHotEncoder(handle_unknown="ignore", sparse_output=False), [3]),
    remainder="passthrough",
)
STEPS = [
    StandardScaler(),
    MinMaxScaler(),
    MaxAbsScaler(),
    SimpleImputer(),
    PolynomialFeatures(2),
    KBinsDiscretizer(9, **BINS),
    COLUMNS,
]
FLOAT64_STEPS = [RobustScaler(), QuantileTransformer(n_quantiles=50)]  # they compute float32 X in both types
TYPES = [np.float32, np.float64]
CASES = [(step, dtype) for step in STEPS for dtype in TYPES]
if tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8):  # so did StandardScaler
    CASES = [case for case in CASES if case[0] not in (STEPS[0], COLUMNS) or case[1] is np.float64]
CASES += [(step, np.float64) for step in FLOAT64_STEPS]


def named(parts):
    return [(str(number), part) for number, part in enumerate(parts)]


def name_of(value):
    return getattr(value, "__name__", None) or type(value).__name__


def leaves_of(model, X):
    """Return the leaves that samples reach in a fitted model, numbered through all trees, tree by tree."""
    if hasattr(model, "booster_"):
        counts = [tree["num_leaves"] for tree in model.booster_.dump_model()["tree_info"]]
        return model.predict(X, pred_leaf=True) + np.cumsum([0, *counts[:-1]])
    columns, first = [], 0
    for tree in model._predictors if hasattr(model, "_predictors") else np.ravel(model.estimators_):
        if isinstance(tree, list):  # of histogram boosting: the number of the leaf is predicted
            numbered = copy.deepcopy(tree[0])
            is_leaf = numbered.nodes["is_leaf"] != 0
            numbered.nodes["value"][is_leaf] = np.arange(is_leaf.sum())
            known = model._bin_mapper.make_known_categories_bitsets()
            columns.append(numbered.predict(np.ascontiguousarray(X, dtype=np.float64), *known, 1) + first)
        else:
            is_leaf = tree.tree_.children_left < 0
            columns.append(np.cumsum(is_leaf)[tree.apply(X)] - 1 + first)
        first += is_leaf.sum()
    return np.stack(columns, axis=1).astype(np.int64)


def graphs_of(model, X):
    """Return the trainable graph of a model with the leaves of its ensembles as outputs, and its inputs."""
    found = to_trainable(model, X=X)
    forms = [form for form in found.fused if isinstance(form, FusedTrees)]
    plain = ModelProto()
    plain.CopyFrom(found.model)
    for form in forms:
        plain.graph.output.append(helper.make_tensor_value_info(form.numbers, TensorProto.INT64, None))
    return plain, [form.numbers for form in forms], found


def check_routes(run_onnx, model, members, X, inputs=None):
    """Check the leaves of all ensembles of a model, and that the fused graph predicts the same."""
    plain, numbers, found = graphs_of(model, X)
    feeds = read_columns(X, found.entry.schema)
    outputs = dict(zip([o.name for o in plain.graph.output], run_onnx(plain, **feeds), strict=True))
    inputs = inputs or [X] * len(members)
    assert len(numbers) == len(members)
    for name, member, samples in zip(numbers, members, inputs, strict=True):
        expected = leaves_of(member, samples)
        wrong = np.flatnonzero((outputs[name] != expected).any(axis=1))
        assert not len(wrong), (type(member).__name__, len(wrong))
    fused = found.with_weights(found.initial_weights())
    assert any(node.op_type.startswith("TreeEnsemble") for node in fused.graph.node)
    (predicted,) = run_onnx(fused, **feeds)
    np.testing.assert_allclose(predicted.ravel(), outputs["variable"].ravel(), rtol=1e-5, atol=1e-5)
    return found


def beside_thresholds(thresholds, X):
    """Return samples with each threshold as the value of its column, and its two neighbours of the type."""
    samples = [X[:50]]
    for column, values in thresholds.items():
        at = np.unique(values).astype(X.dtype)
        for value in (at, np.nextafter(at, X.dtype.type(np.inf)), np.nextafter(at, X.dtype.type(-np.inf))):
            own = np.repeat(X[:1], len(value), axis=0)
            own[:, column] = value
            samples.append(own)
    return np.concatenate(samples)


def thresholds_of(model):
    """Return the thresholds of a fitted ensemble by column."""
    if hasattr(model, "_predictors"):
        nodes = np.concatenate([tree.nodes for (tree,) in model._predictors])
        pairs = nodes["feature_idx"], nodes["num_threshold"], nodes["is_leaf"] == 0
    elif hasattr(model, "booster_"):
        frame = model.booster_.trees_to_dataframe().dropna(subset="threshold")
        columns = frame.split_feature.str.removeprefix("Column_").astype(int)
        pairs = columns.to_numpy(), frame.threshold.to_numpy(), np.ones(len(frame), bool)
    else:
        trees = [tree.tree_ for tree in np.ravel(model.estimators_)]
        found = (np.concatenate([getattr(tree, name) for tree in trees]) for name in ("feature", "threshold"))
        feature, threshold = found
        pairs = feature, threshold, feature >= 0
    feature, threshold, is_split = pairs
    return {column: threshold[is_split & (feature == column)] for column in np.unique(feature[is_split])}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("estimator", [*TREES, IsolationForest(n_estimators=4, random_state=0)], ids=name_of)
def test_samples_at_thresholds_and_next_to_them(run_onnx, estimator, dtype):
    X = SAMPLES.astype(dtype)
    fitted = copy.deepcopy(estimator).fit(X, TARGET)
    samples = beside_thresholds(thresholds_of(fitted), X)
    plain, (numbers,), found = graphs_of(fitted, samples)
    outputs = run_onnx(plain, **read_columns(samples, found.entry.schema))
    reached = dict(zip([output.name for output in plain.graph.output], outputs, strict=True))[numbers]
    np.testing.assert_array_equal(reached, leaves_of(fitted, samples))


@pytest.mark.sweep(7)
@pytest.mark.parametrize("step, dtype", CASES, ids=name_of)
def test_trees_after_a_step(run_onnx, step, dtype):
    X = SAMPLES.astype(dtype)
    model = make_pipeline(copy.deepcopy(step), VotingRegressor(named(TREES))).fit(X[:300], TARGET[:300])
    transformed = model[0].transform(X)
    members = model[-1].estimators_
    found = check_routes(run_onnx, model, members, X, [transformed] * len(members))
    assert found.entry.schema.float_dtype == dtype
    assert {array.dtype for array in found.initial_weights().values()} == {np.dtype(np.float32)}


def test_trees_after_a_projection(run_onnx):
    # thresholds of histograms are projected samples, which depend on the order of sums
    model = make_pipeline(PCA(3), VotingRegressor(named(TREES[:3]))).fit(SAMPLES[:300], TARGET[:300])
    members = model[-1].estimators_
    check_routes(run_onnx, model, members, SAMPLES, [model[0].transform(SAMPLES)] * len(members))


def test_pipelines_in_stacks_beside_other_members(run_onnx):
    steps = [StandardScaler(), MinMaxScaler()]
    pipelines = [make_pipeline(*pair) for pair in zip(steps, copy.deepcopy(TREES[2:]), strict=True)]
    frozen = FrozenEstimator(make_pipeline(RobustScaler(), RandomForestRegressor(**FEW)).fit(SAMPLES, TARGET))
    members = [*pipelines, frozen, make_pipeline(StandardScaler(), LinearRegression())]
    model = StackingRegressor(named(members), LinearRegression(), passthrough=True, cv=2).fit(SAMPLES, TARGET)
    parts = [getattr(member, "estimator", member) for member in model.estimators_[:3]]
    inputs = [part[0].transform(SAMPLES) for part in parts]
    check_routes(run_onnx, model, [part[-1] for part in parts], SAMPLES, inputs)


def test_frames_with_text(run_onnx):
    frame = pd.DataFrame(SAMPLES[:, :3], columns=["a", "b", "c"]).assign(kind=np.where(TARGET > 0, "x", "y"))
    columns = make_column_transformer(
        (StandardScaler(), ["a", "b"]),
        (OneHotEncoder(sparse_output=False), ["kind"]),
        remainder="passthrough",
    )
    model = make_pipeline(columns, VotingRegressor(named(TREES))).fit(frame, TARGET)
    members = model[-1].estimators_
    check_routes(run_onnx, model, members, frame, [columns.fit_transform(frame)] * len(members))


def test_rounded_thresholds():
    values = np.concatenate([RNG.normal(size=300), [0.1, 1 + 1e-12, 16777217.0, np.inf, 1e308]])
    rounded = rounded_down(values)
    assert (rounded <= values).all()
    with np.errstate(over="ignore"):
        assert (np.nextafter(rounded, np.float32(np.inf)) > values)[:-2].all()
