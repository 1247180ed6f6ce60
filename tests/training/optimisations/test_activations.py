"""Bytes of activations are those of the results of all nodes."""

import numpy as np
import pytest
from onnx import numpy_helper, parser

from ortlearn.training.optimisations.activations import activation_bytes

DENSE = """<ir_version: 8, opset_import: ["": 18]> g (float[N,T,3] x) => (float[N,T,2] y)
    <int64[2] flat = {-1, 3}, int64[3] back = {-1, 5, 2}> {
        f = Reshape (x, flat) m = MatMul (f, w) h = Tanh (m) y = Reshape (h, back) t = Transpose (w) }"""
SIZED = """<ir_version: 8, opset_import: ["": 18]> g (float[N,C,H,W] x) => (float[N,D,H,W] y)
    { h = Relu (x) y = Add (h, x) }"""


def test_samples_are_found_in_any_dimension():
    model = parser.parse_model(DENSE)
    model.graph.initializer.append(numpy_helper.from_array(np.ones((3, 2), np.float32), "w"))
    # f, m, h and y have 5 steps of 3, 2, 2 and 2 elements; t does not depend on the samples
    assert activation_bytes(model, {"x": np.zeros((7, 5, 3))}) == 4 * 5 * (3 + 2 + 2 + 2)


@pytest.mark.parametrize("shape", [(3, 8, 8), (1, 50, 20)])
def test_dynamic_dimensions(shape):
    model = parser.parse_model(SIZED)
    assert activation_bytes(model) == 4 * 2
    assert activation_bytes(model, {"x": np.zeros((2, *shape))}) == 4 * 2 * np.prod(shape)
