"""Softplus in float64 does not overflow in a differentiated graph, and its gradient is one Sigmoid."""

import numpy as np
import pytest
from onnx import parser
from scipy.special import expit

from ortlearn.differentiation import gradient_of_loss

X = np.array([-800.0, -40.0, -0.5, 0.0, 0.5, 40.0, 800.0])
#: How losses write it; for another argument, or another factor, it is another function.
WRITTEN = """
    size = Abs (x) {other} = Abs ({argument}) twice = Add (x, {other}) positive = Mul (twice, half)
    negative = Neg (size) tail = Softplus (negative) s = Add ({terms})"""


def model(body):
    return parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]>
        g (double[N] x, double[N] z) => (double loss) <double half = {{0.5}}>
        {{ {body} loss = ReduceSum <keepdims = 0> (s) }}"""
    )


@pytest.mark.parametrize(
    "body",
    [
        "s = Softplus (x)",
        WRITTEN.format(other="again", argument="x", terms="positive, tail"),
        WRITTEN.format(other="again", argument="x", terms="tail, positive"),
    ],
)
def test_value_and_gradient(run_onnx, body):
    gradient = gradient_of_loss(model(body), "loss", ["x"])
    kinds = [node.op_type for node in gradient.graph.node]
    assert "Softplus" not in kinds and "Sign" not in kinds
    loss, found = run_onnx(gradient, x=X, z=X)
    np.testing.assert_allclose(loss, np.logaddexp(0, X).sum(), rtol=1e-15)
    np.testing.assert_allclose(found, expit(X), atol=2e-16)


def test_another_expression_stays(run_onnx):
    body = WRITTEN.format(other="again", argument="z", terms="positive, tail")
    loss, found = run_onnx(gradient_of_loss(model(body), "loss", ["x"]), x=X[1:3], z=X[2:4])
    expected = (X[1:3] + abs(X[2:4])) / 2 + np.logaddexp(0, -abs(X[1:3]))
    np.testing.assert_allclose(loss, expected.sum(), rtol=1e-15)
    np.testing.assert_allclose(found, 0.5 + expit(-abs(X[1:3])), rtol=1e-12)


def test_float32_keeps_the_operator():
    single = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]>
        g (float[N] x) => (float loss) { s = Softplus (x) loss = ReduceSum <keepdims = 0> (s) }"""
    )
    assert "Softplus" in {node.op_type for node in gradient_of_loss(single, "loss", ["x"]).graph.node}
