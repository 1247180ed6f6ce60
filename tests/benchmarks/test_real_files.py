"""The benchmark of published ONNX files distinguishes right from wrong derivatives."""

from pathlib import Path

import numpy as np
import pytest
from onnx import helper, numpy_helper, parser

from benchmarks.real_files import derivatives
from benchmarks.real_files.attempt import Attempt, attempt
from benchmarks.real_files.page import page, rows, shortfalls
from benchmarks.real_files.sources import Source
from ortlearn.differentiation import onnx_derivative

WEIGHTS = ", ".join(["0.5"] * 6)
NETWORK = f"""<ir_version: 8, opset_import: ["": 18]> g (float[N,3] x) => (float[N,1] y)
    <float[3,2] w = {{{WEIGHTS}}}, float[2,1] v = {{1, 2}}>
    {{ z = MatMul (x, w) t = Tanh (z) y = MatMul (t, v) }}"""


def source(path, origin="magika"):
    return Source(Path(path), path, origin, "Apache-2.0")


def test_right_derivative():
    model = parser.parse_model(NETWORK)
    found = derivatives.check_derivative(model, model)
    assert found.verdict == "right" and found.error < 0.01 and found.ratio > 0


def test_derivative_wrong_by_five_percent():
    def wrong(model, weights):
        graph = onnx_derivative(model, weights=weights)
        for value in graph.graph.output:
            node = next(node for node in graph.graph.node if value.name in node.output)
            index = list(node.output).index(value.name)
            node.output[index] = f"{value.name}_right"
            graph.graph.node.append(helper.make_node("Mul", [node.output[index], "factor"], [value.name]))
        graph.graph.initializer.append(numpy_helper.from_array(np.array(1.05, np.float32), "factor"))
        return graph

    model = parser.parse_model(NETWORK)
    found = derivatives.check_derivative(model, model, derivative=wrong)
    assert found.verdict == "wrong" and found.error == pytest.approx(0.05, abs=0.01)


@pytest.mark.parametrize("random_state", range(10))
def test_rounding_is_not_a_wrong_derivative(random_state):
    """In float32, small steps from large weights are rounded by several percent."""
    model = parser.parse_model("""<ir_version: 8, opset_import: ["": 18]> g (int64[N] i) => (float[N,3] y)
        { y = Gather (table, i) }""")
    table = np.random.default_rng(random_state).normal(1000, 1, size=(2, 3)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(table, "table"))
    found = derivatives.check_derivative(model, model, random_state)
    assert found.verdict == "right" and found.error < 1e-3


def test_zero_derivative_is_not_right():
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[N,3] x) => (float[N,3] y)'
        " <float zero = {0}> { y = Mul (x, zero) }"
    )
    assert derivatives.check_derivative(model, model).verdict == "zero everywhere"


def test_attempt(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(parser.parse_model(NETWORK).SerializeToString())
    found = attempt(path)
    assert (found.opset, found.operators) == (18, {"MatMul": 2, "Tanh": 1})
    assert (found.derivative, found.trained) == ("right", "yes")
    path.write_bytes(b"nothing")
    with pytest.raises(Exception, match="pars"):
        attempt(path)


def test_shortfalls_and_page():
    good = Attempt(18, {"MatMul": 2}, "right", 1e-4, 3.0, "yes")
    bad = Attempt(9, {"Add": 1}, "wrong", 0.5, 2.0, "has no weights")
    assert shortfalls([(source(f"m{i}"), good) for i in range(8)]) == []
    problems = shortfalls([(source("a"), good), (source("b"), bad), (source("c", "skl2onnx"), good)])
    assert problems == [
        "1 of 2 files in wheels have a right derivative.",
        "2 models are trained, fewer than 8.",
        "The derivatives of ['b'] are wrong.",
    ]
    found = [(source("a"), good), (source("b"), bad), (source("d/c", "onnx"), good)]
    first = ["a", "magika", "Apache-2.0", "18", "MatMul", "right", "1e-04", "yes", "3.0"]
    assert next(rows(found)) == first
    text = page(found)
    assert "| magika | 2 | 1 | 1 | 1 | 5e-01 | 2.0 to 3.0 |" in text and "| onnx, d | 1 | 1 | 1 |" in text
    assert "| b | wrong | has no weights |" in text and "| a | right |" not in text
    assert "Files in wheels: 3, 1 without weights, 2 with a right derivative, 2 trained." in text
