"""onnx_derivative: options on both backends, and rejected arguments."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from ortlearn.differentiation import DerivativeOptions, cpp_builder, onnx_derivative
from ortlearn.differentiation.cpp_builder.runtime import pybind
from ortlearn.graphs import initializer_arrays, make_inputs_of
from ortlearn.runtime.devices import Device, ort_device, ort_vector
from ortlearn.runtime.sessions import make_session, session_options
from tests.differentiation.evaluation import run_onnxruntime
from tests.differentiation.models import parse

ORT = pytest.param("ort", marks=pytest.mark.needs_training)
BACKENDS = ["rules", ORT, "auto"]
O = DerivativeOptions  # noqa: E741

#: Graphs by name, in float64: an output read by others, unsorted weights, integers, unused weights.
GRAPHS = {
    "two outputs, one read by a node": """
        g (double[N,2] x, double[N,2] z) => (double[N,1] a, double[N,1] b)
        <double[2,1] w = {1.5, -2}, double[1] c = {0.5}>
        { a = MatMul (x, w) s = Mul (a, c) t = Tanh (s) m = MatMul (z, w) b = Add (t, m) }""",
    "weights in no order": """
        g (double[N,2] x) => (double[N,3] y)
        <double[2,3] zebra = {1, -2, 3, 0.5, 1, 2}, double[3] ant = {3, 0, -1}, double[3] mouse = {1, 2, 0.5}>
        { p = MatMul (x, zebra) q = Add (p, ant) r = Sigmoid (q) y = Mul (r, mouse) }""",
    "integers": """
        g (double[N,2] x, int64[1] k) => (int64[2] first, double[K,2] y, bool[N,2] last)
        <double[2] w = {1, 2}>
        { s = Mul (x, w) first = Shape (s) y = Gather (s, k) last = Greater (s, w) }""",
    "a weight and an input off the way": """
        g (double[N,2] x, double[N,3] apart) => (double[N,2] y, double[N,3] z)
        <double[2] w = {1, 2}, double[4] unused = {1, 2, 3, 4}, double[2] beside = {1, 1}>
        { e = Exp (x) y = Mul (e, w) k = Shape (apart) z = ConstantOfShape <value = double[1] {0.5}> (k)
        q = Add (w, beside)
        }""",
}
CLASH = """
    g (double[N,2] x) => (double[N,2] y, double[N,2] y_grad) <double[2] w = {1, 2}>
    { y = Mul (x, w) y_grad = Exp (y) }"""
LOSS = """
    g (float[N,2] x, float[N,1] label) => (float loss, float[N,1] y)
    <float[2,1] w = {1, 2}, float[1] b = {3}>
    { p = MatMul (x, w) y = Add (p, b) d = Sub (y, label) s = Mul (d, d)
      loss = ReduceSum <keepdims = 0> (s) }"""
LINE = "g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, 2}, float[1] b = {3}> "
LINEAR = parse(LINE + "{ z = MatMul (x, w) y = Add (z, b) }")


def names(values):
    return [value.name for value in values]


def is_float(value):
    return value.type.tensor_type.elem_type in (TensorProto.FLOAT, TensorProto.DOUBLE)


def data_of(model, n_samples=5):
    """Return the inputs of a model with weights as inputs, including initial weights."""
    rng = np.random.default_rng(0)
    feeds = {}
    for value in model.graph.input:
        shape = [dim.dim_value or n_samples for dim in value.type.tensor_type.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        feeds[value.name] = rng.normal(size=shape).astype(dtype)
        if dtype == np.int64:
            feeds[value.name] = np.array([1], dtype)
    return {**feeds, **initializer_arrays(model)}


def finite_differences(model, feeds, seeds, wrt):
    """Return the gradient of the sum of outputs times seeds, by central differences in float64."""
    open_model = make_inputs_of(model, [t.name for t in model.graph.initializer])
    outputs = names(model.graph.output)

    def value(changed):
        found = dict(zip(outputs, run_onnxruntime(open_model, {**feeds, **changed}), strict=True))
        return sum((found[name] * seed).sum() for name, seed in seeds.items())

    gradients = []
    for name in wrt:
        gradient = np.zeros_like(feeds[name])
        for index in np.ndindex(gradient.shape):
            step = np.zeros_like(gradient)
            step[index] = 1e-6
            gradient[index] = (value({name: feeds[name] + step}) - value({name: feeds[name] - step})) / 2e-6
        gradients.append(gradient)
    return gradients


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("options", [O.Zero, O.KeepOutputs, O.KeepOutputs | O.FillGrad], ids=str)
@pytest.mark.parametrize("name", GRAPHS)
def test_names_and_values(name, options, backend):
    model = parse(GRAPHS[name])
    before = model.SerializeToString()
    onx = onnx_derivative(model, options=options, backend=backend)
    assert model.SerializeToString() == before
    onnx.checker.check_model(onx)
    weights = names(model.graph.initializer)
    wrt = [value.name for value in model.graph.input if is_float(value)] + weights
    outputs = [value.name for value in model.graph.output if is_float(value)]
    inputs, kept = names(model.graph.input) + weights, []
    ones = O.FillGrad in options
    seed_names = [] if ones else names(onx.graph.input)[len(inputs) :]
    assert names(onx.graph.input) == inputs + seed_names
    assert seed_names == ([] if ones else [f"{output}_grad" for output in outputs])
    if O.KeepOutputs in options:
        kept = names(model.graph.output)
    assert names(onx.graph.output) == kept + [f"{tensor}_grad" for tensor in wrt]

    feeds = data_of(model)
    rng = np.random.default_rng(1)
    expected = run_onnxruntime(model, {k: feeds[k] for k in names(model.graph.input)})
    shapes = dict(zip(names(model.graph.output), map(np.shape, expected), strict=True))
    seeds = {out: np.ones(shapes[out]) if ones else rng.normal(size=shapes[out]) for out in outputs}
    given = {} if ones else dict(zip(seed_names, seeds.values(), strict=True))
    results = run_onnxruntime(onx, {**{k: feeds[k] for k in inputs}, **given})
    for got, value in zip(results, expected if kept else [], strict=False):
        np.testing.assert_allclose(got, value, rtol=1e-12)
    gradients = results[len(kept) :]
    for got, value in zip(gradients, finite_differences(model, feeds, seeds, wrt), strict=True):
        assert got.dtype == np.float64 and got.shape == value.shape
        np.testing.assert_allclose(got, value, rtol=1e-6, atol=1e-7)


def test_outputs_have_types_and_shapes():
    for backend in ["rules"] + ["ort"] * cpp_builder.is_available():
        onx = onnx_derivative(LINEAR, options=O.KeepOutputs, backend=backend)
        kinds = [[d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in onx.graph.output]
        assert kinds == [["N", 1], ["N", 2], [2, 1], [1]]


def run_agent(onx, feeds, seeds):
    """Return the outputs and the gradients of a graph with a YieldOp, by the TrainingAgent."""
    device = ort_device(Device("cpu"))
    options = session_options()
    options.enable_mem_reuse = options.enable_mem_pattern = False
    session = make_session(onx, Device("cpu"), options=options)
    order, found = names(session.get_inputs()), names(onx.graph.output)
    agent = pybind().TrainingAgent(
        session._sess, order, [device] * len(seeds), found, [device] * len(found), 0
    )
    state, cache = pybind().PartialGraphExecutionState(), pybind().OrtValueCache()
    outputs, gradients = ort_vector([], []), ort_vector([], [])
    agent.run_forward(ort_vector([feeds[n] for n in order], [device] * len(order)), outputs, state, cache)
    kept = [value.numpy().copy() for value in outputs]
    agent.run_backward(ort_vector(seeds, [device] * len(seeds)), gradients, state)
    return kept, [value.numpy() for value in gradients]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", GRAPHS)
def test_yield_op(name, backend):
    model = parse(GRAPHS[name])
    onx = onnx_derivative(model, options=O.KeepYieldOp, backend=backend)
    (node,) = [node for node in onx.graph.node if node.op_type == "YieldOp"]
    assert node.domain == "com.microsoft" and list(node.input) == names(model.graph.output)
    weights = names(model.graph.initializer)
    assert names(onx.graph.input) == names(model.graph.input) + weights
    wrt = [value.name for value in model.graph.input if is_float(value)] + weights
    assert names(onx.graph.output) == [f"{tensor}_grad" for tensor in wrt]
    assert [item.domain for item in onx.opset_import].count("com.microsoft") == 1


@pytest.mark.needs_training
@pytest.mark.parametrize("backend", ["rules", "ort"])
def test_yield_op_runs(backend):
    model = parse(GRAPHS["two outputs, one read by a node"])
    onx = onnx_derivative(model, options=O.KeepYieldOp, backend=backend)
    feeds = data_of(model)
    rng = np.random.default_rng(1)
    seeds = [rng.normal(size=(5, 1)), rng.normal(size=(5, 1))]
    outputs, gradients = run_agent(onx, feeds, seeds)
    plain = onnx_derivative(model, options=O.KeepOutputs, backend="rules")
    expected = run_onnxruntime(plain, {**feeds, "a_grad": seeds[0], "b_grad": seeds[1]})
    for got, value in zip([*outputs, *gradients], expected, strict=True):
        np.testing.assert_allclose(got, value, rtol=1e-6)


@pytest.mark.parametrize(
    "options, message",
    [
        (O.KeepYieldOp | O.KeepOutputs, "KeepYieldOp cannot be combined"),
        (O.KeepYieldOp | O.FillGrad, "KeepYieldOp cannot be combined"),
        (O.KeepYieldOp | O.Loss, "KeepYieldOp cannot be combined"),
        (O.KeepYieldOp | O.KeepOutputs | O.FillGrad, "KeepYieldOp cannot be combined"),
        (O.FillGrad, "FillGrad requires KeepOutputs: pass"),
        (O.FillGrad | O.Loss, "FillGrad requires KeepOutputs"),
        (O.FillGrad | O.Loss | O.KeepOutputs, "remove FillGrad"),
        (0, "options must be DerivativeOptions"),
        ("Zero", "options must be DerivativeOptions"),
        (None, "options must be DerivativeOptions"),
    ],
)
def test_incompatible_options(options, message):
    with pytest.raises(ValueError, match=message):
        onnx_derivative(LINEAR, options=options)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"weights": ["nothing"]}, r"weights: \['nothing'\] are not .* weights are \['w', 'b'\]"),
        ({"weights": ["x"]}, r"weights: \['x'\] are not floating-point weights"),
        ({"inputs": ["w"]}, r"inputs: \['w'\] are not floating-point inputs .* inputs are \['x'\]"),
        ({"inputs": [], "weights": []}, "no floating-point input or weight"),
        ({"loss": "y"}, "loss and label require options=DerivativeOptions.Loss"),
        ({"label": "x"}, "loss and label require"),
        ({"options": O.Loss}, r"'y' has shape \('N', 1\), but only scalars"),
        (
            {"options": O.Loss, "loss": "z"},
            r"loss='z' is not an output of the graph; its outputs are \['y'\]",
        ),
        ({"options": O.Loss, "label": "z"}, "label='z' is not an input"),
        ({"backend": "torch"}, "'torch' is unknown"),
        ({"backend": "torch", "options": O.KeepYieldOp}, "'torch' is unknown"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        onnx_derivative(LINEAR, **arguments)


def test_integer_inputs_are_rejected():
    model = parse(GRAPHS["integers"])
    with pytest.raises(ValueError, match=r"inputs: \['k'\] are not floating-point inputs"):
        onnx_derivative(model, inputs=["k"])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_loss(named, keep, backend, tmp_path, capsys):
    path = tmp_path / "gradient.onnx"
    options = O.Loss | O.KeepOutputs if keep else O.Loss
    arguments = {"loss": "loss", "label": "label"} if named else {}
    onx = onnx_derivative(
        parse(LOSS), options=options, path_name=path, verbose=1, backend=backend, **arguments
    )
    assert onnx.load(path) == onx
    assert capsys.readouterr().out == f"[onnx_derivative] 5 nodes -> {len(onx.graph.node)} nodes\n"
    assert names(onx.graph.input) == ["x", "label", "w", "b"]
    columns = ["x"] if named else ["x", "label"]
    gradients = [f"{name}_grad" for name in (*columns, "w", "b")]
    assert names(onx.graph.output) == ["loss", *(["y"] if keep else []), *gradients]
    rng = np.random.default_rng(0)
    feeds = {"x": rng.normal(size=(7, 2)), "label": rng.normal(size=(7, 1)), "w": rng.normal(size=(2, 1)),
             "b": rng.normal(size=1)}  # fmt: skip
    feeds = {name: value.astype(np.float32) for name, value in feeds.items()}
    found = dict(zip(names(onx.graph.output), run_onnxruntime(onx, feeds), strict=True))
    predicted = feeds["x"] @ feeds["w"] + feeds["b"]
    slope = 2 * (predicted - feeds["label"])
    expected = {
        "loss": ((predicted - feeds["label"]) ** 2).sum(),
        "y": predicted,
        "x_grad": slope @ feeds["w"].T,
        "label_grad": -slope,
        "w_grad": feeds["x"].T @ slope,
        "b_grad": slope.sum(axis=0),
    }
    for name, value in found.items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-4, atol=1e-5)


def test_quiet_by_default(capsys):
    onnx_derivative(LINEAR)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("options", [O.Zero, O.KeepYieldOp, O.Loss], ids=str)
@pytest.mark.parametrize(
    "weights, inputs, expected",
    [
        (["b"], [], ["b"]),
        (["b"], None, ["x", "b"]),
        ([], ["x"], ["x"]),
        (None, [], ["w", "b"]),
        (["b", "w"], [], ["b", "w"]),
    ],
)
def test_some_weights_and_inputs(weights, inputs, expected, options, backend):
    loss = {"label": "label"} if options == O.Loss else {}
    model = parse(LOSS) if loss else LINEAR
    onx = onnx_derivative(model, weights, inputs, options, backend=backend, **loss)
    gradients = [name for name in names(onx.graph.output) if name != "loss"]
    assert gradients == [f"{name}_grad" for name in expected]
    open_weights = [name for name in expected if name not in ("x", "label")]
    assert set(open_weights) == set(names(onx.graph.input)) & {"w", "b"}
    assert not set(open_weights) & set(names(onx.graph.initializer))


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradient_is_zero_without_a_path_to_an_output(backend):
    model = parse("g (double[N] x, double[N] z) => (double[N] y) { y = Neg (z) }")
    onx = onnx_derivative(model, inputs=["x"], backend=backend)
    feeds = {"x": np.ones(3), "z": np.ones(3), "y_grad": np.ones(3)}
    np.testing.assert_array_equal(run_onnxruntime(onx, feeds)[0], np.zeros(3))


def test_missing_gradient_is_zero():
    onx = onnx_derivative(parse("g (double[N] x) => (double[N] y) { f = Floor (x) y = Mul (f, f) }"))
    x = np.array([1.5, -2.5])
    np.testing.assert_array_equal(run_onnxruntime(onx, {"x": x, "y_grad": np.ones(2)})[0], [0, 0])


@pytest.mark.parametrize("backend", ["rules", "auto"])
def test_gradients_are_renamed_not_outputs(backend):
    onx = onnx_derivative(parse(CLASH), options=O.KeepOutputs, backend=backend)
    inputs, outputs = names(onx.graph.input), names(onx.graph.output)
    assert inputs[:2] == ["x", "w"] and outputs == ["y", "y_grad", "x_grad", "w_grad"]
    assert len(set(inputs + outputs)) == 8
    x, w, seeds = np.array([[0.5, -1]]), np.array([1.0, 2]), [np.array([[3.0, 4]]), np.array([[5.0, 6]])]
    y, exp, of_x, of_w = run_onnxruntime(onx, dict(zip(inputs, [x, w, *seeds], strict=True)))
    np.testing.assert_allclose(exp, np.exp(y))
    of_y = seeds[0] + seeds[1] * exp
    np.testing.assert_allclose(of_x, of_y * w)
    np.testing.assert_allclose(of_w, (of_y * x)[0])


def test_gradient_graph_is_differentiable():
    model = parse(GRAPHS["weights in no order"])
    first = onnx_derivative(model, [], ["x"], O.KeepOutputs | O.FillGrad, backend="rules")
    second = onnx_derivative(first, [], ["x"], backend="rules")
    assert names(second.graph.input) == ["x", "y_grad", "x_grad_grad"]
    assert len(second.graph.output) == 1
    x, rng = np.array([[0.1, -0.2], [0.3, 0.5]]), np.random.default_rng(0)
    seed = rng.normal(size=x.shape)
    zero = np.zeros((2, 3))
    (got,) = run_onnxruntime(second, {"x": x, "y_grad": zero, "x_grad_grad": seed})
    for index in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[index] = 1e-5
        high, low = ((run_onnxruntime(first, {"x": x + sign * step})[1] * seed).sum() for sign in (1, -1))
        np.testing.assert_allclose(got[index], (high - low) / 2e-5, rtol=1e-6, atol=1e-8)
