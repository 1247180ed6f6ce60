"""Leaf values of trees and forests are trained; their splits are not."""

import warnings

import numpy as np
import pytest
from skl2onnx import to_onnx
from sklearn.datasets import load_diabetes
from sklearn.ensemble import (
    AdaBoostClassifier,
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
)
from sklearn.metrics import log_loss, mean_squared_error
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

from ortlearn import OrtGradientOptimizer
from ortlearn.data.samples import Data
from ortlearn.exceptions import FidelityWarning
from ortlearn.graphs import initializer_arrays
from ortlearn.runtime.devices import parse_device
from ortlearn.trainable.conversion import to_trainable
from ortlearn.training.optimisations.hoisting import hoist

FEW = {"n_estimators": 5, "random_state": 0}
REGRESSORS = [
    DecisionTreeRegressor(max_depth=3),
    ExtraTreeRegressor(max_depth=3, random_state=0),
    RandomForestRegressor(max_depth=3, **FEW),
    ExtraTreesRegressor(max_depth=3, **FEW),
    GradientBoostingRegressor(loss="absolute_error", **FEW),
    HistGradientBoostingRegressor(max_iter=5),
    BaggingRegressor(DecisionTreeRegressor(max_depth=3), max_features=0.6, **FEW),
    AdaBoostRegressor(**FEW),
]
CLASSIFIERS = [
    DecisionTreeClassifier(max_depth=2),
    ExtraTreeClassifier(max_depth=3, random_state=0),
    RandomForestClassifier(max_depth=2, **FEW),
    ExtraTreesClassifier(max_depth=2, **FEW),
    GradientBoostingClassifier(**FEW),
    HistGradientBoostingClassifier(max_iter=5),
    BaggingClassifier(DecisionTreeClassifier(max_depth=2), **FEW),
    AdaBoostClassifier(**FEW),
]


#: Lower bound of probabilities in training, as leaves may have zeros.
LOWEST = 1e-5


def name_of(estimator):
    return type(estimator).__name__


def refined(estimator, X, y, **settings):
    settings = {"learning_rate": 1e-2, "max_iter": 5, "random_state": 0, **settings}
    return OrtGradientOptimizer(estimator, warm_start=True, **settings).fit(X, y)


def bounded_log_loss(y, probabilities):
    """Return the log loss of classes 0, 1, ... with the lower bound of the training."""
    return -np.log(np.maximum(probabilities[np.arange(len(y)), y], LOWEST)).mean()


def routes(model):
    """Return the splits of a graph: constants of definitions or attributes of converters."""
    nodes = [node for node in model.graph.node if node.op_type.startswith("TreeEnsemble")]
    fused = [a.SerializeToString() for node in nodes for a in node.attribute if a.name.startswith("nodes_")]
    tables = initializer_arrays(model).items()
    return fused + sorted(a.tobytes() for name, a in tables if "constant" in name and a.ndim == 2)


def check_refined(model, fitted, X, run_onnx):
    """Check that training lowered the loss and kept the splits, and that exports predict the same."""
    assert model.train_losses_[-1] < model.train_losses_[0]
    assert any(name.startswith("leaf_values") for name in model.weights_to_train_)
    start = to_trainable(fitted, X=X)
    splits = routes(start.with_weights(start.initial_weights()))
    assert splits and routes(model.onnx_) == splits
    first = next(iter(run_onnx(model.onnx_, X).values()))
    np.testing.assert_array_equal(np.ravel(first), np.ravel(model.predict(X)))


@pytest.mark.parametrize("estimator", REGRESSORS, ids=name_of)
def test_regressors(estimator, diabetes_units, run_onnx):
    X, y = (part[:150] for part in diabetes_units)
    fitted = estimator.fit(X, y + 0.2)
    model = refined(fitted, X, y)
    check_refined(model, fitted, X, run_onnx)


@pytest.mark.sweep(5)
@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=name_of)
def test_classifiers(estimator, wine, run_onnx):
    X, y = wine
    fitted = estimator.fit(X[::2], y[::2])
    model = refined(fitted, X, y, learning_rate=2e-3, max_iter=10)
    check_refined(model, fitted, X, run_onnx)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-5)
    assert probabilities.min() >= 0
    assert bounded_log_loss(y, probabilities) < bounded_log_loss(y, fitted.predict_proba(X))


@pytest.mark.parametrize("estimator", CLASSIFIERS[2:6], ids=name_of)
def test_classifiers_of_two_named_classes(estimator, cancer, run_onnx):
    X, y = cancer[0][:150], np.array(["no", "yes"])[cancer[1][:150]]
    fitted = estimator.fit(X, y)
    model = refined(fitted, X, y)
    check_refined(model, fitted, X, run_onnx)
    assert model.classes_.tolist() == ["no", "yes"]


def test_both_optimizers_agree(both, diabetes_units):
    X, y = (part[:100] for part in diabetes_units)
    fitted = RandomForestRegressor(max_depth=3, **FEW).fit(X, y)
    settings = {"warm_start": True, "learning_rate": 1e-2, "max_iter": 3, "random_state": 0}
    tables = [kind(fitted, **settings).fit(X, y).trained_coef_["leaf_values"] for kind in both]
    np.testing.assert_allclose(*tables, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "perceptron"])
def test_both_optimizers_agree_at_the_lower_bound(both, loss, wine):
    X, y = wine
    fitted = RandomForestClassifier(max_depth=3, **FEW).fit(X, y)
    settings = {"warm_start": True, "learning_rate": 1e-2, "max_iter": 1, "random_state": 0}
    tables = [
        kind(fitted, learning_loss=loss, **settings).fit(X, y).trained_coef_["leaf_values"] for kind in both
    ]
    np.testing.assert_allclose(*tables, atol=1e-5)


@pytest.mark.parametrize("estimator", REGRESSORS[1:3], ids=name_of)
def test_regressors_of_several_outputs(estimator, two_outputs, run_onnx):
    X, y = (part[:150] for part in two_outputs)
    fitted = estimator.fit(X, y + 0.2)
    check_refined(refined(fitted, X, y, learning_rate=1e-3), fitted, X, run_onnx)


@pytest.mark.parametrize("estimator", CLASSIFIERS[1:3], ids=name_of)
def test_classifiers_of_several_outputs(estimator, wine, run_onnx):
    X, y = wine[0], np.stack([wine[1], wine[1] == 1], axis=1).astype(int)
    fitted = estimator.fit(X[::2], y[::2])
    model = refined(fitted, X, y, learning_rate=1e-3)
    check_refined(model, fitted, X, run_onnx)
    for found in model.predict_proba(X):
        np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-5)
        assert found.min() >= 0


def test_isolation_forest_with_labels(wine, run_onnx):
    X, y = wine[0], np.where(wine[1] == 2, -1, 1)
    fitted = IsolationForest(**FEW).fit(X)
    model = refined(fitted, X, y, learning_rate=1.0)
    check_refined(model, fitted, X, run_onnx)


@pytest.mark.parametrize("estimator", [REGRESSORS[2], REGRESSORS[4], CLASSIFIERS[2]], ids=name_of)
def test_files(estimator, diabetes_units, wine):
    X, y = diabetes_units if estimator in REGRESSORS else wine
    fitted = estimator.fit(X, y)
    options = {"zipmap": False} if estimator in CLASSIFIERS else None
    file = to_onnx(fitted, X[:1].astype(np.float32), options=options, target_opset={"": 18, "ai.onnx.ml": 3})
    model = refined(file, X, y + 0.2 if estimator in REGRESSORS else y)
    assert list(model.weights_to_train_) == ["leaf_values"]
    assert model.train_losses_[-1] < model.train_losses_[0]


@pytest.mark.parametrize("estimator", [REGRESSORS[2], REGRESSORS[5], CLASSIFIERS[2]], ids=name_of)
def test_float64(estimator, diabetes_units, wine):
    X, y = diabetes_units if estimator in REGRESSORS else wine
    fitted = estimator.fit(X[::2], y[::2])
    model = refined(fitted, X, y, dtype="float64", learning_rate=2e-3)
    assert model.trained_coef_["leaf_values"].dtype == np.float64
    assert model.train_losses_[-1] < model.train_losses_[0]


def test_samples_are_routed_once(diabetes_units):
    X, y = (part[:100] for part in diabetes_units)
    fitted = RandomForestRegressor(max_depth=3, **FEW).fit(X, y)
    model = refined(fitted, X, y, max_iter=1)
    data = Data(X.astype(np.float32), y[:, None].astype(np.float32))
    left, data = hoist(model._fitted.problem.task(False), data, parse_device("cpu"), None)
    assert [node.op_type for node in left.graph.model.graph.node] == ["Gather", "ReduceSum"]
    ((_, numbers),) = data.features.items()
    reached = fitted.apply(X)
    assert numbers.shape == reached.shape and numbers.dtype == np.int64
    for one, other in zip(numbers.T, reached.T, strict=True):
        order, expected = (np.unique(column, return_inverse=True)[1] for column in (one, other))
        np.testing.assert_array_equal(order, expected)


def test_forest_after_other_steps():
    X, y = load_diabetes(return_X_y=True)
    fitted = make_pipeline(StandardScaler(), RandomForestRegressor(20, random_state=0)).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FidelityWarning)  # scaled samples equal thresholds
        model = refined(fitted, X, y + 9)
    assert list(model.weights_to_train_) == ["leaf_values"]
    assert model.train_losses_[-1] < model.train_losses_[0]


@pytest.mark.slow
def test_training_a_random_forest_lowers_the_validation_loss(diabetes_units):
    X, X_test, y, y_test = train_test_split(*diabetes_units, test_size=0.3, random_state=0)
    fitted = RandomForestRegressor(100, max_depth=2, max_features=0.3, random_state=0).fit(X, y)
    model = refined(fitted, X, y, learning_rate=1e-3, max_iter=10)
    before = mean_squared_error(y_test, fitted.predict(X_test))
    assert mean_squared_error(y_test, model.predict(X_test)) < 0.97 * before


def test_training_boosting_does_not_raise_the_validation_loss(cancer):
    X, X_test, y, y_test = train_test_split(*cancer, test_size=0.3, random_state=0)
    fitted = GradientBoostingClassifier(n_estimators=30, random_state=0).fit(X, y)
    model = refined(fitted, X, y, learning_rate=1e-3, max_iter=10)
    before = log_loss(y_test, fitted.predict_proba(X_test))
    assert log_loss(y_test, model.predict_proba(X_test)) <= before
