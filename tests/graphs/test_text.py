"""Text of graphs."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

from ortlearn.graphs import graph_to_text

MODEL = parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
linear (float[N,3] x, bool condition) => (float[N,2] y)
<float[3,2] w = {1, 2, 3, 4, 5, 6}, float[2] b = {0.5, -1}, int64[1] axis = {1}>
{
  [first] z = MatMul (x, w)
  [second] y = If (condition) <
    then_branch = one () => (float[N,2] a) { [inner] a = Add (z, b) },
    else_branch = two () => (float[N,2] c) <float[3] large = {1, 2, 3}> {
      s = ReduceSum (large) c = Add (z, s)
    }
  >
}""")

TEXT = """
linear (float[N,3] x, bool condition) => (float[N,2] y)
<float[2] b =  {0.5,-1}, int64[1] axis =  {1}, float[3,2] w>
{
z = MatMul (x, w)
y = If (condition) <then_branch: graph = one () => (float[N,2] a) {
a = Add (z, b)
}, else_branch: graph = two () => (float[N,2] c)
<float[3] large>
{
s = ReduceSum (large)
c = Add (z, s)
}>
}"""


def squeezed(text):
    return [line.strip() for line in text.splitlines()]


def test_exact_text():
    assert squeezed(graph_to_text(MODEL, max_elements=2)) == squeezed(TEXT.strip())


def test_no_trailing_spaces_and_model_not_changed():
    before = MODEL.SerializeToString()
    text = graph_to_text(MODEL)
    assert MODEL.SerializeToString() == before
    assert text == "\n".join(line.rstrip() for line in text.splitlines())


def test_text_of_small_constants_can_be_parsed():
    again = parser.parse_graph(graph_to_text(MODEL))
    assert [node.op_type for node in again.node] == ["MatMul", "If"]
    weight = next(tensor for tensor in again.initializer if tensor.name == "w")
    np.testing.assert_array_equal(numpy_helper.to_array(weight).ravel(), [1, 2, 3, 4, 5, 6])


@pytest.mark.parametrize(
    "max_elements, omitted", [(0, "b axis w large"), (1, "b w large"), (2, "w large"), (3, "w"), (6, "")]
)
def test_values_of_large_constants_are_omitted(max_elements, omitted):
    text = graph_to_text(MODEL, max_elements).replace(", ", ",")
    for name, values in {"b": "0.5,-1", "axis": "1", "w": "1,2,3,4,5,6", "large": "1,2,3"}.items():
        assert name in text and (f"{name} =  {{{values}}}" not in text) == (name in omitted.split())


@pytest.mark.parametrize("size, shown", [(8, True), (9, False), (100_000, False)])
def test_large_constants_by_default(size, shown):
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[N] x) => (float[N] y) { y = Mul (x, w) }'
    )
    values = np.arange(size, dtype=np.float32)
    for raw in (True, False):
        del model.graph.initializer[:]
        if raw:
            model.graph.initializer.append(numpy_helper.from_array(values, "w"))
        else:
            tensor = helper.make_tensor("w", TensorProto.FLOAT, [size], values.tolist())
            model.graph.initializer.append(tensor)
        text = graph_to_text(model)
        assert (", 7" in text.replace(",7", ", 7")) == shown and len(text) < 200
        assert f"float[{size}] w" in text


def test_large_constants_in_nodes():
    model = parser.parse_model("""<ir_version: 8, opset_import: ["": 18, "ai.onnx.ml": 3]>
        g (float[N,3] x) => (float[N,1] y) {
          w = Constant <value_floats = [1.0, 2.0, 3.0]> ()
          v = Mul (x, w)
          y = ai.onnx.ml.LinearRegressor <coefficients = [0.5, 1.5, 2.5], targets = 1> (v)
        }""")
    tensor = numpy_helper.from_array(np.ones((40, 50), np.float32))
    model.graph.node.append(helper.make_node("Constant", [], ["large"], value=tensor))
    assert squeezed(graph_to_text(model, max_elements=2))[1:-1] == [
        'w = Constant <value_floats: string = "floats[3]"> ()',
        "v = Mul (x, w)",
        'y = ai.onnx.ml.LinearRegressor <coefficients: string = "floats[3]", targets: int = 1> (v)',
        'large = Constant <value: string = "float[40,50]"> ()',
    ]
    text = graph_to_text(model)
    assert "[1, 2, 3]" in text and len(text) < 400
