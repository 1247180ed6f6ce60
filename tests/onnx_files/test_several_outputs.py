"""``output_name`` selects the output to train and predict; the trained file has all outputs."""

import numpy as np
import pytest
from onnx import parser
from skl2onnx import to_onnx
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.linear_model import LogisticRegression, Ridge

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import ConversionError
from ortlearn.trainable.conversion import source_task

BOTH = [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer]
X = np.random.default_rng(0).normal(size=(80, 3)).astype(np.float32)
CLASSES = X.argmax(axis=1)
PAIRS = X[:, :2] - X[:, 1:]
OPTIONS = {"warm_start": True, "random_state": 0, "max_iter": 100, "learning_rate": "Adam"}
LOG = {**OPTIONS, "learning_loss": "log_loss"}


def network(nodes, outputs):
    """Return a network with a hidden layer h."""
    return parser.parse_model(f"""<ir_version: 8, opset_import: ["": 18]>
        g (float[N,3] x) => ({outputs})
        <float[3,4] w = {{{", ".join(["0.3", "-0.2", "0.1"] * 4)}}},
         float[4,2] v = {{{", ".join(["0.2"] * 8)}}},
         float[4,3] u = {{{", ".join(["0.1", "-0.1"] * 6)}}}> {{ z = MatMul (x, w) h = Tanh (z) {nodes} }}""")


HEADS = network("a = MatMul (h, v) b = MatMul (h, u)", "float[N,2] a, float[N,3] b")
LABELS = network(
    """a = MatMul (h, v) b = MatMul (h, u) i = ArgMax <axis = 1, keepdims = 0> (a)
    j = ArgMax <axis = 1, keepdims = 0> (b)""",
    "int64[N] i, float[N,2] a, int64[N] j, float[N,3] b",
)
HIDDEN = network("y = MatMul (h, v)", "float[N,4] h, float[N,2] y")


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize(
    "file, output, moved", [(HEADS, "b", "u"), (LABELS, "b", "u"), (HEADS, "a", "v"), (LABELS, "a", "v")]
)
def test_classifiers(run_onnx, file, output, moved, cls):
    y = CLASSES if output == "b" else (X[:, 0] > 0).astype(int)
    trained = cls(file, output_name=output, **LOG).fit(X, y)
    assert is_classifier(trained) and trained.score(X, y) > 0.8
    assert set(trained.trained_coef_) == {"w", moved}
    result = trained.get_trained_onnx()
    assert (result.graph.output, result.graph.node) == (file.graph.output, file.graph.node)
    names = [value.name for value in file.graph.output]
    scores = dict(zip(names, run_onnx(result, X), strict=True))
    np.testing.assert_array_equal(trained.predict(X), scores[output].argmax(axis=1))
    found = trained.decision_function(X)
    difference = scores[output] if output == "b" else np.diff(scores[output])[:, 0]
    np.testing.assert_allclose(found, difference, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("file, output", [(HEADS, "b"), (HIDDEN, "y"), (HIDDEN, "h")])
def test_regressors(run_onnx, file, output, cls):
    y = {"b": X, "y": PAIRS, "h": np.hstack([X, PAIRS[:, :1]])}[output] / 5
    trained = cls(file, output_name=output, **OPTIONS).fit(X, y)
    assert is_regressor(trained) and trained.score(X, y) > 0.3
    result = trained.get_trained_onnx()
    names = [value.name for value in file.graph.output]
    outputs = dict(zip(names, run_onnx(result, X), strict=True))
    np.testing.assert_allclose(trained.predict(X), outputs[output], rtol=1e-5, atol=1e-6)


def test_labels_belong_to_the_output_they_are_computed_from():
    """``i`` is computed from ``a``: without labels, ``h`` is the output of a regressor."""
    file = network("a = MatMul (h, v) i = ArgMax <axis = 1> (a)", "float[N,4] h, float[N,2] a, int64[N,1] i")
    assert source_task(file) == source_task(file, "a") == "classification"
    assert source_task(file, "h") == "regression" and source_task(file, "i") is None
    trainer = OrtGradientOptimizer(file, output_name="h", **OPTIONS)
    assert is_regressor(trainer) and is_classifier(clone(trainer).set_params(output_name="a"))
    assert trainer.fit(X, np.hstack([X, X[:, :1]]) / 5).predict(X).shape == (80, 4)


def test_exported_scikit_learn_model():
    model = LogisticRegression().fit(X, CLASSES)
    file = to_onnx(model, X[:1], options={"zipmap": False}, target_opset={"": 18, "ai.onnx.ml": 3})
    named = OrtGradientOptimizer(file, output_name="probabilities", **OPTIONS).fit(X, CLASSES)
    plain = OrtGradientOptimizer(file, **OPTIONS).fit(X, CLASSES)
    np.testing.assert_array_equal(named.predict_proba(X), plain.predict_proba(X))


def test_errors():
    with pytest.raises(
        ConversionError, match=r"\['a', 'b'\], and not exactly one .* choose one by output_name"
    ):
        OrtGradientOptimizer(HEADS, **LOG).fit(X, CLASSES)
    with pytest.raises(ValueError, match=r"3 outputs, the model has 2. Set output_name"):
        OrtGradientOptimizer(HEADS, **OPTIONS).fit(X, X)
    for name in ("c", "x", "i", "h"):
        with pytest.raises(
            ConversionError, match=rf"output_name='{name}' is not a computed .*: choose one of \['a', 'b'\]"
        ):
            OrtGradientOptimizer(LABELS, output_name=name, **LOG).fit(X, CLASSES)
    with pytest.raises(ConversionError, match=r"output_name is for ONNX files, Ridge is .* output_name=None"):
        OrtGradientOptimizer(Ridge(), output_name="a").fit(X, X)
    own = network(
        "a = MatMul (h, v) d = Sub (a, y) loss = ReduceSumSquare <keepdims = 0> (d)",
        "float loss, float[N,2] a",
    )
    own.graph.input.add().CopyFrom(own.graph.output[1])
    own.graph.input[1].name = "y"
    with pytest.raises(ConversionError, match=r"output_name='a' cannot .* computes its own loss, 'loss'"):
        OrtGradientOptimizer(own, output_name="a", label_name="y").fit(X, PAIRS)


def test_output_name_with_a_reserved_prefix(run_onnx):
    file = network("a = MatMul (h, v) ortlearn_b = MatMul (h, u)", "float[N,2] a, float[N,3] ortlearn_b")
    trained = OrtGradientOptimizer(file, output_name="ortlearn_b", **LOG).fit(X, CLASSES)
    np.testing.assert_array_equal(
        run_onnx(trained.get_trained_onnx(), X)[1].argmax(axis=1), trained.predict(X)
    )


@pytest.mark.parametrize("cls", BOTH)
def test_columns_of_labels(run_onnx, cls):
    """An output of sigmoids, without labels, is that of a classifier of columns if y has as many."""
    file = network("s = MatMul (h, u) p = Sigmoid (s)", "float[N,3] p")
    y = (X > 0).astype(int)
    trained = cls(file, **LOG).fit(X, y)
    (found,) = run_onnx(trained.get_trained_onnx(), X)
    np.testing.assert_allclose(trained.predict_proba(X), found, atol=1e-6)
    np.testing.assert_array_equal(trained.predict(X), found > 0.5)
    assert trained.score(X, y) > 0.8
    expected = -np.log(np.where(y, found, 1 - found)).sum(axis=1)
    np.testing.assert_allclose(trained.losses(X, y), expected, rtol=1e-3)
    both = network("s = MatMul (h, u) p = Sigmoid (s)", "float[N,3] s, float[N,3] p")
    assert trained.score(X, y) == cls(both, output_name="p", **LOG).fit(X, y).score(X, y)
    assert cls(both, **LOG).fit(X, CLASSES).score(X, CLASSES) > 0.8
    with pytest.raises(ValueError, match="should be a 1d array"):
        cls(network("s = MatMul (h, u) p = Softmax (s)", "float[N,3] p"), **LOG).fit(X, y)
