"""Trained estimators are exported with fused operators, and exports can be trained."""

import numpy as np
import pytest
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn import OrtGradientOptimizer
from ortlearn.graphs import initializer_arrays
from ortlearn.saving import load, save

X = np.random.RandomState(0).normal(size=(120, 4)).astype(np.float32)
Y = X[:, 0] - X[:, 1] * X[:, 2]
TWO = np.where(Y > 0, "high", "low")
FEW = {"n_estimators": 6, "max_depth": 4, "random_state": 0}
MODELS = [
    (Ridge(), Y, "LinearRegressor"),
    (LogisticRegression(), TWO, "LinearClassifier"),
    (make_pipeline(StandardScaler(), LogisticRegression()), TWO, "LinearClassifier"),
    (MLPClassifier(hidden_layer_sizes=(5,), max_iter=20, tol=1.0, random_state=0), TWO, "LinearClassifier"),
    (RandomForestRegressor(**FEW), Y, "TreeEnsembleRegressor"),
    (RandomForestClassifier(**FEW), TWO, "TreeEnsembleRegressor"),
    (GradientBoostingClassifier(**FEW), TWO, "TreeEnsembleRegressor"),
    (BaggingRegressor(max_features=0.7, n_estimators=6, random_state=0), Y, "TreeEnsembleRegressor"),
    (BaggingClassifier(max_samples=0.5, n_estimators=6, random_state=0), TWO, "TreeEnsembleRegressor"),
]
parametrize = pytest.mark.parametrize(
    "model, y, operator", MODELS, ids=lambda value: type(value).__name__ if hasattr(value, "fit") else ""
)


def trained(model, y, **options):
    options = {"max_iter": 4, "learning_rate": 0.05, "warm_start": True, "random_state": 0, **options}
    return OrtGradientOptimizer(model.fit(X, y), **options).fit(X, y)


def operators(model):
    return {node.op_type for node in model.graph.node}


@parametrize
def test_both_forms_predict_like_the_estimator(model, y, operator, run_onnx):
    ours = trained(model, y)
    fused, plain = ours.get_trained_onnx(), ours.get_trained_onnx(fused=False)
    assert operator in operators(fused) and operator not in operators(plain)
    assert ours.onnx_ == fused
    weights = initializer_arrays(plain)
    for name, array in ours.trained_coef_.items():
        np.testing.assert_array_equal(weights[name], array)
    expected = ours.predict(X)
    for form, tolerance in ((fused, 0), (plain, 1e-5)):
        found = np.ravel(next(iter(run_onnx(form, X).values())))
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
        else:
            assert found.tolist() == expected.tolist()
    assert np.any(ours.to_sklearn().predict(X) == expected) or expected.dtype.kind == "f"


@parametrize
def test_training_of_a_file_with_fused_operators(model, y, operator, run_onnx):
    ours = trained(model, y)
    again = OrtGradientOptimizer(
        ours.get_trained_onnx(), max_iter=3, learning_rate=1e-3, warm_start=True, random_state=0
    ).fit(X, y)
    sizes, own = (sorted(array.size for array in trainer.trained_coef_.values()) for trainer in (again, ours))
    if isinstance(model, GradientBoostingClassifier):
        own.remove(1)  # base values of two classes are added to their score
    assert sizes in (own, [sum(own)])  # bagging has a table for each tree
    shown = again.predict_proba(X) if hasattr(ours, "classes_") else again.predict(X)
    before = ours.predict_proba(X) if hasattr(ours, "classes_") else ours.predict(X)
    np.testing.assert_allclose(shown, before, atol=0.1)


def test_zipmap_of_both_forms():
    ours = trained(LogisticRegression(), TWO)
    for fused in (True, False):
        model = ours.get_trained_onnx(zipmap=True, fused=fused)
        assert [value.name for value in model.graph.output] == ["output_label", "output_probability"]
        assert ("LinearClassifier" in operators(model)) is fused


@parametrize
def test_saved_estimators_predict_with_the_same_operators(model, y, operator, tmp_path):
    ours = trained(model, y)
    save(ours, tmp_path / "saved.zip")
    loaded = load(tmp_path / "saved.zip", trusted=["sklearn.tree._tree.Tree"])
    assert loaded.get_trained_onnx() == ours.get_trained_onnx()
    np.testing.assert_array_equal(loaded.predict(X), ours.predict(X))


def test_new_weights_are_in_the_operator():
    ours = trained(RandomForestRegressor(**FEW), Y)
    ours.set_weights({"leaf_values": np.full_like(ours.trained_coef_["leaf_values"], 0.5)})
    np.testing.assert_allclose(ours.predict(X), 3.0, rtol=1e-6)  # six trees
    (node,) = (node for node in ours.onnx_.graph.node if node.op_type == "TreeEnsembleRegressor")
    (weights,) = (attribute.floats for attribute in node.attribute if attribute.name == "target_weights")
    assert set(weights) == {0.5}


@pytest.mark.parametrize(
    "model, y, operator",
    [
        (GradientBoostingClassifier(n_estimators=20, random_state=0), TWO, "MatMulInteger"),
        (RandomForestRegressor(60, random_state=0), Y, "TopK"),
        (BaggingRegressor(n_estimators=60, random_state=0), Y, "TopK"),
        (RandomForestRegressor(**FEW), Y, "TreeEnsembleRegressor"),
        (Ridge(), Y, "LinearRegressor"),
    ],
    ids=["tables", "order", "order of bagging", "few trees", "linear"],
)
def test_exports_for_many_samples_predict_the_same(model, y, operator, run_onnx):
    ours = trained(model, y, max_iter=1)
    many, usual = ours.get_trained_onnx(fused="many"), ours.get_trained_onnx()
    assert operator in operators(many) and (many == usual) is (operator in operators(usual))
    samples = np.vstack([X, X[::-1] + 0.01]).astype(np.float32)
    for part in (samples, samples[:1]):
        for found, expected in zip(*(run_onnx(form, part).values() for form in (many, usual)), strict=True):
            np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match="fused='few' is not known: pass True, False or 'many'"):
        ours.get_trained_onnx(fused="few")
    if hasattr(ours, "classes_"):
        mapped = ours.get_trained_onnx(zipmap=True, fused="many")
        assert operator in operators(mapped) and mapped.graph.output[0].name == "output_label"
