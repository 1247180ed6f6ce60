"""Training of ONNX models with recurrent layers and fused operators."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import numpy_helper, parser

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.graphs import initializer_arrays
from ortlearn.learning_rates import LearningRateAdam

HEADER = '<ir_version: 8, opset_import: ["": 18, "com.microsoft": 1]>'
LAYERS = {
    "LSTM": (
        "t = Transpose <perm = [1, 0, 2]> (s) a, b = LSTM <hidden_size = 8> (t, w, r) h = Squeeze (b, zero)",
        {"w": (1, 32, 2), "r": (1, 32, 8)},
    ),
    "GRU": (
        """t = Transpose <perm = [1, 0, 2]> (s)
        a, b = GRU <hidden_size = 4, direction = "bidirectional"> (t, w, r)
        d = Transpose <perm = [1, 0, 2]> (b) h = Reshape (d, eight)""",
        {"w": (2, 12, 2), "r": (2, 12, 4)},
    ),
    "Attention": (
        """f = Reshape (s, six) a = com.microsoft.Attention <num_heads = 2> (f, w, r) d = Reshape (a, twelve)
        m = com.microsoft.FusedGemm <activation = "Tanh"> (d, k, i)
        h = com.microsoft.FastGelu (m, b)""",
        {"w": (2, 6), "r": (6,), "k": (12, 8), "i": (8,), "b": (8,)},
    ),
    "SkipLayerNormalization": (
        """f = Reshape (s, twelve) a = MatMul (f, w) g = com.microsoft.FastGelu (a) m = MatMul (g, r)
        h = com.microsoft.SkipLayerNormalization (m, a, k, i)""",
        {"w": (12, 8), "r": (8, 8), "k": (8,), "i": (8,)},
    ),
}


def file_of(name):
    """Return a model of a layer between two reshapes and a linear output, with random weights."""
    nodes, shapes = LAYERS[name]
    shapes = {**shapes, "v": (8, 1), "c": (1,)}
    rng = np.random.default_rng(0)
    values = {key: (rng.normal(size=shape) * 0.4).astype(np.float32) for key, shape in shapes.items()}
    inputs = ", ".join(f"float[{','.join(map(str, shape))}] {key}" for key, shape in shapes.items())
    model = parser.parse_model(f"""{HEADER} g (float[N,12] X, {inputs}) => (float[N,1] y)
        <int64[3] six = {{-1, 6, 2}}, int64[1] zero = {{0}}, int64[2] eight = {{-1, 8}},
         int64[2] twelve = {{-1, 12}}> {{
        s = Reshape (X, six) {nodes} p = MatMul (h, v) y = Add (p, c) }}""")
    del model.graph.input[1:]
    model.graph.initializer.extend(numpy_helper.from_array(value, key) for key, value in values.items())
    return model


@pytest.mark.sweep(2)
@pytest.mark.parametrize("kind", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
@pytest.mark.parametrize("name", LAYERS)
def test_layer_is_trained(kind, name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 12)).astype(np.float32)
    y = np.tanh(X[:, ::2].sum(axis=1) / 2)
    options = {"learning_rate": LearningRateAdam(eta0=0.02), "max_iter": 40, "random_state": 0}
    trainer = kind(file_of(name), warm_start=True, **options).fit(X, y)
    assert trainer.score(X, y) > 0.9 and set(trainer.get_weights()) == {*LAYERS[name][1], "v", "c"}
    before, after = (initializer_arrays(model) for model in (file_of(name), trainer.get_trained_onnx()))
    assert all(np.abs(after[weight] - before[weight]).max() > 0 for weight in trainer.get_weights())


@pytest.mark.parametrize("name", LAYERS)
def test_layer_is_drawn_or_frozen(name):
    """A frozen layer is unchanged, bit for bit; without a warm start its weights are drawn."""
    X = np.random.default_rng(0).normal(size=(30, 12)).astype(np.float32)
    options = {"max_iter": 2, "random_state": 0, "learning_rate": 1e-3}
    own, before = LAYERS[name][1], initializer_arrays(file_of(name))
    frozen = OrtGradientOptimizer(file_of(name), weights_to_train=["MatMul", "c"], **options).fit(X, X[:, 0])
    after = initializer_arrays(frozen.get_trained_onnx())
    assert {key for key in before if after[key].tobytes() != before[key].tobytes()} <= {"v", "c", "w", "r"}
    trained = OrtGradientOptimizer(file_of(name), weights_to_train=list(own), **options).fit(X, X[:, 0])
    after = initializer_arrays(trained.get_trained_onnx())
    assert all(np.abs(after[key] - before[key]).max() > 0.01 for key in own)
    assert all(after[key].tobytes() == before[key].tobytes() for key in ("v", "c"))
