"""Gradients and directional derivatives of graphs compose."""

import numpy as np
import onnxruntime
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

from ortlearn.exceptions import GradientError
from ortlearn.transforms import NotBatchable, batched, directional, gradient

RNG = np.random.default_rng(0)


def graph(inputs, outputs, nodes, weights=""):
    weights = f"<{weights}>" if weights else ""
    return parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 18]> g ({inputs}) => ({outputs}) {weights} {{ {nodes} }}'
    )


def run(model, *arrays):
    names = [value.name for value in model.graph.input]
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip(names, arrays, strict=True)))


# y = x^3 by two products, and z = sum of exp(x)
CUBE = graph(
    "double[N] x",
    "double[N] y, double z",
    "s = Mul (x, x) y = Mul (s, x) e = Exp (x) z = ReduceSum <keepdims=0> (e)",
)


def test_compositions():
    x, v, w, u = RNG.normal(size=(4, 3))
    first = gradient(CUBE, outputs=["y"])
    np.testing.assert_allclose(run(first, x, u)[0], 3 * x**2 * u)
    np.testing.assert_allclose(run(directional(CUBE), x, v)[0], 3 * x**2 * v)
    np.testing.assert_allclose(run(directional(CUBE), x, v)[1], np.exp(x) @ v)
    second = gradient(first, wrt=["x"])
    np.testing.assert_allclose(run(second, x, u, v)[0], 6 * x * u * v)
    along = directional(first, wrt=["x"])
    assert [value.name for value in along.graph.input] == ["x", "y_grad", "x_direction"]
    np.testing.assert_allclose(run(along, x, u, v)[0], 6 * x * u * v)
    third = directional(along, wrt=["x"])
    np.testing.assert_allclose(run(third, x, u, v, w)[0], 6 * u * v * w)
    kept = directional(CUBE, outputs=["z"], keep_outputs=True)
    np.testing.assert_allclose(run(kept, x, v), [np.exp(x).sum(), np.exp(x) @ v])
    assert [value.name for value in kept.graph.output] == ["z", "z_directional"]


def test_the_vector_of_the_first_gradient_is_not_computed():
    nodes = [node.op_type for node in directional(CUBE, outputs=["z"]).graph.node]
    assert nodes.count("Exp") == 1 and len(nodes) <= 8


def test_gradients_of_single_samples():
    model = graph(
        "double[1,3] x",
        "double[1,1] y",
        "h = MatMul (x, a) t = Tanh (h) y = MatMul (t, b)",
        "double[3,2] a = {1,2,3,4,5,6}, double[2,1] b = {1,-1}",
    )
    single, x = gradient(model, wrt=["a", "b"]), RNG.normal(size=(5, 1, 3))
    found = run(batched(single, 5), x, np.ones((5, 1, 1)))
    for number, row in enumerate(x):
        for part, expected in zip(found, run(single, row, np.ones((1, 1))), strict=True):
            np.testing.assert_allclose(part[number], expected, rtol=1e-12)
    shared = run(batched(single, 5, inputs=["x"]), x, np.ones((1, 1)))
    np.testing.assert_allclose(shared[0], found[0])


def test_an_ensemble_is_one_graph():
    weights = RNG.normal(size=(4, 2))
    members = [
        graph(
            "float[N,2] x",
            "float[N,1] y",
            "z = MatMul (x, w) y = Sigmoid (z)",
            f"float[2,1] w = {{{a}, {b}}}",
        )
        for a, b in weights
    ]
    x = RNG.normal(size=(3, 2)).astype(np.float32)
    ensemble = batched(members)
    expected = np.stack([run(member, x)[0] for member in members])
    np.testing.assert_allclose(run(ensemble, x)[0], expected, rtol=1e-6)
    slopes = run(gradient(ensemble), x, np.ones((4, 3, 1), np.float32))[0]
    of_members = sum(run(gradient(member), x, np.ones((3, 1), np.float32))[0] for member in members)
    np.testing.assert_allclose(slopes, of_members, rtol=1e-5)


def test_zeros_of_the_first_vector_have_the_shape_of_the_output():
    # the rule of Softplus in float64 and a broadcast need the type of the gradient of the output
    model = graph("double[N,2] x, double[2] w", "double[N,2] y", "z = Mul (x, w) y = Softplus (z)")
    x, w, v, t = RNG.normal(size=(3, 2)), RNG.normal(size=2), RNG.normal(size=(3, 2)), RNG.normal(size=2)
    expected = (v * w + x * t) / (1 + np.exp(-x * w))
    np.testing.assert_allclose(run(directional(model), x, w, v, t)[0], expected, rtol=1e-9)


def test_names_that_are_taken():
    model = graph("float x, float x_direction", "float y", "y = Mul (x, x_direction)")
    found = directional(model, wrt=["x"])
    assert [value.name for value in found.graph.input] == ["x", "x_direction", "x_direction_"]
    values = dict(zip(["x", "x_direction", "x_direction_"], np.float32([2, 3, 5]), strict=True))
    assert ReferenceEvaluator(found).run(None, values)[0] == 15


def test_errors():
    with pytest.raises(GradientError, match=r"onnx.ModelProto, not str"):
        gradient("model.onnx")
    with pytest.raises(
        GradientError, match=r"\['q'\] are not among its floating-point outputs, \['y', 'z'\]"
    ):
        directional(CUBE, outputs=["q"])
    with pytest.raises(GradientError, match="'q' is not a tensor"):
        gradient(CUBE, wrt=["q"])
    with pytest.raises(ValueError, match="positive number of copies"):
        batched(CUBE)
    with pytest.raises(ValueError, match=r"\['q'\] are not inputs"):
        batched(CUBE, 2, inputs=["q"])
    with pytest.raises(NotBatchable, match="differ in more than the values"):
        batched([CUBE, graph("double[N] x", "double[N] y", "y = Exp (x)")])
