"""Nodes without effect are removed; nodes that resemble them are not."""

import numpy as np
import onnx
import pytest
from onnx import parser

from ortlearn.graphs import value_types
from ortlearn.onnx_files.scores.score_view import ScoreView
from ortlearn.onnx_files.simplify import remove_idle_nodes


def parse(text):
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": 18, "ai.onnx.ml": 3]> {text}')


def operators(model):
    return [node.op_type for node in model.graph.node]


HEAD = "g (float[N,2] x, float[3,2] f, int64[N] k, float[2] v) => (float y)"
SHAPES = "<int64[2] keep = {-1, 2}, int64[2] other = {2, -1}, int64[2] zero = {-1, 0}, int64[1] flat = {-1}>"

CASES = {
    "Identity": ("a = Identity (x)", False),
    "two in a row": ("b = Identity (x) a = Identity (b)", False),
    "Cast to its own type": ("a = Cast <to = 1> (x)", False),
    "Cast to another": ("a = Cast <to = 11> (x)", True),
    "Cast of integers to floats": ("a = Cast <to = 1> (k)", True),
    "Reshape to (-1, 2) of (N, 2)": ("a = Reshape (x, keep)", False),
    "Reshape to (-1, 2) of (3, 2)": ("a = Reshape (f, keep)", False),
    "Reshape to (2, -1)": ("a = Reshape (x, other)", True),
    "Reshape to (-1, 0)": ("a = Reshape (x, zero)", True),
    "Reshape to (-1,) of two dimensions": ("a = Reshape (x, flat)", True),
    "Reshape to (-1,) of one dimension": ("a = Reshape (v, flat)", False),
    "Reshape to (-1, 2) of one dimension": ("a = Reshape (v, keep)", True),
    "Identity of another domain": ("a = ai.onnx.ml.Identity (x)", True),
    "Dropout": ("a = Dropout (x)", True),
}


@pytest.mark.parametrize("name", CASES)
def test_idle_nodes(name):
    body, stays = CASES[name]
    model = parse(f"{HEAD} {SHAPES} {{ {body} b0 = Neg (a) y = ReduceMax <keepdims = 0> (b0) }}")
    before = model.SerializeToString()
    simpler = remove_idle_nodes(model)
    assert model.SerializeToString() == before
    assert len(simpler.graph.node) == (3 if stays else 2)
    if not stays:
        assert operators(simpler) == ["Neg", "ReduceMax"]
        assert simpler.graph.node[0].input[0] in ("x", "f", "v")
        assert [tensor.name for tensor in simpler.graph.initializer] == []  # unread shapes are removed


def test_reshape_to_a_computed_shape_is_unchanged():
    model = parse(f"{HEAD} {{ s = Shape (x) a = Reshape (x, s) y = ReduceMax <keepdims = 0> (a) }}")
    assert "Reshape" in operators(remove_idle_nodes(model))


def test_shape_given_as_an_input_is_unchanged():
    model = parse(
        f"{HEAD.replace('float[2] v', 'int64[2] keep')} <int64[2] keep = {{-1, 2}}> "
        "{ a = Reshape (x, keep) y = ReduceMax <keepdims = 0> (a) }"
    )
    assert "Reshape" in operators(remove_idle_nodes(model))


def test_names_of_outputs_are_unchanged(run_onnx):
    model = parse(
        "g (float[N] x) => (float[N] y, float[N] z) { a = Identity (x) y = Identity (a) z = Neg (y) }"
    )
    simpler = remove_idle_nodes(model)
    assert operators(simpler) == ["Identity", "Neg"]
    assert [value.name for value in simpler.graph.output] == ["y", "z"]
    onnx.checker.check_model(simpler)
    x = np.array([1, -2], np.float32)
    for got, expected in zip(run_onnx(simpler, x), run_onnx(model, x), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_subgraphs_read_remaining_tensors(run_onnx):
    model = parse("""g (float[N] x, bool condition) => (float[N] y) {
        a = Identity (x)
        b = Identity (a)
        c = Identity (b)
        d = Neg (c)
        y = If (condition) <
          then_branch = one () => (float[N] p) { p = Add (b, d) },
          else_branch = two () => (float[N] q) { q = Identity (d) }
        > }""")
    simpler = remove_idle_nodes(model)
    onnx.checker.check_model(simpler, full_check=True)
    assert operators(simpler) == ["Neg", "If"]
    x = np.array([1, -2], np.float32)
    for condition in (True, False):
        got, expected = (run_onnx(m, x, np.array(condition))[0] for m in (simpler, model))
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    "name, source", [("d", "b"), ("c", "b"), ("b", "b"), ("x", "x"), ("nothing", "nothing")]
)
def test_origin_skips_idle_nodes(name, source):
    model = parse("g (float[N,2] x) => (float[N,2] d) <int64[2] keep = {-1, 2}> "
                  "{ a = Identity (x) b = Neg (a) c = Cast <to = 1> (b) d = Reshape (c, keep) }")  # fmt: skip
    assert ScoreView(model, value_types(model)).origin(name) == source


def test_reshaped_scalars_are_unchanged():
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]>
        g (float x) => (float[1] y) <int64[1] vector = {-1}> { z = Reshape (x, vector) y = Neg (z) }"""
    )
    assert [node.op_type for node in remove_idle_nodes(model).graph.node] == ["Reshape", "Neg"]
