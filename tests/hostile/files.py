"""Valid ONNX models to damage, converted from scikit-learn or written as text."""

import warnings
from functools import cache

import numpy as np
from onnx import parser
from skl2onnx import to_onnx
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

X = np.random.RandomState(0).normal(size=(24, 3)).astype(np.float32)
NUMBERS = X @ np.array([1, -2, 3], dtype=np.float32)
CLASSES = (NUMBERS > 0).astype(np.int64) + (NUMBERS > 2)

ESTIMATORS = {
    "ridge": (Ridge(), NUMBERS),
    "logistic": (LogisticRegression(), CLASSES),
    "network": (MLPRegressor(hidden_layer_sizes=(4,), max_iter=2, random_state=0), NUMBERS),
    "scaler": (make_pipeline(StandardScaler(), LogisticRegression()), CLASSES),
    "svc": (SVC(probability=False), CLASSES),
    "svr": (SVR(), NUMBERS),
    "forest": (RandomForestClassifier(3, max_depth=3, random_state=0), CLASSES),
}
TEXTS = {
    "function": """<ir_version: 8, opset_import: ["": 18, "own": 1]>
        g (float[N,3] x) => (float[N,1] y) <float[3,1] w = {1, 2, 3}, float[1] b = {1}>
        { z = MatMul (x, w)  a = own.twice (z)  y = Add (a, b) }
        <domain: "own", opset_import: ["": 18, "own": 1]>
        twice (u) => (v) { t = own.half (u)  v = Add (t, t) }
        <domain: "own", opset_import: ["": 18]> half (u) => (v) { v = Tanh (u) }""",
    "if": """<ir_version: 8, opset_import: ["": 18]>
        g (float[N,3] x) => (float[N,1] y) <float[3,1] w = {1, 2, 3}, float zero = {0}>
        { z = MatMul (x, w)  s = ReduceSum <keepdims = 0> (x)  c = Greater (s, zero)
          y = If (c) <then_branch = yes () => (float[N,1] p) { p = Tanh (z) },
                      else_branch = no () => (float[N,1] q) { q = Neg (z) }> }""",
    "loop": """<ir_version: 8, opset_import: ["": 18]>
        g (float[N,3] x) => (float[N,1] y)
        <float[3,1] w = {1, 2, 3}, int64 turns = {3}, bool go = {1}, float step = {0.5}>
        { z = MatMul (x, w)
          y = Loop (turns, go, z) <body = turn (int64 i, bool c, float[N,1] v) => (bool d, float[N,1] u) {
              d = Identity (c)  t = Mul (v, step)  u = Tanh (t) }> }""",
    "convolution": """<ir_version: 8, opset_import: ["": 18]>
        g (float[N,3] x) => (float[N,1] y)
        <int64[3] shape = {0, 1, 3}, float[2,1,2] k = {1, 2, 3, 4}, int64[2] flat = {0, -1},
         float[4,1] w = {1, 2, 3, 4}>
        { a = Reshape (x, shape)  c = Conv (a, k)  r = Relu (c)  f = Reshape (r, flat)
          y = MatMul (f, w) }""",
    "constants": """<ir_version: 3, opset_import: ["": 9]>
        g (float[N,3] x) => (float[N,1] y) <int64[2] shape = {3, 1}>
        { w = ConstantOfShape <value = float[1] {0.5}> (shape)
          b = Constant <value = float[1] {1}> ()
          z = MatMul (x, w)  u = Unsqueeze <axes = [1]> (z)  c = Clip <min = -1.0> (u)
          s = Squeeze <axes = [1]> (c)  y = Add (s, b) }""",
    "branch": """<ir_version: 8, opset_import: ["": 18]>
        g (float[N,3] x) => (float[N,1] y) <int64[1] axis = {1}, int64 second = {1}, int64 unit = {1}>
        { u = Unsqueeze (x, axis)  s = Shape (u)  d = Gather (s, second)  c = Equal (d, unit)
          q = If (c) <then_branch = yes () => (float[] p) { p = Squeeze (u, axis) },
                      else_branch = no () => (float[] r) { r = Identity (u) }>
          w = Constant <value = float[3,1] {1, 2, 3}> ()
          y = MatMul (q, w) }""",
    "quantised": """<ir_version: 8, opset_import: ["": 18]>
        g (float[N,3] x) => (float[N,1] y)
        <int8[3,2] k = {10, -20, 30, -40, 50, -60}, float[2] s = {0.1, 0.2}, int8[2] z = {1, -2},
         int32[1] b = {7}, float t = {0.01}, float[2,1] w = {1, 2}>
        { f = DequantizeLinear <axis = 1> (k, s, z)  m = MatMul (x, f)  p = MatMul (m, w)
          c = DequantizeLinear (b, t)  y = Add (p, c) }""",
    "function weights": """<ir_version: 9, opset_import: ["": 18, "own": 1]>
        g (float[N,3] x) => (float[N,1] y) { z = own.layer (x)  y = own.scaled (z) }
        <domain: "own", opset_import: ["": 18]> layer (u) => (v)
        { w = Constant <value = float[3,1] {1, 2, 3}> ()  v = MatMul (u, w) }
        <domain: "own", opset_import: ["": 18]> scaled <alpha: float = 0.5> (u) => (v)
        { v = LeakyRelu <alpha: float = @alpha> (u) }""",
    "half": """<ir_version: 8, opset_import: ["": 18]>
        g (float16[N,3] x) => (float16[N,1] y) <float16[3,1] w = {1, 2, 3}>
        { z = MatMul (x, w)  f = Cast <to = 1> (z)  t = Tanh (f)  y = Cast <to = 10> (t) }""",
}


@cache
def models():
    """Return models by name, each with its labels."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {
            name: (to_onnx(model.fit(X, y), X[:1], target_opset={"": 18, "ai.onnx.ml": 3}), y)
            for name, (model, y) in ESTIMATORS.items()
        }
    found.update({name: (parser.parse_model(text), NUMBERS) for name, text in TEXTS.items()})
    return found
