"""The C++ builder is right on its positive list, and no form of its operators terminates the process."""

import json
import subprocess
import sys

import numpy as np
import pytest

from ortlearn.differentiation import gradient_of_loss
from tests.differentiation.evaluation import run_onnxruntime
from tests.differentiation.models import parse

pytestmark = pytest.mark.needs_training


def outcomes(module, *arguments):
    command = [sys.executable, "-m", f"tests.differentiation.cpp_builder.{module}", *arguments]
    found = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    assert found["bad"] == []
    return found


@pytest.mark.slow
def test_sample_of_forms():
    # a step coprime to the numbers of sizes and uses covers all of them
    found = outcomes("operators", "--every", "127")
    assert found["counts"]["right"] > 40


@pytest.mark.rest
def test_every_form():
    found = outcomes("operators")
    assert found["counts"]["right"] > 5000 and found["never"] == []


@pytest.mark.slow
def test_random_graphs():
    assert outcomes("random_graphs", "0", "15")["counts"]["right"] > 3


@pytest.mark.slow
def test_many_random_graphs():
    assert outcomes("random_graphs", "15", "400")["counts"]["right"] > 150


#: Operators that broadcast, with shapes of x and q.
BROADCAST = {
    **{
        f"y = {name} (x, q)": [((1, 2), (3, 2)), ((3, 2), (3, 1)), ((3, 2), (2,)), ((3, 2), ())]
        for name in ("Add", "Sub", "Mul", "Div", "Max", "Min")
    },
    "y = Gemm <transB = 1> (x, x, q)": [((3, 2), (1, 3)), ((3, 2), (3, 1)), ((3, 2), (3, 3))],
}


@pytest.mark.parametrize("unknown", ["x", "q", "xq", ""])
@pytest.mark.parametrize("body", BROADCAST)
def test_sizes_that_are_compared_at_run_time(body, unknown):
    """The ranks of some tensors are unknown, and the sizes of all."""
    for shapes in BROADCAST[body]:
        shape = dict(zip("xq", shapes, strict=True))
        declared = {name: ",".join("?" * len(shape[name])) for name in "xq"}
        model = parse(f"g (float[{declared['x']}] x, float[{declared['q']}] q) => (float loss) {{ {body} "
                      "a = Tanh (y) loss = ReduceSum <keepdims = 0> (a) }")  # fmt: skip
        for value in model.graph.input:
            if value.name in unknown:
                value.type.tensor_type.ClearField("shape")
        rng = np.random.default_rng(0)
        feeds = {name: np.asarray(rng.uniform(0.5, 2, shape[name]), np.float32) for name in "xq"}
        found, expected = (
            run_onnxruntime(gradient_of_loss(model, "loss", ["x", "q"], backend), feeds)
            for backend in ("ort", "rules")
        )
        for got, right in zip(found, expected, strict=True):
            assert got.shape == right.shape
            np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("keep_outputs", [False, True])
def test_inputs_off_the_path_have_a_zero_gradient(keep_outputs):
    model = parse("g (float[3,2] x, float[2] v, float[2] w) => (float loss, float[2] other) "
                  "{ s = Mul (x, x) loss = ReduceSum <keepdims = 0> (s) other = Floor (v) }")  # fmt: skip
    feeds = {name: np.full(shape, 1.5, np.float32) for name, shape in (("x", (3, 2)), ("v", 2), ("w", 2))}
    for wrt in (["v", "x", "w"], ["w"]):
        found, expected = (
            gradient_of_loss(model, "loss", wrt, backend, keep_outputs) for backend in ("ort", "rules")
        )
        names = [value.name for value in expected.graph.output]
        assert [value.name for value in found.graph.output] == names
        assert [value.name for value in found.graph.input] == [v.name for v in expected.graph.input]
        for got, right in zip(*(run_onnxruntime(onx, feeds) for onx in (found, expected)), strict=True):
            np.testing.assert_array_equal(got, right)
