"""ONNX models written by other tools."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, numpy_helper, parser
from skl2onnx import to_onnx
from sklearn.base import is_classifier
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import GradientError, NoTrainableWeightError, UnfittedStartWarning
from ortlearn.graphs import opset_versions
from ortlearn.onnx_files.loading import load_onnx
from ortlearn.quiet import quiet
from ortlearn.runtime.readable_versions import newest_opset

HEADER = '<ir_version: 8, opset_import: ["": 18]>'
W4 = "float[4,1] w = {0.1, 0.2, 0.3, 0.4}"


@pytest.fixture(params=[OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer], ids=["epoch", "calls"])
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X.astype(np.float32), y, np.array(["setosa", "versicolor", "virginica"])[y]


def model_of(text):
    return parser.parse_model(f"{HEADER} {text}")


def test_constant_nodes(kind, iris):
    X, *_ = iris
    body = "{ two = Constant <value_float = 2.0> () z = MatMul (x, w) y = Mul (z, two) }"
    trained = kind(model_of(f"g (float[N,4] x) => (float[N,1] y) <{W4}> {body}"), max_iter=5, random_state=0)
    trained.set_params(learning_rate=1e-3).fit(X, X[:, 0])
    assert trained.train_losses_[-1] < trained.train_losses_[0]


def test_default_exports_of_skl2onnx(kind, iris):
    X, _, names = iris
    ridge = kind(to_onnx(Ridge().fit(X, X[:, 0]), X[:1]), warm_start=True, learning_rate=1e-3, max_iter=5)
    assert ridge.fit(X, X[:, 0]).score(X, X[:, 0]) > 0.9
    logistic = LogisticRegression().fit(X, names)
    classifier = kind(to_onnx(logistic, X[:1]), warm_start=True, learning_rate=1e-4, max_iter=2)
    classifier.fit(X, names)
    assert classifier.score(X, names) == pytest.approx(logistic.score(X, names), abs=0.02)
    np.testing.assert_allclose(classifier.predict_proba(X).sum(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("early_stopping", [False, True])
@pytest.mark.parametrize("last", ["y = Mul (z, s)", "v = Mul (z, s) y = Softmax <axis = 1> (v)"])
def test_operators_of_onnxruntime_with_validation(kind, iris, last, early_stopping):
    X, y, _ = iris
    columns, width = (X[:, 1:3], 2) if "Softmax" not in last else (y, 3)
    text = f"""g (float[N,4] x) => (float[N,{width}] y)
        {{ h = com.microsoft.QuickGelu <alpha = 1.0> (x) z = com.microsoft.FusedMatMul (h, w) {last} }}"""
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]> {text}')
    for name, values in {"w": np.ones((4, width)), "s": np.ones(width)}.items():
        model.graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), name))
    loss = "log_loss" if width == 3 else "auto"
    trained = kind(model, learning_loss=loss, early_stopping=early_stopping, max_iter=50, random_state=0)
    with quiet(ConvergenceWarning):
        assert trained.fit(X, columns).score(X, columns) > 0.8


def test_domains_declared_twice():
    model = model_of(f"g (float[N,4] x) => (float[N,1] y) <{W4}> {{ y = MatMul (x, w) }}")
    del model.opset_import[:]
    versions = [("ai.onnx.ml", 1), ("", 22), ("ai.onnx", 22)]
    model.opset_import.extend(helper.make_opsetid(domain, version) for domain, version in versions)
    own = 22 if newest_opset() >= 22 else 21  # whether the installed onnxruntime runs it
    assert opset_versions(load_onnx(model)) == {"": own, "ai.onnx.ml": 1}


@pytest.mark.parametrize(
    "body, columns",
    [
        ("y = MatMul (x, w)", 3),
        ("z = MatMul (x, w) y = Softmax (z)", 3),
        ("z = MatMul (x, w) y = Sigmoid (z)", 1),
    ],
    ids=["logits", "softmax", "sigmoid"],
)
def test_classifiers_without_label_output(kind, iris, body, columns):
    X, y, names = iris
    labels = names if columns == 3 else np.where(y > 0, "yes", "no")
    values = ", ".join(["0.1"] * 4 * columns)
    text = f"g (float[N,4] x) => (float[N,{columns}] y) <float[4,{columns}] w = {{{values}}}> {{ {body} }}"
    trainer = kind(model_of(text), learning_loss="log_loss", max_iter=60, random_state=0)
    assert is_classifier(trainer)
    trainer.fit(X, labels)
    assert trainer.score(X, labels) > 0.8
    probabilities = trainer.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    assert list(trainer.classes_[probabilities.argmax(axis=1)]) == list(trainer.predict(X))


@pytest.mark.parametrize("gradient", ["auto", "rules"])
def test_operator_declared_without_gradient(kind, iris, gradient):
    X, *_ = iris
    model = model_of(f"g (float[N,4] x) => (float[N,1] y) <{W4}> {{ z = MatMul (x, w) y = Round (z) }}")
    with pytest.raises(NoTrainableWeightError, match="only through Round, without a gradient"):
        kind(model, gradient=gradient).fit(X, X[:, 0])
    with pytest.raises(GradientError, match=r"\['w'\] have no gradient.*Round"):
        kind(model, "w", gradient=gradient).fit(X, X[:, 0])


def test_branches_are_trained_by_rules(kind, iris):
    X, *_ = iris
    model = model_of(
        f"g (float[N,4] x) => (float[N,1] y) <{W4}, float[4,1] v = {{0.1, 0.1, 0.1, 0.1}},"
        " float zero = {0}> { z = MatMul (x, w) s = ReduceSum <keepdims = 0> (x) c = Greater (s, zero)"
        " y = If (c)"
        " <then_branch = a () => (float[N,1] p) { p = Tanh (z) },"
        " else_branch = b () => (float[N,1] q) { q = MatMul (x, v) }> }"
    )
    trained = kind(model, max_iter=3, random_state=0).fit(X, X[:, 0] / 10)
    assert list(trained.weights_to_train_) == ["w", "v"] and np.isfinite(trained.train_losses_).all()


@pytest.mark.needs_training
def test_ort_backend_rejects_branches(kind, iris):
    X, *_ = iris
    model = model_of(
        f"g (float[N,4] x) => (float[N,1] y) <{W4}, float zero = {{0}}> {{ z = MatMul (x, w)"
        " s = ReduceSum <keepdims = 0> (x) c = Greater (s, zero) y = If (c)"
        " <then_branch = a () => (float[N,1] p) { p = Tanh (z) }, else_branch = b () => (float[N,1] q)"
        " { q = Neg (z) }> }"
    )
    with pytest.raises(GradientError, match="If .* has a subgraph"):
        kind(model, gradient="ort").fit(X, X[:, 0])


def test_names_of_training_graphs_in_the_file(kind, iris):
    X, *_ = iris
    model = model_of(
        f"g (float[N,4] ortlearn_label) => (float[N,1] ortlearn_rows) <{W4}>"
        "{ ortlearn_rate = MatMul (ortlearn_label, w) ortlearn_rows = Identity (ortlearn_rate) }"
    )
    trained = kind(model, learning_rate=1e-3, max_iter=5, random_state=0).fit(X, X[:, 0])
    onx = trained.get_trained_onnx()
    names = [value.name for value in (*onx.graph.input, *onx.graph.output)]
    assert names == ["ortlearn_label", "ortlearn_rows"]


def test_missing_intercept_is_not_added(kind, iris):
    X, y, _ = iris
    trained = kind(LinearRegression(fit_intercept=False), learning_rate=1e-3, max_iter=3).fit(X, X[:, 0] + 10)
    assert list(trained.weights_to_train_) == ["coef"]
    assert trained.predict(np.zeros((1, 4), dtype=np.float32)).tolist() == [0.0]


def test_scale_of_sample_weight_has_no_effect(kind, iris):
    X, *_ = iris
    trainer = kind(LinearRegression(), learning_rate=1e-3, max_iter=3, random_state=0)
    ratios = np.arange(1.0, 151.0)
    reference = trainer.fit(X, X[:, 0], sample_weight=ratios).train_losses_
    for scale in (1e-40, 1e36):
        losses = trainer.fit(X, X[:, 0], sample_weight=ratios * scale).train_losses_
        np.testing.assert_allclose(losses, reference, rtol=1e-5)


def test_warm_start_on_other_shapes(kind, iris):
    X, *_ = iris
    trainer = kind(Ridge(), warm_start=True, max_iter=1, learning_rate=1e-3)
    with pytest.warns(UnfittedStartWarning):
        trainer.fit(X, X[:, 0])
    before = trainer.trained_coef_
    with pytest.raises(ValueError, match="other shapes"):
        trainer.fit(X[:, :2], X[:, 0])
    assert trainer.trained_coef_ is before and trainer.n_features_in_ == 4
