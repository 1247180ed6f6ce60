"""Losses given by expressions: text is parsed, and never evaluated."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import PluginError
from ortlearn.graphs import GraphBuilder, TensorType, make_value_info
from ortlearn.losses import ExpressionLoss, resolve_loss
from ortlearn.saving import load, save
from ortlearn.testing import check_loss

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X @ [1.0, -2.0, 0.5] + RNG.normal(size=60)
Z, T = RNG.normal(size=(2, 8, 2))
EXPECTILE = "where(label > score, 5, 1) * (label - score)**2"


def values_of(expression, run_onnx):
    from onnx import helper

    types = {name: TensorType(1, ("N", 2)) for name in ("label", "score")}
    op = GraphBuilder(types=types, existing_names=types)
    op.node("Identity", ExpressionLoss(expression).forward(op, "label", "score"), outputs=["loss"])
    inputs = [make_value_info(name, known) for name, known in types.items()]
    outputs = [make_value_info("loss", TensorType(1, ("N",)))]
    graph = helper.make_graph(op.nodes, "g", inputs, outputs, op.initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    return run_onnx(model, T.astype(np.float32), Z.astype(np.float32))[0]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("score", Z),
        ("-score + +label - 2e-1", -Z + T - 0.2),
        ("(score / 3)**4", (Z / 3) ** 4),
        ("2**score * 1", 2**Z),
        ("score**2 if label >= 0 else exp(-score)", np.where(T >= 0, Z**2, np.exp(-Z))),
        ("where(0 < score < 1 and not label > 1, score, 2)", np.where((Z > 0) & (Z < 1) & ~(T > 1), Z, 2)),
        ("where(label <= score or score != score, 1, score)", np.where(T <= Z, 1, Z)),
        ("maximum(score, label) + minimum(score, 0)", np.maximum(Z, T) + np.minimum(Z, 0)),
        ("clip(score, -0.5, 0.5) * sign(label)", np.clip(Z, -0.5, 0.5) * np.sign(T)),
        ("log1p(square(score)) + expm1(label * score)", np.log1p(Z**2) + np.expm1(T * Z)),
        (
            "softplus(-score) + relu(score) + sigmoid(score)",
            np.log1p(np.exp(-Z)) + np.maximum(Z, 0) + 1 / (1 + np.exp(-Z)),
        ),
        (
            "sqrt(abs(score)) + sin(score) * cos(label) + tanh(score)",
            np.sqrt(np.abs(Z)) + np.sin(Z) * np.cos(T) + np.tanh(Z),
        ),
    ],
)
def test_values(text, expected, run_onnx):
    np.testing.assert_allclose(values_of(text, run_onnx), expected.sum(axis=1), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "text, message",
    [
        ("__import__('os').system('true')", "is not allowed"),
        ("score.__class__", "is not allowed"),
        ("[s for s in score]", "is not allowed"),
        ("(lambda: score)()", "is not allowed"),
        ("label[0] + score", "is not allowed"),
        ("f'{score}'", "is not allowed"),
        ("score if label else 0", "a condition such as label > score is expected"),
        ("(label > score) * score", "is a condition, and a number is expected"),
        ("label > score", "is a condition, not a number"),
        ("where(label, score, 1)", "a condition such as"),
        ("clip(score, 1)", "must have 3 arguments"),
        ("True * score", "is not allowed"),
        ("1j * score", "is not allowed"),
        ("score @ label", "is not allowed"),
        ("prediction - label", r"'prediction' is not allowed.*[^.]\.$"),
        ("score +", "not valid.*invalid syntax"),
        ("", "not valid"),
        ("label**2", "does not depend on score"),
        ("score" + " + score" * 300, "at most 2000"),
        ("(" * 500 + "score" + ")" * 500, "(cannot be parsed|not valid)"),
        ("score\0", "(cannot be parsed|not valid)"),
        (7, "must be text, or a function"),
    ],
)
def test_refused_expressions(text, message):
    with pytest.raises(PluginError, match=message):
        ExpressionLoss(text).check()


def test_training_minimises_the_expression():
    def trained(loss, **options):
        return OrtGradientOptimizer(LinearRegression(), learning_loss=loss, random_state=0, **options).fit(
            X, Y
        )

    text, other = (
        trained(f"expression: {EXPECTILE}"),
        trained(
            ExpressionLoss(
                lambda op, y, f: op.Mul(op.Where(op.Greater(y, f), 5.0, 1.0), op.Pow(op.Sub(y, f), 2.0))
            )
        ),
    )
    np.testing.assert_allclose(text.coef_, other.coef_, rtol=1e-4)
    residuals, columns = Y - text.predict(X), np.c_[X, np.ones(60)]
    weights = np.where(residuals > 0, 5, 1)
    np.testing.assert_allclose(columns.T @ (weights * residuals), 0, atol=0.05)  # the expectile's equations
    half = trained("expression: (label - score)**2 / 2")
    np.testing.assert_allclose(half.coef_, trained("squared_error").coef_, rtol=1e-5)


def test_a_loss_without_a_minimum_is_reported():
    X, y = np.eye(3), np.array([1.0, -2.0, 3.0])
    trainer = OrtGradientOptimizer(
        LinearRegression(), learning_loss="expression: label * score", random_state=0
    )
    with pytest.warns(ConvergenceWarning, match="the loss seems to have no minimum"):
        trainer.fit(X, y)


def test_losses_of_classes():
    labels = (Y > 0).astype(int)
    text = "expression: softplus(score) - label * score"
    options = {"random_state": 0, "learning_rate": "Adam", "max_iter": 3}
    for model in (LogisticRegression(), MLPClassifier((4,), random_state=0, max_iter=5)):
        for kind in (OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer):
            found = kind(model, learning_loss=text, learning_penalty=None, **options).fit(X, labels)
            expected = kind(model, learning_loss="log_loss", learning_penalty=None, **options).fit(X, labels)
            np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(X), rtol=1e-4)


def test_copies_searches_and_files(tmp_path):
    loss = ExpressionLoss(EXPECTILE)
    for copy in (clone(loss), pickle.loads(pickle.dumps(loss)), resolve_loss(f" expression:{EXPECTILE}")):
        assert repr(copy) == repr(loss) and copy.expression == EXPECTILE
    check_loss(loss)
    model = OrtGradientOptimizer(LinearRegression(), learning_loss=f"expression: {EXPECTILE}", random_state=0)
    texts = ["expression: (label - score)**2", "expression: abs(label - score)"]
    search = GridSearchCV(model, {"learning_loss": texts}, cv=2).fit(X, Y)
    assert search.best_params_["learning_loss"] in texts
    fitted = model.fit(X, Y)
    save(fitted, tmp_path / "model.ort")
    restored = load(tmp_path / "model.ort")
    np.testing.assert_array_equal(restored.predict(X), fitted.predict(X))
    assert restored.loss_.expression == EXPECTILE
    np.testing.assert_array_equal(restored.losses(X, Y), fitted.losses(X, Y))


def test_kinks():
    assert ExpressionLoss("abs(label - score)").kinks and not ExpressionLoss(EXPECTILE).kinks
    assert ExpressionLoss(lambda op, y, f: op.Relu(op.Sub(f, y))).kinks


def test_functions_that_return_no_name():
    loss = ExpressionLoss(lambda op, label, score: None)
    with pytest.raises(PluginError, match="returned NoneType: return the name"):
        OrtGradientOptimizer(LinearRegression(), learning_loss=loss).fit(X, Y)
