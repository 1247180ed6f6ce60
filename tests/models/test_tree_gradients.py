"""The gradient of the value of a leaf is the sum of the gradients of the scores of its samples."""

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import ExtraTreesRegressor, GradientBoostingClassifier, RandomForestRegressor

from ortlearn.differentiation import gradient_of_loss
from ortlearn.graphs import (
    GraphBuilder,
    append_nodes,
    extract_model,
    graph_names,
    initializer_arrays,
    make_inputs_of,
    make_value_info,
    value_types,
)
from ortlearn.trainable.from_estimator import sklearn_to_onnx

X, Y = make_regression(60, 5, n_targets=3, random_state=0)
X = X.astype(np.float32)
SIZES = {"n_estimators": 4, "max_depth": 4, "random_state": 0}


def table_gradient(run_onnx, model, scores, factors):
    """Return the gradient of the sum of scores times factors with respect to the leaves' values."""
    part = extract_model(model, [scores])
    op = GraphBuilder(18, existing_names=graph_names(part.graph))
    loss = op.ReduceSum(op.Mul(scores, "factors"), keepdims=0, outputs=["loss"])
    types = value_types(part)
    known = types[scores]._replace(shape=("N", factors.shape[1]))
    info = make_value_info(loss, known._replace(shape=()))
    part = append_nodes(part, op, inputs=[make_value_info("factors", known)], outputs=[info])
    part = make_inputs_of(part, ["leaf_values"])
    gradient = gradient_of_loss(part, "loss", ["leaf_values"])
    table = initializer_arrays(model)["leaf_values"]
    return run_onnx(gradient, X=X, factors=factors, leaf_values=table)[1]


def indices_of(members, reached):
    """Return the index of the leaf of each sample and tree in the table, and the number of leaves."""
    leaves = [np.flatnonzero(tree.tree_.children_left < 0) for tree in members]
    starts = np.cumsum([0, *map(len, leaves)])
    columns = [np.searchsorted(own, reached[:, t]) + starts[t] for t, own in enumerate(leaves)]
    return np.stack(columns, axis=1), int(starts[-1])


@pytest.mark.parametrize("estimator", [RandomForestRegressor, ExtraTreesRegressor])
@pytest.mark.parametrize("n_targets", [1, 3])
def test_forests(run_onnx, estimator, n_targets):
    fitted = estimator(**SIZES).fit(X, Y[:, :n_targets].squeeze())
    factors = np.random.default_rng(0).normal(size=(len(X), n_targets)).astype(np.float32)
    model = sklearn_to_onnx(fitted, X.shape[1])
    found = table_gradient(run_onnx, model, model.graph.output[0].name, factors)
    indices, n_leaves = indices_of(fitted.estimators_, fitted.apply(X))
    expected = np.zeros((n_leaves, n_targets))
    np.add.at(expected, indices, factors[:, None])
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_boosting(run_onnx, n_classes):
    _, y = make_classification(60, 5, n_informative=4, n_redundant=0, n_classes=n_classes, random_state=0)
    fitted = GradientBoostingClassifier(**SIZES).fit(X, y)
    model = sklearn_to_onnx(fitted, X.shape[1])
    added = next(node for node in model.graph.node if "base_values" in node.input)
    width = fitted.estimators_.shape[1]
    factors = np.random.default_rng(0).normal(size=(len(X), width)).astype(np.float32)
    found = table_gradient(run_onnx, model, added.output[0], factors)
    reached = fitted.apply(X).reshape(len(X), -1).astype(int)
    indices, n_leaves = indices_of(fitted.estimators_.ravel(), reached)
    expected = np.zeros(n_leaves)
    np.add.at(expected, indices, np.tile(factors, len(fitted.estimators_)))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
