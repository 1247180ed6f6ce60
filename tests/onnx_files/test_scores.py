"""The raw scores of the loss are found for every form of probabilities."""

import numpy as np
import pytest
from onnx import parser
from scipy.special import expit, softmax

from ortlearn.graphs import extract_model, value_types
from ortlearn.models.scores import LOWEST
from ortlearn.onnx_files.scores import attach_scores
from ortlearn.onnx_files.weights import find_weights

X = np.random.RandomState(0).normal(size=(20, 2)).astype(np.float32)
W = "float[2,3] w = {1, -1, 0.5, 0.3, 2, -1}"
V = "float[2,1] v = {1, -2}"
ONE = "float one = {1}, int64[1] columns = {1}"
#: Bodies of graphs with the output p.
SOFTMAX = {
    "softmax": "z = MatMul (x, w) p = Softmax <axis = 1> (z)",
    "normalized twice": """z = MatMul (x, w) s = Softmax <axis = 1> (z) a = Abs (s) t = ReduceSum (a, columns)
        e = Equal (t, zero) u = Where (e, one, t) p = Div (s, u)""",
    "exponentials": "z = MatMul (x, w) e = Exp (z) t = ReduceSum (e, columns) p = Div (e, t)",
    "shifted": """z = MatMul (x, w) m = ReduceMax (z, columns) d = Sub (z, m) e = Exp (d)
        t = ReduceSum (e, columns) p = Div (e, t)""",
    "log sum": """z = MatMul (x, w) l = ReduceLogSumExp <keepdims = 0> (z, columns) r = Reshape (l, column)
        d = Sub (z, r) p = Exp (d)""",
    "behind idle nodes": """z = MatMul (x, w) i = Identity (z) s = Softmax <axis = 1> (i)
        p = Cast <to = 1> (s)""",
}
SIGMOIDS = {
    "each": "z = MatMul (x, w) p = Sigmoid (z)",
    "each over their sum": "z = MatMul (x, w) s = Sigmoid (z) t = ReduceSum (s, columns) p = Div (s, t)",
    "reciprocal": """z = MatMul (x, w) n = Mul (z, minus) e = Exp (n) a = Add (e, one) s = Reciprocal (a)
        t = ReduceSum (s, columns) p = Div (s, t)""",
    "members": """z = MatMul (x, w) a = Slice (z, none, columns, columns) b = Slice (z, columns, two, columns)
        c = Slice (z, two, three, columns) d = Sigmoid (a) e = Sigmoid (b) f = Sigmoid (c)
        g = Concat <axis = 1> (d, e, f) t = ReduceSum (g, columns) p = Div (g, t)""",
}
BINARY = {
    "one minus": "z = MatMul (x, v) s = Sigmoid (z) r = Sub (one, s) p = Concat <axis = 1> (r, s)",
    "quotient": """z = MatMul (x, v) n = Neg (z) e = Exp (n) a = Add (one, e) s = Div (one, a)
        r = Sub (one, s) p = Concat <axis = 1> (r, s)""",
    "opposite": "z = MatMul (x, v) n = Neg (z) c = Concat <axis = 1> (n, z) p = Sigmoid (c)",
    "of one member": """z = MatMul (x, v) s = Sigmoid (z) r = Sub (one, s) q = Concat <axis = 1> (r, s)
        m = Slice (q, columns, two, columns) n = Concat <axis = 1> (m) k = Sub (one, n)
        p = Concat <axis = 1> (k, n)""",
}
CONSTANTS = (
    f"{W}, {V}, {ONE}, float zero = {{0}}, float minus = {{-1}}, float half = {{0.5}}, "
    "int64[2] column = {-1, 1}, int64[1] none = {0}, int64[1] two = {2}, int64[1] three = {3}, "
    "int64[1,3] numbers = {0, 1, 2}, float sixth = {0.16666667}, "
    "float[3,3] rates = {0.75, 0.25, 0, 0.125, 0.875, 0, 0, 0.25, 0.75}"
)


def graph(body, columns, label="label = ArgMax <axis = 1, keepdims = 0> (p)"):
    return parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> '
        f"g (float[N,2] x) => (int64[N] label, float[N,{columns}] p) <{CONSTANTS}> {{ {body} {label} }}"
    )


def scores_of(model):
    return attach_scores(model, value_types(model), find_weights(model))


@pytest.fixture
def scores_and_probabilities(run_onnx):
    """Run a graph for its scores and probabilities."""

    def run(model, scores):
        return run_onnx(extract_model(model, [scores.score, "p"]), X)

    return run


@pytest.mark.parametrize("name", SOFTMAX)
def test_scores_before_a_softmax(name, scores_and_probabilities):
    model, scores = scores_of(graph(SOFTMAX[name], 3))
    assert (scores.score, scores.link, scores.n_outputs) == ("z", "softmax", 3)
    z, p = scores_and_probabilities(model, scores)
    np.testing.assert_allclose(softmax(z, axis=1), p, atol=1e-6)


@pytest.mark.parametrize("name", SIGMOIDS)
def test_one_vs_rest_scores(name, scores_and_probabilities):
    model, scores = scores_of(graph(SIGMOIDS[name], 3))
    assert (scores.link, scores.n_outputs) == ("sigmoid", 3)
    z, p = scores_and_probabilities(model, scores)
    rates = expit(z)
    expected = rates if name == "each" else rates / rates.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(expected, p, atol=1e-6)


@pytest.mark.parametrize("name", BINARY)
def test_binary_scores(name, scores_and_probabilities):
    model, scores = scores_of(graph(BINARY[name], 2))
    assert (scores.score, scores.link, scores.n_outputs) == ("z", "sigmoid", 1)
    z, p = scores_and_probabilities(model, scores)
    np.testing.assert_allclose(expit(z[:, 0]), p[:, 1], atol=1e-6)


UNLINKED = {
    "mean": """z = MatMul (x, w) s = Softmax <axis = 1> (z) n = Neg (x) q = MatMul (n, w)
        t = Softmax <axis = 1> (q) a = Add (s, t) p = Mul (a, half)""",
    "smoothed": "z = MatMul (x, w) s = Softmax <axis = 1> (z) h = Mul (s, half) p = Add (h, sixth)",
    "clipped": "z = MatMul (x, w) s = Softmax <axis = 1> (z) p = Clip (s, sixth, half)",
    "confused": "z = MatMul (x, w) s = Softmax <axis = 1> (z) p = MatMul (s, rates)",
    "one after the other": """z = MatMul (x, w) s = Sigmoid (z)
        a, b, c = Split <axis = 1, num_outputs = 3> (s)
        r = Sub (one, a) d = Mul (r, b) n = Sub (one, b) e = Mul (r, n) p = Concat <axis = 1> (a, d, e)""",
}


@pytest.mark.parametrize("name", UNLINKED)
def test_unlinked_probabilities_are_scored_by_their_logarithms(name, scores_and_probabilities):
    model, scores = scores_of(graph(UNLINKED[name], 3))
    assert scores.link == "softmax" and scores.score.startswith("head_")
    values, p = scores_and_probabilities(model, scores)
    np.testing.assert_allclose(values, np.log(np.maximum(p, LOWEST)), rtol=1e-5, atol=1e-6)


def test_votes_are_scored_by_their_confidences():
    body = """s = MatMul (x, w) a = Abs (s) b = Add (a, one) c = Mul (b, minus) d = Div (s, c)
        h = Greater (s, zero) votes = Cast <to = 1> (h) p = Add (votes, d)"""
    model = graph(body, 3)
    model, scores = scores_of(model)
    assert (scores.score, scores.link) == ("s", "softmax")


def test_scores_divided_by_their_sum():
    body = "z = MatMul (x, w) a = Abs (z) t = ReduceSum (a, columns) p = Div (z, t)"
    _, scores = scores_of(graph(body, 3))
    assert (scores.score, scores.link) == ("z", "sigmoid")


VOTES = """z = MatMul (x, w) m = Softmax <axis = 1> (z) best = ArgMax <axis = 1> (m)
    hit = Equal (best, numbers) like = Shape (m) ones = ConstantOfShape <value = float[1] {2}> (like)
    others = ConstantOfShape <value = float[1] {-1}> (like) vote = Where (hit, ones, others)
    p = Mul (vote, one)"""


@pytest.mark.slow
def test_votes_are_scored_by_member_probabilities(run_onnx, scores_and_probabilities):
    model, scores = scores_of(graph(VOTES, 3))
    values, p = scores_and_probabilities(model, scores)
    assert set(np.unique(p)) == {-1.0, 2.0}
    (members,) = run_onnx(extract_model(model, ["m"]), X)
    np.testing.assert_allclose(values, np.log(np.maximum(3 * members - 1, LOWEST)), rtol=1e-4, atol=1e-5)


def test_string_labels():
    body = "z = MatMul (x, w) p = Sigmoid (z)"
    model = graph(body, 3)
    model.graph.output[0].type.tensor_type.elem_type = 8
    model.graph.node[-1].output[0] = "number"
    model.graph.node.add(op_type="Gather", input=["names", "number"], output=["label"])
    tensor = model.graph.initializer.add(name="names", data_type=8, dims=[3])
    tensor.string_data.extend([b"a", b"b", b"c"])
    model, scores = scores_of(model)
    assert scores.label == "label" and value_types(model)["label"].elem_type == 8


def test_model_with_scores_is_unchanged():
    model = graph(SOFTMAX["softmax"], 3)
    assert scores_of(model)[0] is model
