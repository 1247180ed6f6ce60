"""Losses of graphs that end with probabilities are computed on raw scores."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from ortlearn.differentiation import gradient_of_loss
from ortlearn.graphs import make_inputs_of
from ortlearn.losses import add_loss_output
from ortlearn.trainable.from_estimator import sklearn_to_onnx

HEAD = """<ir_version: 8, opset_import: ["": 18]>
g (float[N,2] x) => (float[N,{}] y) <float one = {{1}}> {{ {} }}"""
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2)).astype(np.float32)
LABEL = np.arange(40) % 3


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", [LogisticRegression, MLPClassifier])
@pytest.mark.parametrize("name", ["log", "log_loss"])
def test_converted_classifiers(run_onnx, classes, kind, name):
    y = LABEL % classes
    model = kind(solver="lbfgs", max_iter=2000, tol=1e-2).fit(X, y)
    new = add_loss_output(sklearn_to_onnx(model, 2), name)
    assert [value.name for value in new.graph.input] == ["X", "y_true"]
    loss, label, probabilities = run_onnx(new, X=X, y_true=y)
    expected = -np.log(model.predict_proba(X)[np.arange(40), y]).sum()
    np.testing.assert_allclose(loss, expected, rtol=1e-4)
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_allclose(probabilities, model.predict_proba(X), atol=5e-5)


def test_gradient_of_converted_classifier(run_onnx):
    model = LogisticRegression().fit(X, LABEL)
    onx = add_loss_output(sklearn_to_onnx(model, 2), "log_loss")
    gradient = gradient_of_loss(make_inputs_of(onx, ["coef"]), "loss", ["coef"])
    coef = model.coef_.T.astype(np.float32)
    found = run_onnx(gradient, X=X, y_true=LABEL, coef=coef)[-1]
    np.testing.assert_allclose(found, X.T @ (model.predict_proba(X) - np.eye(3)[LABEL]), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "columns, body",
    [
        (2, "y = Softmax (x)"),
        (2, "p = Softmax <axis = 1> (x) y = Identity (p)"),
        (2, "p = Softmax (x) a = Constant <value_ints = [1]> () s = ReduceSum (p, a) y = Div (p, s)"),
        (1, "a = Constant <value_ints = [1]> () z = ReduceSum (x, a) y = Sigmoid (z)"),
        (2, "a = Constant <value_ints = [1]> () z = ReduceSum (x, a) p = Sigmoid (z) q = Sub (one, p) "
            "y = Concat <axis = 1> (q, p)"),
    ],
)  # fmt: skip
def test_raw_scores_before_probabilities(run_onnx, columns, body):
    y = LABEL % 2
    model = add_loss_output(parser.parse_model(HEAD.format(columns, body)), "log")
    loss, found = run_onnx(model, x=X, label=y)
    both = found if columns == 2 else np.hstack([1 - found, found])
    np.testing.assert_allclose(loss, -np.log(both[np.arange(40), y]).sum(), rtol=1e-5)


@pytest.mark.parametrize(
    "body",
    [
        "y = Neg (x)",
        "y = Div (x, one)",
        "e = Abs (x) y = Div (x, e)",
        "n = Neg (x) y = Concat <axis = 1> (n)",
        "p = Softmax (x) y = Log (p)",
    ],
)
def test_scores_without_link(run_onnx, body):
    new = add_loss_output(parser.parse_model(HEAD.format(2, body)), "log")
    loss, scores = run_onnx(new, x=X, label=LABEL % 2)
    scores = scores.astype(np.float64)
    expected = np.logaddexp.reduce(scores, axis=1) - scores[np.arange(40), LABEL % 2]
    np.testing.assert_allclose(loss, expected.sum(), rtol=1e-5)


@pytest.mark.parametrize(
    "body",
    [
        "y = Sigmoid (x)",
        "y = Softmax <axis = 0> (x)",
        "y = Exp (x)",
        "e = Abs (x) a = Constant <value_ints = [1]> () s = ReduceSum (e, a) y = Div (e, s)",
    ],
)
def test_unknown_probabilities_are_rejected(body):
    model = parser.parse_model(HEAD.format(2, body))
    with pytest.raises(ValueError, match="'y' has probabilities .* raw scores"):
        add_loss_output(model, "log")
    assert add_loss_output(model).graph.output[0].name == "loss"


@pytest.mark.parametrize(
    "model",
    [RandomForestClassifier(2, random_state=0), CalibratedClassifierCV(LogisticRegression(), cv=2)],
)
def test_classifiers_without_raw_scores_are_rejected(model):
    with pytest.raises(ValueError, match="'probabilities' has probabilities"):
        add_loss_output(sklearn_to_onnx(model.fit(X, LABEL), 2), "log")


def test_given_names():
    onx = sklearn_to_onnx(LogisticRegression().fit(X, LABEL), 2)
    with pytest.raises(ValueError, match="already has a tensor named 'label'"):
        add_loss_output(onx, "log", label_name="label")
    with pytest.raises(ValueError, match="already has a tensor named 'probabilities'"):
        add_loss_output(onx, "log", label_name="probabilities")
