"""Samples reach the leaves that they reach in boosters, also after other steps."""

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler

from ortlearn.models.trees.nodes import FusedTrees
from ortlearn.preprocessing.column_reading import read_columns
from ortlearn.trainable.conversion import to_trainable

RNG = np.random.RandomState(0)
SAMPLES = np.round(RNG.normal(size=(500, 4)) * [1, 30, 0.1, 2], 2)
TARGET = SAMPLES @ [1, 0.1, 10, 0.5] + np.sin(3 * SAMPLES[:, 0])
BOOSTERS = {
    "lightgbm": ("LGBMRegressor", {"verbose": -1}, lambda model, X: model.predict(X, pred_leaf=True)),
    "xgboost": ("XGBRegressor", {"max_depth": 5}, lambda model, X: model.apply(X)),
    "catboost": ("CatBoostRegressor", {"verbose": 0, "allow_writing_files": False}, None),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("step", [None, StandardScaler(), QuantileTransformer(n_quantiles=50)], ids=repr)
@pytest.mark.parametrize("package", BOOSTERS)
def test_leaves(run_onnx, package, step, dtype):
    kind, options, apply = BOOSTERS[package]
    booster = getattr(pytest.importorskip(package), kind)(n_estimators=5, **options)
    if dtype == np.float32 and isinstance(step, QuantileTransformer):
        pytest.skip("it computes float32 samples in float64")
    X = SAMPLES.astype(dtype)
    model = booster if step is None else make_pipeline(step, booster)
    model.fit(X[:300], TARGET[:300])
    samples = X if step is None else model[0].transform(X)
    expected = booster.calc_leaf_indexes(samples) if apply is None else apply(booster, samples)
    found = to_trainable(model, X=X)
    (numbers,) = (form.numbers for form in found.fused if isinstance(form, FusedTrees))
    graph = ModelProto()
    graph.CopyFrom(found.model)
    graph.graph.output.append(helper.make_tensor_value_info(numbers, TensorProto.INT64, None))
    *_, reached = run_onnx(graph, **read_columns(X, found.entry.schema))
    for own, other in zip(reached.T, np.asarray(expected).T, strict=True):  # numbered in another order
        pairs = np.unique(np.stack([own, other]), axis=1)
        assert pairs.shape[1] == len(np.unique(own)) == len(np.unique(other))
