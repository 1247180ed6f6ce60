"""Histogram boosting with float64 thresholds routes samples as scikit-learn does."""

import warnings

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
    StackingRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import FidelityWarning

CANCER, DIABETES = load_breast_cancer(return_X_y=True), load_diabetes(return_X_y=True)

BACKENDS = ["rules", pytest.param("ort", marks=pytest.mark.needs_training)]


def trained(source, X, y, **arguments):
    arguments = {"learning_rate": 1e-12, "max_iter": 1, "warm_start": True, **arguments}
    return OrtGradientOptimizer(source, **arguments).fit(X, y)


def test_float64_after_scaling():
    X, y = CANCER
    fitted = make_pipeline(StandardScaler(), HistGradientBoostingClassifier(max_iter=3)).fit(X, y)
    model = trained(fitted, X, y, dtype="float64")
    np.testing.assert_allclose(model.predict_proba(X), fitted.predict_proba(X), atol=1e-6)
    X, y = DIABETES
    fitted = make_pipeline(StandardScaler(), HistGradientBoostingRegressor(max_iter=3)).fit(X, y)
    model = trained(fitted, X, y, dtype="float64")
    np.testing.assert_allclose(model.predict(X), fitted.predict(X), rtol=1e-6)


@pytest.mark.slow
def test_float64_with_other_members():
    X, y = DIABETES
    members = [
        ("a", HistGradientBoostingRegressor(max_iter=3)),
        ("b", RandomForestRegressor(3, random_state=0)),
    ]
    fitted = make_pipeline(StandardScaler(), StackingRegressor(members, cv=2)).fit(X, y)
    model = trained(fitted, X, y, dtype="float64")
    np.testing.assert_allclose(model.predict(X), fitted.predict(X), rtol=1e-6)


@pytest.mark.slow
def test_default_type_without_scaling():
    # With more than 255 distinct values per column, thresholds are values of samples.
    X, y = CANCER
    fitted = HistGradientBoostingClassifier(max_iter=5).fit(X, y)
    np.testing.assert_allclose(trained(fitted, X, y).predict_proba(X), fitted.predict_proba(X), atol=1e-5)
    X, y = DIABETES
    fitted = HistGradientBoostingRegressor(max_iter=5).fit(X, y)
    np.testing.assert_allclose(trained(fitted, X, y).predict(X), fitted.predict(X), rtol=1e-5)


def test_default_type_after_scaling():
    X, y = CANCER
    fitted = make_pipeline(StandardScaler(), HistGradientBoostingClassifier(max_iter=5)).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FidelityWarning)
        model = trained(fitted, X, y)
    np.testing.assert_allclose(model.predict_proba(X), fitted.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("gradient", BACKENDS)
def test_files_with_float64_thresholds(gradient):
    """The samples on both sides of the split at 1 + 1e-12 are equal in float32."""
    node = helper.make_node(
        "TreeEnsembleRegressor",
        ["X"],
        ["raw"],
        domain="ai.onnx.ml",
        n_targets=1,
        nodes_treeids=[0, 0, 0],
        nodes_nodeids=[0, 1, 2],
        nodes_featureids=[0, 0, 0],
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_truenodeids=[1, 0, 0],
        nodes_falsenodeids=[2, 0, 0],
        nodes_missing_value_tracks_true=[0, 0, 0],
        nodes_values_as_tensor=numpy_helper.from_array(np.array([1 + 1e-12, 0.0, 0.0])),
        target_treeids=[0, 0],
        target_nodeids=[1, 2],
        target_ids=[0, 0],
        target_weights_as_tensor=numpy_helper.from_array(np.array([-1.5, 2.5])),
    )
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("X", TensorProto.DOUBLE, [None, 1])],
        [helper.make_tensor_value_info("raw", TensorProto.FLOAT, [None, 1])],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    source = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    X, y = np.array([[1.0], [1 + 2e-12], [1.0], [1 + 2e-12]]), np.array([1.0, 2.0, 1.0, 2.0])
    model = trained(source, X, y, gradient=gradient)
    np.testing.assert_allclose(model.predict(X).ravel(), [-1.5, 2.5, -1.5, 2.5])
    model = trained(source, X, y, gradient=gradient, learning_rate=0.5, max_iter=200, random_state=0)
    np.testing.assert_allclose(model.predict(X).ravel(), y, atol=1e-3)
