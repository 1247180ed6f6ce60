"""ONNX files are opened in the same way for derivatives and estimators."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from sklearn.linear_model import Ridge

from ortlearn import OrtGradientOptimizer, onnx_files
from ortlearn.differentiation import onnx_derivative
from ortlearn.exceptions import ConversionError, ExecutionError, GradientError
from ortlearn.graphs import opset_versions

X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
y = X @ np.array([[1, 2], [-1, 0], [3, 1]], np.float32)
VALUES = "{0.1, 0.2, 0.3, 0.4, 0.5, 0.6}"
CONSTANT = f"""g (float[N,3] x) => (float[N,2] y) {{
    w = Constant <value = float[3,2] {VALUES}> () two = Constant <value = float {{2}}> ()
    z = MatMul (x, w) y = Pow (z, two) }}"""
PLAIN = f"g (float[N,3] x) => (float[N,2] y) <float[3,2] w = {VALUES}> {{ y = MatMul (x, w) }}"
#: A convolution of a tensor whose rank depends on the value of an input.
RESHAPED = f"""g (float[N,12] x, int64[K] s) => (float[A,B,C] y) <float[1,2,3] w = {VALUES}>
    {{ a = Reshape (x, s) y = Conv (a, w) }}"""


def parse(text, opset=18):
    version = 6 if opset < 13 else 8
    return parser.parse_model(f'<ir_version: {version}, opset_import: ["": {opset}]> {text}')


def names(values):
    return [value.name for value in values]


def fitted(model, X=X, y=y, **options):
    options = {"learning_rate": "Adam", "max_iter": 3, "random_state": 0, "warm_start": True} | options
    return OrtGradientOptimizer(model, keep_better=False, **options).fit(X, y)


def gradients(model, feeds, run_onnx_named):
    """Return the gradient of the sum of the outputs with respect to each tensor."""
    derivative = onnx_derivative(model, backend="rules")
    seeds = {v.name: np.ones((2, 2), np.float32) for v in derivative.graph.input if v.name.endswith("_grad")}
    return run_onnx_named(derivative, feeds | seeds)


@pytest.fixture
def run_onnx_named():
    import onnxruntime

    def run(model, feeds):
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        read = {value.name for value in session.get_inputs()}
        found = session.run(None, {name: array for name, array in feeds.items() if name in read})
        return dict(zip((value.name for value in session.get_outputs()), found, strict=True))

    return run


@pytest.mark.parametrize("opset", [7, 9, 11, 12, 13, 18])
def test_constants_of_any_opset_are_weights(opset, run_onnx_named):
    model = parse(CONSTANT, opset)
    before = model.SerializeToString()
    derivative = onnx_derivative(model)
    assert model.SerializeToString() == before and opset_versions(derivative)[""] >= 13
    assert names(derivative.graph.input) == ["x", "w", "y_grad"]
    assert names(derivative.graph.output) == ["x_grad", "w_grad"]
    w = np.float32([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
    found = gradients(model, {"x": X[:2], "w": w}, run_onnx_named)
    np.testing.assert_allclose(found["w_grad"], X[:2].T @ (2 * X[:2] @ w), rtol=1e-5)


def test_file_of_constants_only():
    text = """g (int64[N] i) => (float[N,2] y)
        { w = Constant <value = float[2,2] {1, 2, 3, 4}> () y = Gather (w, i) }"""
    assert names(onnx_derivative(parse(text)).graph.output) == ["w_grad"]


def test_trained_files_and_paths(tmp_path):
    trained = OrtGradientOptimizer(Ridge(), random_state=0).fit(X, y[:, 0])
    assert [node.op_type for node in trained.onnx_.graph.node] == ["LinearRegressor"]
    path = tmp_path / "ridge.onnx"
    onnx.save(trained.onnx_, path)
    for source in (trained.onnx_, path, path.read_bytes()):
        derivative = onnx_derivative(source)
        assert names(derivative.graph.output) == ["X_grad", "coef_grad", "intercept_grad"]
    with pytest.raises(ConversionError, match="cannot be read"):
        onnx_derivative(tmp_path / "nothing.onnx")


def test_negative_and_unnamed_sizes(run_onnx):
    model = parse(PLAIN)
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = -1
    assert names(onnx_derivative(model).graph.output) == ["x_grad", "w_grad"]
    result = fitted(model).get_trained_onnx()
    assert result.graph.input == model.graph.input and result.graph.output == model.graph.output


@pytest.mark.parametrize("name", ["?", "-1", "None", "unk"])
def test_placeholders_of_sizes_are_not_equal(name):
    text = f"""g (float[N,P,Q] a, float[N,R] x) => (float[N,S] y)
        <float[3,2] w = {VALUES}, int64[1] one = {{1}}, int64[1] two = {{2}}>
        {{ p = ReduceMean <keepdims = 0> (a, two) q = ReduceMean (p, one)
        z = MatMul (x, w) y = Add (q, z) }}"""
    model = parse(text)
    for value in (*model.graph.input, *model.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            dim.dim_param = name
    samples = {"a": np.ones((40, 4, 5), np.float32), "x": X}
    result = fitted(model, samples).get_trained_onnx()
    assert result.graph.input == model.graph.input


@pytest.mark.parametrize("declared", [True, False])
def test_unknown_ranks_are_found_by_a_run(declared, run_onnx_named):
    model = parse(RESHAPED)
    if not declared:
        model.graph.output[0].type.tensor_type.ClearField("shape")
    feeds = {"x": np.arange(24, dtype=np.float32).reshape(2, 12), "s": np.array([2, 2, 6])}
    with pytest.raises(
        GradientError, match=r"'Conv'.*the rank of 'a'.* is unknown.*feeds={'x': array, \.\.\.}"
    ):
        onnx_derivative(model, backend="rules")
    with pytest.raises(ExecutionError, match="'s'.*missing"):
        onnx_derivative(model, feeds={"x": feeds["x"]})
    with pytest.raises(ValueError, match="feeds='all' must be arrays"):
        onnx_derivative(model, feeds="all")
    derivative = onnx_derivative(model, feeds=feeds, backend="rules")
    for target in ([2, 2, 6], [4, 2, 3]):  # other sizes of the same rank
        w, seed = np.ones((1, 2, 3), np.float32), np.ones((target[0], 1, target[2] - 2), np.float32)
        found = run_onnx_named(derivative, feeds | {"s": np.array(target), "w": w, "y_grad": seed})
        windows = np.lib.stride_tricks.sliding_window_view(feeds["x"].reshape(target), 3, axis=2)
        np.testing.assert_allclose(found["w_grad"][0], windows.sum((0, 2)), rtol=1e-6)


def test_estimator_runs_its_samples(run_onnx):
    """Random samples do not fit: the number of columns is checked by a Reshape of the values."""
    text = f"""g (float[N,C] x) => (float[N,1] y) <int64[1] halves = {{2}}, int64[1] one = {{1}},
        int64[1] rest = {{-1}}, int64[1] six = {{6}}, float[1,2,3] w = {VALUES}> {{
        f = Cast <to = 1> (halves) r = ReduceProd (f) i = Cast <to = 7> (r) k = Expand (i, one)
        q = Div (six, k) t = Concat <axis = 0> (rest, k, q) a = Reshape (x, t) c = Conv (a, w)
        y = Flatten (c) }}"""
    samples = np.random.default_rng(0).normal(size=(20, 6)).astype(np.float32)
    trained = fitted(parse(text), samples, samples[:, :1])
    assert trained.predict(samples).size == 20


def test_new_head_on_ir_version_3(run_onnx):
    body = parse(PLAIN.replace("y = MatMul (x, w)", "h = MatMul (x, w) y = Relu (h)"), 8)
    body.ir_version = 3
    body.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [3, 2]))
    model = onnx_files.replace_head(body, at="h", n_outputs=2)
    onnx.checker.check_model(model)
    labels = (y[:, 0] > 0).astype(int)
    trained = fitted(model, X, labels, max_iter=100, learning_rate="Adam")
    assert list(trained.get_weights()) == ["head.weight", "head.bias"] and trained.score(X, labels) > 0.6
    assert names(onnx_derivative(body).graph.output) == ["x_grad", "w_grad"]


@pytest.mark.parametrize("flat", [True, False])
def test_sparse_weights(flat, run_onnx, run_onnx_named):
    positions = np.array([0, 3, 5]) if flat else np.array([[0, 0], [1, 1], [2, 1]])
    model = parse("g (float[N,3] x) => (float[N,2] y) { y = MatMul (x, w) }")
    values = numpy_helper.from_array(np.float32([1, 2, 3]), "w")
    indices = numpy_helper.from_array(positions, "w_positions")
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [3, 2]))
    dense = np.float32([[1, 0], [0, 2], [0, 3]])
    found = gradients(model, {"x": X[:2], "w": dense}, run_onnx_named)
    np.testing.assert_allclose(found["x_grad"], np.ones((2, 2)) @ dense.T)
    trained = fitted(model, learning_rate="LBFGS", max_iter=50, learning_penalty=None)
    np.testing.assert_allclose(trained.predict(X), y, atol=1e-2)
    np.testing.assert_allclose(run_onnx(trained.get_trained_onnx(), X)[0], trained.predict(X), rtol=1e-5)
    indices.CopyFrom(numpy_helper.from_array(np.array([0, 3, 6]), "w_positions"))
    model.graph.sparse_initializer[0].indices.CopyFrom(indices)
    with pytest.raises(ConversionError, match="positions|index|indices"):
        onnx_derivative(model)


def test_scale_of_int4_weights(run_onnx_named):
    levels, scale = np.array([1, 2, 3, -4, 5, -6]), np.float32(0.5)
    constants = [
        helper.make_tensor("q", TensorProto.INT4, [3, 2], levels),
        numpy_helper.from_array(scale, "s"),
    ]
    model = parse("g (float[N,3] x) => (float[N,2] y) { w = DequantizeLinear (q, s) y = MatMul (x, w) }", 21)
    model.ir_version = 10
    model.graph.initializer.extend(constants)
    found = gradients(model, {"x": X[:2], "s": np.array(scale)}, run_onnx_named)
    np.testing.assert_allclose(found["s_grad"], (X[:2] @ levels.reshape(3, 2)).sum(), rtol=1e-5)


@pytest.mark.parametrize(
    "text, operators",
    [
        ("s = SequenceConstruct (x, x) y = ConcatFromSequence <axis = 1> (s)", ["Concat"]),
        (
            "e = SequenceEmpty () s = SequenceInsert (e, x) t = SequenceInsert (s, x, first) "
            "y = ConcatFromSequence <axis = 0, new_axis = 1> (t)",
            ["Unsqueeze", "Unsqueeze", "Concat"],
        ),
        ("s = SplitToSequence <axis = 1> (x, two) a = SequenceAt (s, last) y = Exp (a)", ["Split", "Exp"]),
        ("a = Optional (x) b = OptionalGetElement (a) y = Exp (b)", ["Exp"]),
        ("b = OptionalGetElement (x) y = Exp (b)", ["Exp"]),
    ],
)
def test_sequences_of_known_elements(text, operators, run_onnx):
    constants = "<int64 first = {0}, int64 last = {-1}, int64 two = {2}>"
    model = parse(f"g (float[2,4] x) => (float y) {constants} {{ {text} }}")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    opened = onnx_files.open(model)
    assert [node.op_type for node in opened.graph.node] == operators
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    np.testing.assert_array_equal(run_onnx(opened, x)[0], run_onnx(model, x)[0])
    assert names(onnx_derivative(model).graph.output) == ["x_grad"]


def test_opening_twice_changes_nothing():
    once = onnx_files.open(parse(CONSTANT, 9), trainable=True)
    assert onnx_files.open(once, trainable=True) == once


def test_samples_on_another_axis():
    text = f"""g (float[N,4,3] x) => (float[4,N,2] y) <float[3,2] w = {VALUES}>
        {{ t = Transpose <perm = [1, 0, 2]> (x) y = MatMul (t, w) }}"""
    rng = np.random.default_rng(0)
    with pytest.raises(
        ExecutionError, match=r"The scores from 'y' have the shape .*samples on the first axis"
    ):
        fitted(parse(text), rng.normal(size=(8, 4, 3)), rng.normal(size=(8, 4, 2)))


def test_rank_that_depends_on_the_number_of_samples_stays_unknown():
    """A Squeeze of all axes of length one removes that of samples for a single one."""
    text = f"""g (float[N,C] x) => (float[N,2] y) <float[3,2] w = {VALUES}, int64[1] three = {{3}},
        int64[1] rest = {{-1}}> {{ q = Squeeze (x) t = Concat <axis = 0> (rest, three) r = Reshape (q, t)
        y = MatMul (r, w) }}"""
    trained = fitted(parse(text))
    np.testing.assert_allclose(trained.predict(X[:1]), trained.predict(X)[:1], rtol=1e-5)


@pytest.mark.parametrize("source", [None, 3, Ridge()])
def test_other_objects_are_no_files(source):
    for open_source in (onnx_files.open, lambda value: onnx_files.replace_head(value, "x", 2)):
        with pytest.raises(ConversionError, match=r"(None|3|Ridge\(\)) is not an ONNX file: pass its path"):
            open_source(source)


#: Files that parse ONNX messages: the reader of files, and formats of ortlearn with checksums.
READERS = {
    "onnx_files/loading.py",
    "saving/decoder.py",
    "saving/package_files.py",
    "callbacks/checkpoint_files.py",  # metadata
    "runtime/deployment.py",  # what onnxruntime has just written
}


def test_files_of_users_are_read_in_one_place():
    root = Path(onnx_files.__file__).parent.parent
    parses = re.compile(r"\bonnx\.load\w*\(|load_model_from_string|ModelProto\.FromString")
    found = {str(path.relative_to(root)) for path in root.rglob("*.py") if parses.search(path.read_text())}
    assert {name.replace("\\", "/") for name in found} == READERS
