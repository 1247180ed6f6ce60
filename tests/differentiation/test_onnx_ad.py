"""Gradients of the built-in rules equal those of onnx-ad and of the C++ builder."""

from __future__ import annotations

import numpy as np
import onnx_ad
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

from ortlearn.differentiation import gradient_of_loss
from ortlearn.differentiation.random_feed import random_feed
from ortlearn.runtime.devices import parse_device
from ortlearn.runtime.sessions import make_session

HEADER = '<ir_version: 8, opset_import: ["": 18]> g (float[5,4] x, float[4,3] w, float[3] b) => (float loss)'

#: Expressions of z, a (5, 3) tensor of values between 0 and 4.
EXPRESSIONS = {
    "Tanh": "s = Tanh (z)",
    "Sigmoid": "s = Sigmoid (z)",
    "Exp": "n = Neg (z) s = Exp (n)",
    "Log": "o = Exp (z) s = Log (o)",
    "Sqrt": "o = Exp (z) s = Sqrt (o)",
    "Relu": "c = Sub (z, b) s = Relu (c)",
    "Softmax": "s = Softmax <axis = 1> (z)",
    "LogSoftmax": "s = LogSoftmax <axis = 1> (z)",
    "Div": "o = Exp (z) s = Div (z, o)",
    "Pow": "s = Mul (z, z)",
    "Transpose": "t = Transpose (z) u = MatMul (t, z) s = Tanh (u)",
    "ReduceMean": "mean = ReduceMean <keepdims = 1> (z) d = Sub (z, mean) s = Mul (d, d)",
    "Concat": "t = Tanh (z) s0 = Concat <axis = 1> (z, t) s = Mul (s0, s0)",
    "Gemm": "v = Gemm <transA = 1, alpha = 0.5> (z, z) s = Tanh (v)",
    "Erf": "s = Erf (z)",
}


def model_of(expression: str):
    body = f"m = MatMul (x, w) z = Add (m, b) {expression} loss = ReduceSum <keepdims = 0> (s)"
    return parser.parse_model(f"{HEADER} {{ {body} }}")


def gradients(model, backend):
    onx = gradient_of_loss(model, "loss", ["w", "b"], backend)
    feeds = random_feed(model)
    return make_session(onx, parse_device("cpu")).run(None, feeds)[1:]


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_equal_to_onnx_ad(name):
    model = model_of(EXPRESSIONS[name])
    theirs = onnx_ad.reverse(model, inputs=["w", "b"], layout="onnx")
    feeds = {**random_feed(model), "adj_loss": np.ones(1, dtype=np.float32)}
    outputs = ReferenceEvaluator(theirs).run(None, feeds)
    names = [value.name for value in theirs.graph.output]
    for weight, grad in zip(("w", "b"), gradients(model, "rules"), strict=True):
        expected = outputs[names.index(f"adj_{weight}")][..., 0]
        np.testing.assert_allclose(grad, expected, rtol=2e-4, atol=2e-4)


@pytest.mark.needs_training
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_equal_to_the_cpp_builder(name):
    model = model_of(EXPRESSIONS[name])
    for ours, theirs in zip(gradients(model, "rules"), gradients(model, "ort"), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-4)
