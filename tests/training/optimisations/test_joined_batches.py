"""Joint losses of several batches: selected nodes and results."""

import numpy as np
import pytest
from onnx import parser

from ortlearn.graphs import GraphBuilder, append_nodes
from ortlearn.training.optimisations.joined_batches import (
    ALIGNED,
    MAX_SAMPLES,
    joined_losses,
    with_joined_samples,
)

BATCH = """<ir_version: 8, opset_import: ["": {opset}]>
    g (float[{n},2] x, float[2,1] w, float[{n},1] y) => (float ortlearn_objective, float[{n},1] g)
    <float one = {{1.0}}> {{ z = MatMul (x, w) {nodes} }}"""


def batch(nodes, opset=18, n=5):
    return parser.parse_model(BATCH.format(nodes=nodes, opset=opset, n=n))


SQUARES = "e = Sub (z, y) g = Mul (e, one) ortlearn_objective = ReduceSumSquare <keepdims = 0> (e)"
HINGE = """p = Mul (y, z) m = Sub (one, p) r = Relu (m) g = Neg (y)
    ortlearn_objective = ReduceMean <keepdims = 0> (r)"""
LOGISTIC = """s = Softplus (z) p = Mul (y, z) d = Sub (s, p) q = Sigmoid (z) g = Sub (q, y)
    ortlearn_objective = ReduceSum <keepdims = 0> (d)"""
CASES = {
    "squares": (SQUARES, ["ReduceSumSquare"], ["e"]),
    "hinge": (HINGE, ["Mul", "Sub", "Relu", "ReduceMean"], ["y", "z"]),
    "logistic": (LOGISTIC, ["Mul", "Sub", "ReduceSum"], ["y", "z", "s"]),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("n_batches", [2, 3])
def test_objectives_of_several_batches(case, n_batches, run_onnx):
    nodes, kinds, sources = CASES[case]
    model = batch(nodes)
    found = joined_losses(model)
    assert [node.op_type for node in found.nodes] == kinds
    assert sorted(found.sources) == sorted(sources)
    assert len(found.without(model).graph.node) == len(model.graph.node) - len(kinds)
    rng = np.random.RandomState(0)
    feeds = [
        {
            name: rng.normal(size=shape).astype(np.float32)
            for name, shape in [("x", (5, 2)), ("w", (2, 1)), ("y", (5, 1))]
        }
        for _ in range(n_batches)
    ]
    expected = [run_onnx(model, **one)[0] for one in feeds]
    made = {name for node in model.graph.node for name in node.output}
    graph = parser.parse_model("""<ir_version: 8, opset_import: ["": 18]> g () => (float[N] losses) { }""")
    copies = [{name: f"{name}_{i}" for name in (*"xwy", *made)} for i in range(n_batches)]
    op = GraphBuilder(18)
    op.node("Identity", op.constant(1.0), outputs=["one"])
    for names, values in zip(copies, feeds, strict=True):
        for name, value in values.items():
            op.node("Identity", value, outputs=[names[name]])
        for node in found.without(model).graph.node:
            inputs = [names.get(name, name) for name in node.input]
            op.node(node.op_type, *inputs, outputs=[names[name] for name in node.output])
    op.node("Identity", found.write(op, copies), outputs=["losses"])
    np.testing.assert_allclose(run_onnx(append_nodes(graph, op))[0], expected, rtol=1e-6)


APART = {
    "not a sum over samples": "e = Sub (z, y) g = Neg (e) s = ReduceSumSquare <keepdims = 0> (e) "
    "ortlearn_objective = Add (s, one)",
    "a dimension is kept": SQUARES.replace("keepdims = 0", "keepdims = 1"),
    "several outputs": "a = Concat <axis = 1> (z, y) g = Neg (z) "
    "ortlearn_objective = ReduceSum <keepdims = 0> (a)",
}


@pytest.mark.parametrize("case", APART)
def test_losses_that_are_not_joined(case):
    assert joined_losses(batch(APART[case])) is None


def test_losses_are_not_joined_in_old_opsets_and_large_batches():
    assert joined_losses(batch(SQUARES, opset=17)) is None
    joined = {
        n for n in (MAX_SAMPLES, MAX_SAMPLES + 1, MAX_SAMPLES + ALIGNED) if joined_losses(batch(SQUARES, n=n))
    }
    assert joined == {MAX_SAMPLES, MAX_SAMPLES + ALIGNED}


ROWS = """<ir_version: 8, opset_import: ["": 18]>
    g (float[3,2] w, int64[5] rows, float[5,1] y) => (float[5,3] out)
    <int64[4] below = {0, 0, 0, 1}, int64[4] above = {1, 0, 0, 0}>
    { x = Gather <axis = 0> (data, rows) p = Pad (x, below) a = Pad (x, above) n = Neg (y) q = Neg (w)
      u = Gather <axis = 1> (data, rows) out = MatMul (p, q) }"""


def test_samplewise_nodes_are_joined():
    text = ROWS.replace("float[3,2] w,", "float[3,2] w, float[9,2] data,")
    op = GraphBuilder(18)
    rest, joined = with_joined_samples(op, parser.parse_model(text), {"rows": "all_samples", "y": "all_y"}, 4)
    assert [node.op_type for node in op.nodes] == ["Gather", "Pad", "Neg"]
    assert [(node.op_type, node.output[0]) for node in rest.graph.node] == [
        ("Pad", "a"), ("Neg", "q"), ("Gather", "u"), ("MatMul", "out")
    ]  # fmt: skip
    assert set(joined) == {"x", "p", "rows"} and joined["rows"] == "all_samples"
