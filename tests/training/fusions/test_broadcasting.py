"""Scalars are reshaped to the rank of the columns that they are broadcast to."""

import pytest
from onnx import numpy_helper, parser

from ortlearn.training.fusions import fuse_step
from ortlearn.training.fusions.broadcasting import MIN_ELEMENTS, align_scalars

ROWS = MIN_ELEMENTS


@pytest.mark.parametrize("shape", ["", "[1]"])
@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div", "Max"])
def test_computed_scalar(fuse, op_type, shape):
    text = f"g (float[{ROWS},1] x, float{shape} s) => (float[{ROWS},1] y) {{ y = {op_type} (x, s) }}"
    assert fuse(text, align_scalars) == {"Reshape": 1, op_type: 1}


def test_scalar_with_two_readers_and_constant(fuse):
    text = f"""g (float[{ROWS},1] x, float s) => (float[{ROWS},1] z) <float half = {{0.5}}>
        {{ y = Mul (s, x) w = Sub (y, s) z = Mul (w, half) }}"""
    assert fuse(text, align_scalars) == {"Reshape": 1, "Mul": 2, "Sub": 1}
    model = parser.parse_model(f"<ir_version: 8, opset_import: ['': 18]> {text}".replace("'", '"'))
    found = {
        tensor.name: numpy_helper.to_array(tensor)
        for tensor in fuse_step(model, [align_scalars]).graph.initializer
    }
    assert (1, 1) in {array.shape for array in found.values()}


@pytest.mark.parametrize("shapes", [f"[{ROWS},2]", f"[{ROWS}]"], ids=["no column", "a vector"])
def test_nodes_that_are_kept(fuse, shapes):
    assert fuse(f"g (float{shapes} x, float s) => (float{shapes} y) {{ y = Mul (x, s) }}", align_scalars) == {
        "Mul": 1
    }


@pytest.mark.parametrize("n_samples, added", [(ROWS - 1, 0), (ROWS, 1)])
def test_scalars_computed_in_a_batch_are_reshaped_for_many_elements(fuse, n_samples, added):
    text = f"""g (float[{n_samples},1] x) => (float[{n_samples},1] y)
        {{ s = ReduceMax <keepdims = 0> (x) y = Mul (x, s) }}"""
    assert fuse(text, align_scalars)["Reshape"] == added


def test_the_learning_rate_is_reshaped_for_few_elements(fuse):
    text = "g (float[10,1] x, float rate) => (float[10,1] y) { s = Neg (rate) y = Mul (x, s) }"
    assert fuse(text, align_scalars) == {"Reshape": 1, "Neg": 1, "Mul": 1}


def test_where(fuse):
    text = f"""g (float[{ROWS},1] x, float s) => (float[{ROWS},1] y)
        <float zero = {{0}}> {{ c = Greater (x, s) y = Where (c, x, zero) }}"""
    assert fuse(text, align_scalars) == {"Reshape": 1, "Greater": 1, "Where": 1}
