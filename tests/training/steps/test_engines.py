"""SplitEngine gives the results of the Agent, and reuses memory."""

import gc
import weakref

import numpy as np
import pytest
from onnx import parser

from ortlearn.differentiation.cpp_builder import Agent
from ortlearn.exceptions import GradientError
from ortlearn.runtime.devices import Device, ort_device, ort_vector
from ortlearn.training.steps.engines import SplitEngine, make_engine

CPU = Device("cpu")
DEVICE = ort_device(CPU)
ORT = pytest.param("ort", marks=pytest.mark.needs_training)

#: Graphs, and their inputs with a gradient; names of weights begin with w.
GRAPHS = {
    "linear": (
        "g (float[N,3] x) => (float[N,1] y) <float[3,1] w0 = {1, -2, 3}, float[1] w1 = {0.5}> "
        "{ p = MatMul (x, w0) y = Add (p, w1) }", ["x"]),
    "network": (
        "g (float[N,3] x) => (float[N,1] y) "
        "<float[3,2] w0 = {1, -2, 3, 0.5, 1, -1}, float[2] w1 = {0.5, 0.1}, float[2,1] w2 = {1, -1}> "
        "{ p = MatMul (x, w0) s = Add (p, w1) h = Tanh (s) y = MatMul (h, w2) }", ["x"]),
    "two outputs, one read by the other": (
        "g (float[N,3] x) => (float[N,1] a, float[N,1] b) <float[3,1] w0 = {1, -2, 3}, float[1] w1 = {2}> "
        "{ a = MatMul (x, w0) s = Sigmoid (a) b = Mul (s, w1) }", ["x"]),
    "no gradient of the inputs": (
        "g (float[N,3] x, float[N,1] z) => (float[N,1] y) <float[3,1] w0 = {1, -2, 3}> "
        "{ p = MatMul (x, w0) e = Exp (p) y = Mul (e, z) }", []),
    "the gradient of one input of two": (
        "g (float[N,3] x, float[N,1] z) => (float[N,1] y) <float[3,1] w0 = {1, -2, 3}> "
        "{ p = MatMul (x, w0) t = Tanh (p) y = Mul (t, z) }", ["z"]),
    "an output that is its own gradient's value": (
        "g (float[N,3] x) => (float[N,3] y) <float[3] w0 = {1, -2, 3}> { p = Mul (x, w0) y = Sigmoid (p) }",
        ["x"]),
}  # fmt: skip


def parse(text):
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {text}')


def engine_of(name, gradient="rules"):
    text, wrt = GRAPHS[name]
    model = parse(text)
    weights = [tensor.name for tensor in model.graph.initializer]
    inputs = [value.name for value in model.graph.input]
    return make_engine(gradient, model, inputs, weights, wrt, CPU, {})


def vector(arrays):
    return ort_vector(list(arrays), [DEVICE] * len(arrays))


def draw(engine, n_samples, seed=0):
    """Return feeds, and gradients of the outputs."""
    rng = np.random.default_rng(seed)

    def array(info):
        shape = [dim if isinstance(dim, int) else n_samples for dim in info.shape]
        return rng.normal(size=shape).astype(np.float32)

    session = engine.forward_session
    known = {info.name: info for info in session.get_inputs()}
    return [array(known[n]) for n in engine.feed_names], [array(info) for info in session.get_outputs()]


def forward_and_backward(engine, feeds, gradients):
    """Return copies of the outputs and gradients, with new vectors."""
    outputs, results = ort_vector([], []), ort_vector([], [])
    state = engine.forward(vector(feeds), outputs)
    engine.backward(vector(gradients), results, state)
    return [value.numpy().copy() for value in (*outputs, *results)]


def assert_close(found, expected):
    assert len(found) == len(expected)
    for got, value in zip(found, expected, strict=True):
        assert got.shape == value.shape and got.dtype == value.dtype
        np.testing.assert_allclose(got, value, rtol=1e-4, atol=1e-5)


def expected_of(name, feeds, gradients):
    """Return outputs and gradients computed with numpy in float64."""
    values = [np.asarray(feed, np.float64) for feed in feeds]
    x, slopes = values[0], [np.asarray(gradient, np.float64) for gradient in gradients]
    if name == "linear":
        w0, w1 = values[1:]
        return [x @ w0 + w1, slopes[0] @ w0.T, x.T @ slopes[0], slopes[0].sum(axis=0)]
    w0, w1 = values[1:]
    a = x @ w0
    sigmoid = 1 / (1 + np.exp(-a))
    of_a = slopes[0] + slopes[1] * w1 * sigmoid * (1 - sigmoid)
    return [a, sigmoid * w1, of_a @ w0.T, x.T @ of_a, (slopes[1] * sigmoid).sum(axis=0)]


@pytest.mark.parametrize("gradient", ["rules", "auto", ORT])
@pytest.mark.parametrize("name", ["linear", "two outputs, one read by the other"])
def test_results_equal_numpy(name, gradient):
    engine = engine_of(name, gradient)
    feeds, gradients = draw(engine, 5)
    expected = [value.astype(np.float32) for value in expected_of(name, feeds, gradients)]
    assert_close(forward_and_backward(engine, feeds, gradients), expected)


@pytest.mark.needs_training
@pytest.mark.parametrize("name", GRAPHS)
def test_equal_to_the_agent(name):
    agent, split = engine_of(name, "ort"), engine_of(name, "rules")
    assert isinstance(agent, Agent) and isinstance(split, SplitEngine)
    for attribute in ("feed_names", "output_names", "gradient_names"):
        assert getattr(agent, attribute) == getattr(split, attribute)
    for n_samples in (5, 1, 8, 5):
        feeds, gradients = draw(split, n_samples, seed=n_samples)
        assert_close(
            forward_and_backward(split, feeds, gradients), forward_and_backward(agent, feeds, gradients)
        )


@pytest.mark.parametrize("name", GRAPHS)
def test_names_and_models(name):
    engine = engine_of(name)
    text, wrt = GRAPHS[name]
    weights = [tensor.name for tensor in parse(text).graph.initializer]
    assert engine.gradient_names == [f"{tensor}_grad" for tensor in (*wrt, *weights)]
    assert set(engine.models) == {"training", "forward", "backward"}
    assert not any(node.domain for model in engine.models.values() for node in model.graph.node)


def prepared(engine, n_samples, seed=0):
    """Return arrays, and vectors that share their memory: feeds, outputs, gradients, results."""
    feeds, gradients = draw(engine, n_samples, seed)
    outputs, *rest = ([np.zeros_like(a) for a in group] for group in (gradients,))
    known = dict(zip(engine.feed_names, feeds, strict=True))
    results = [np.zeros_like(known[name.removesuffix("_grad")]) for name in engine.gradient_names]
    arrays = (feeds, outputs, gradients, results)
    return arrays, tuple(map(vector, arrays))


def saved_pointers(state):
    return [value.data_ptr() for value in state.values.values()]


@pytest.mark.parametrize("name", GRAPHS)
def test_the_same_vectors_use_the_same_memory(name):
    engine = engine_of(name)
    arrays, vectors = prepared(engine, 6)
    seen = set()
    for seed in range(4):
        feeds, gradients = draw(engine, 6, seed)
        for old, new in zip((*arrays[0], *arrays[2]), (*feeds, *gradients), strict=True):
            old[...] = new
        state = engine.forward(vectors[0], vectors[1])
        engine.backward(vectors[2], vectors[3], state)
        seen.add(tuple(saved_pointers(state)))
        assert_close([*arrays[1], *arrays[3]], forward_and_backward(engine, feeds, gradients))
    assert len(seen) == 1
    assert {array.ctypes.data for array in (*arrays[0], *arrays[1])} <= set(next(iter(seen)))


@pytest.mark.parametrize("gradient", ["rules", ORT])
def test_batch_sizes_alternate(gradient):
    engine = engine_of("network", gradient)
    sets = {n_samples: prepared(engine, n_samples, seed=n_samples) for n_samples in (8, 3, 1)}
    for n_samples in (8, 3, 8, 8, 1, 3, 1, 8):
        arrays, vectors = sets[n_samples]
        for array in (*arrays[1], *arrays[3]):
            array[...] = np.nan
        state = engine.forward(vectors[0], vectors[1])
        engine.backward(vectors[2], vectors[3], state)
        assert_close([*arrays[1], *arrays[3]], forward_and_backward(engine, arrays[0], arrays[2]))


def test_more_vectors_than_are_kept():
    engine = engine_of("network")
    sets = [prepared(engine, n_samples, seed=n_samples) for n_samples in range(1, SplitEngine.MAX_KEPT + 5)]
    for _ in range(2):
        for arrays, vectors in sets:
            state = engine.forward(vectors[0], vectors[1])
            engine.backward(vectors[2], vectors[3], state)
            assert_close([*arrays[1], *arrays[3]], forward_and_backward(engine, arrays[0], arrays[2]))
            assert engine._kept_pair.cache_info().currsize <= SplitEngine.MAX_KEPT


def test_new_vectors_each_call():
    engine = engine_of("network")
    kept = []
    for seed in range(5):
        feeds, gradients = draw(engine, 4, seed)
        outputs, results = ort_vector([], []), ort_vector([], [])
        state = engine.forward(vector(feeds), outputs)
        engine.backward(vector(gradients), results, state)
        values = [*outputs, *results]
        kept.append((values, [value.numpy().copy() for value in values]))
    for values, copies in kept:  # results are not overwritten
        for value, copied in zip(values, copies, strict=True):
            np.testing.assert_array_equal(value.numpy(), copied)
    assert not engine._kept_pair.cache_info().currsize


@pytest.mark.slow
def test_new_gradients_each_call_are_not_kept():
    engine = engine_of("linear")
    arrays, vectors = prepared(engine, 4)
    references = []
    for seed in range(20 * SplitEngine.MAX_KEPT):
        gradients = draw(engine, 4, seed)[1]
        references.append(weakref.ref(gradients[0]))
        state = engine.forward(vectors[0], vectors[1])
        engine.backward(vector(gradients), vectors[3], state)
        if seed % 100 == 0:
            expected = forward_and_backward(engine, arrays[0], gradients)
            assert_close([*arrays[1], *arrays[3]], expected)
    del gradients
    gc.collect()
    assert sum(reference() is not None for reference in references) <= SplitEngine.MAX_KEPT + 1


@pytest.mark.parametrize("gradient", ["rules", ORT])
def test_two_forward_calls_before_backward(gradient):
    engine = engine_of("network", gradient)
    arrays, vectors = prepared(engine, 4)
    first = engine.forward(vectors[0], vectors[1])
    expected = forward_and_backward(engine, arrays[0], arrays[2])
    arrays_2, vectors_2 = prepared(engine, 6, seed=1)
    second = engine.forward(vectors_2[0], vectors_2[1])
    engine.backward(vectors[2], vectors[3], first)
    engine.backward(vectors_2[2], vectors_2[3], second)
    assert_close([*arrays[1], *arrays[3]], expected)
    assert_close([*arrays_2[1], *arrays_2[3]], forward_and_backward(engine, arrays_2[0], arrays_2[2]))


@pytest.mark.parametrize("gradient", ["rules", ORT])
def test_backward_of_the_first_of_two_calls_with_the_same_vectors(gradient):
    text = ("g (float[N,3] x) => (float[N,1] y) <float[3,1] w0 = {1, -2, 3}, float[1,1] w1 = {0.5}> "
            "{ p = MatMul (x, w0) h = Tanh (p) y = MatMul (h, w1) }")  # fmt: skip
    engine = make_engine(gradient, parse(text), ["x"], ["w0", "w1"], [], CPU, {})
    arrays, vectors = prepared(engine, 4)
    first = engine.forward(vectors[0], vectors[1])
    hidden = np.tanh(arrays[0][0] @ arrays[0][1])
    arrays[0][1] *= -2  # input of the hidden layer
    second = engine.forward(vectors[0], vectors[1])
    results = ort_vector([], [])
    engine.backward(vectors[2], results, second)
    engine.backward(vectors[2], vectors[3], first)
    np.testing.assert_allclose(arrays[3][1], hidden.T @ arrays[2][0], rtol=1e-4, atol=1e-5)
    hidden = np.tanh(arrays[0][0] @ arrays[0][1])
    np.testing.assert_allclose(results[1].numpy(), hidden.T @ arrays[2][0], rtol=1e-4, atol=1e-5)


def test_auto_uses_rules():
    for gradient in ("rules", "auto"):
        assert isinstance(engine_of("linear", gradient), SplitEngine)


def test_operators_without_gradient_in_any_backend():
    head = "g (float[N,3] x) => (float[N,3] y) <float[3] w0 = {1, 2, 3}>"
    text = head + "{ p = Mul (x, w0) [my_node] y = OP (p) }"

    def make(operator, gradient="auto"):
        return make_engine(gradient, parse(text.replace("OP", operator)), ["x"], ["w0"], [], CPU, {})

    assert isinstance(make("LpNormalization"), SplitEngine)
    with pytest.raises(GradientError, match="Det.*my_node"):
        make("Det")
    with pytest.raises(GradientError, match="Det.*my_node"):
        make("Det", "rules")


def test_saved_tensors_of_changing_shape():
    """A Loop saves a tensor per iteration; the number of iterations depends on the weights."""
    text = (
        "g (float[N,3] x) => (float[N,1] y) <float[3,1] w0 = {1, -2, 3}> { p = MatMul (x, w0) "
        "c = Sigmoid (p) most = Constant <value_int = 9> () y = Loop (most, , c) "
        "<body = turn (int64 i, bool go, float[N,1] a) => (bool on, float[N,1] b) { b = Mul (a, p) "
        "s = Abs (b) m = ReduceMax <keepdims = 0> (s) limit = Constant <value_float = 50.0> () "
        "on = Less (m, limit) }> }"
    )
    engine = make_engine("rules", parse(text), ["x"], ["w0"], ["x"], CPU, {})
    rng = np.random.default_rng(0)
    feeds = [rng.normal(size=(4, 3)).astype(np.float32), np.ones((3, 1), np.float32)]
    arrays = [*feeds, np.zeros((4, 1), np.float32), np.ones((4, 1), np.float32)]
    results = [np.zeros_like(array) for array in feeds]
    vectors = [vector(feeds), vector(arrays[2:3]), vector(arrays[3:]), vector(results)]
    for scale in (1.0, 3.0, 0.2):
        feeds[1][:] = scale
        state = engine.forward(vectors[0], vectors[1])
        engine.backward(vectors[2], vectors[3], state)
        assert_close([arrays[2], *results], forward_and_backward(engine, feeds, arrays[3:]))
