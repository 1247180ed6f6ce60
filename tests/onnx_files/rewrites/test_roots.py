"""Roots have unchanged values, and finite gradients at zero."""

import numpy as np
import pytest
from onnx import checker, parser

from ortlearn.differentiation import gradient_of_loss
from ortlearn.onnx_files.rewrites import rewrite_forms

HEAD = '<ir_version: 8, opset_import: ["": 18]> g (float[N,2] x) => (float loss)'
CONSTANTS = "<int64[1] one = {1}, float[1] third = {0.33333334}, float[1] two = {2}, float zero = {0}>"
LAST = "loss = ReduceSum <keepdims = 0> (r)"
#: Nodes of a root, and its NumPy function.
GUARDED = {
    "of squares": ("s = ReduceSumSquare (x, one) r = Sqrt (s)", lambda v: np.sqrt((v * v).sum(1))),
    "of products": ("p = Mul (x, x) s = ReduceSum (p, one) r = Sqrt (s)", lambda v: np.sqrt((v * v).sum(1))),
    "of powers": ("p = Pow (x, two) s = ReduceSum (p, one) t = Transpose (s) r = Sqrt (t)",
                  lambda v: np.sqrt((v * v).sum(1))),
    "of a maximum": ("p = Mul (x, x) m = Max (p, zero) r = Sqrt (m)", np.abs),
    "third": ("a = Abs (x) s = ReduceSum (a, one) r = Pow (s, third)", lambda v: np.cbrt(np.abs(v).sum(1))),
}  # fmt: skip


@pytest.mark.parametrize("name", GUARDED)
def test_values_and_gradients(run_onnx, name):
    body, root = GUARDED[name]
    model = parser.parse_model(f"{HEAD} {CONSTANTS} {{ {body} {LAST} }}")
    guarded = rewrite_forms(model)
    checker.check_model(guarded, full_check=True)
    assert guarded is not model and rewrite_forms(guarded).graph.node == guarded.graph.node
    data = np.array([[3.0, 4.0], [0.0, 0.0], [-1.0, 2.0]], np.float32)
    loss, gradient = run_onnx(gradient_of_loss(guarded, "loss", ["x"]), data)
    np.testing.assert_allclose(loss, root(data.astype(float)).sum(), rtol=1e-6)
    np.testing.assert_array_equal(gradient[1], 0)
    for row in (0, 2):
        for column in (0, 1):
            step = np.zeros((3, 2))
            step[row, column] = 1e-6
            expected = (root(data + step).sum() - root(data - step).sum()) / 2e-6
            np.testing.assert_allclose(gradient[row, column], expected, rtol=1e-4)


@pytest.mark.parametrize("body", [
    "e = Exp (x) r = Sqrt (e)",
    "s = ReduceSum (x, one) r = Sqrt (s)",
    "s = ReduceSumSquare (x, one) r = Pow (s, two)",
    "h = Transpose (x) p = Mul (x, x) m = Max (p, third) r = Sqrt (m)",
])  # fmt: skip
def test_other_roots_are_unchanged(body):
    model = parser.parse_model(f"{HEAD} {CONSTANTS} {{ {body} {LAST} }}")
    assert rewrite_forms(model) is model
