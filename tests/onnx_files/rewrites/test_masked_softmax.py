"""The gradient of a softmax whose mask hides all positions of a sample is finite."""

import numpy as np
import pytest
from onnx import checker, parser

from ortlearn import OrtGradientOptimizer
from ortlearn.differentiation import gradient_of_loss
from ortlearn.onnx_files.rewrites import rewrite_forms

#: Replaced rows: their mask is minus infinity, or their softmax is NaN.
CONDITIONS = {
    "rows of the mask": "r = ReduceMax {axes} (mask{last}) c = Equal (r, low) z = Where (c, zero, s)",
    "not a number": "c = IsNaN (s) z = Where (c, zero, s)",
    "behind a cast": "t = Cast <to = 1> (s) c = IsNaN (t) z = Where (c, zero, t)",
    "in float64": """b = Cast <to = 11> (a) d = Softmax (b) t = Cast <to = 1> (d)
        c = IsNaN (t) z = Where (c, zero, t)""",
}
LOW = np.array(-np.inf, np.float32)
X = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
MASK = np.array([[0, 0, 0], [0, -np.inf, 0], [-np.inf] * 3, [-np.inf, 1, 2]], np.float32)


def model_of(name, opset=18):
    axes = ("", ", last") if opset >= 18 else ("<axes = [-1]>", "")
    return parser.parse_model(f"""<ir_version: 8, opset_import: ["": {opset}]>
        g (float[N,3] x, float[N,3] mask, float low) => (float loss)
        <float zero = {{0}}, int64[1] last = {{-1}}>
        {{ a = Add (x, mask) s = Softmax (a) {CONDITIONS[name].format(axes=axes[0], last=axes[1])}
           w = Mul (z, x) loss = ReduceSum <keepdims = 0> (w) }}""")


@pytest.mark.parametrize("opset", [13, 18])
@pytest.mark.parametrize("name", CONDITIONS)
def test_gradients(run_onnx, name, opset):
    model = model_of(name, opset)
    guarded = rewrite_forms(model)
    checker.check_model(guarded, full_check=True)
    assert rewrite_forms(guarded).graph.node == guarded.graph.node
    feeds = {"mask": MASK, "low": LOW}
    loss, gradient = run_onnx(gradient_of_loss(guarded, "loss", ["x"]), x=X, **feeds)
    assert loss == run_onnx(model, x=X, **feeds)[0]
    np.testing.assert_array_equal(gradient[2], 0)
    for index in np.ndindex(4, 3):
        moved = np.zeros_like(X)
        moved[index] = 1e-2
        ends = [run_onnx(model, x=X + sign * moved, **feeds)[0] for sign in (1, -1)]
        np.testing.assert_allclose(gradient[index], (ends[0] - ends[1]) / 2e-2, rtol=1e-2, atol=1e-3)


def test_earlier_nan_is_replaced_too(run_onnx):
    x = X.copy()
    x[0, 0] = np.nan
    model, feeds = model_of("not a number"), {"mask": MASK, "low": LOW}
    pair = [run_onnx(m, x=x, **feeds)[0] for m in (model, rewrite_forms(model))]
    np.testing.assert_array_equal(*pair)


@pytest.mark.parametrize(
    "nodes",
    [
        "c = Greater (x, zero) s = Softmax (x) z = Where (c, zero, s)",
        "r = ReduceMax (x, last) c = Equal (r, zero) s = Softmax <axis = 0> (x) z = Where (c, zero, s)",
        "r = ReduceMax (x, last) c = Equal (r, zero) s = Tanh (x) z = Where (c, zero, s)",
    ],
)
def test_other_conditions_are_unchanged(nodes):
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 18]> g (float[N,3] x) => (float[N,3] z)
        <float zero = {{0}}, int64[1] last = {{-1}}> {{ {nodes} }}""")
    assert rewrite_forms(model) is model


def test_training_of_a_fully_masked_attention():
    """As in opset 23, the output of a fully masked sequence is zero."""
    model = parser.parse_model(f"""<ir_version: 10, opset_import: ["": 23]>
        g (float[N,4,3] x, bool[N,4,4] mask) => (float[N,4,3] y)
        <float[3,3] w = {{{", ".join(["0.1", "0.2", "-0.3"] * 3)}}}, int64[1] heads = {{1}}>
        {{ q = MatMul (x, w) u = Unsqueeze (q, heads) k = Unsqueeze (x, heads) m = Unsqueeze (mask, heads)
           a = Attention (u, k, k, m) y = Squeeze (a, heads) }}""")
    rng = np.random.default_rng(0)
    X = {"x": rng.normal(size=(20, 4, 3)).astype(np.float32), "mask": rng.random((20, 4, 4)) > 0.5}
    X["mask"][3] = False
    options = {"warm_start": True, "max_iter": 5, "random_state": 0, "learning_rate": "Adam"}
    trained = OrtGradientOptimizer(model, **options).fit(X, rng.normal(size=(20, 4, 3)))
    assert np.isfinite(trained.train_losses_).all() and trained.train_losses_[-1] < trained.train_losses_[0]
    np.testing.assert_array_equal(trained.predict(X)[3], 0)
