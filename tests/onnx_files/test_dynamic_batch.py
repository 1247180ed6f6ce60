"""A fixed number of samples becomes dynamic if no node depends on it."""

import numpy as np
import pytest
from onnx import helper, numpy_helper, parser

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import ConversionError
from ortlearn.onnx_files.dynamic_batch import with_dynamic_batch
from ortlearn.onnx_files.loading import load_onnx
from ortlearn.trainable.conversion import to_trainable

HEAD = '<ir_version: 8, opset_import: ["": 18]>'
W = "float[4,1] w = {1, 2, 3, 4}"
X = np.random.RandomState(0).normal(size=(20, 4)).astype(np.float32)


def first_dims(model):
    values = (*model.graph.input, *model.graph.output)
    return [d.dim_param or d.dim_value for d in (v.type.tensor_type.shape.dim[0] for v in values)]


@pytest.mark.parametrize("number", [1, 5])
def test_reshape_and_expand_are_rewritten(run_onnx, number):
    model = parser.parse_model(f"""{HEAD} g (float[{number},4] x) => (float[{number},1] y)
        <{W}, int64[3] cube = {{{number}, 2, 2}}, int64[2] wide = {{{number}, 4}}>
        {{ back = Constant <value = int64[2] {{{number}, -1}}> ()
          a = Reshape (x, cube) b = Reshape (a, back) c = Expand (b, wide) y = MatMul (c, w) }}""")
    free = load_onnx(model)
    assert first_dims(free) == ["rows", "rows"]
    expected = X @ np.array([[1], [2], [3], [4]], np.float32)
    np.testing.assert_allclose(run_onnx(free, X)[0], expected, rtol=1e-5)
    np.testing.assert_allclose(run_onnx(free, X[:number])[0], run_onnx(model, X[:number])[0], rtol=1e-6)
    trained = OrtGradientOptimizer(model, max_iter=2, warm_start=True).fit(X, expected)
    assert first_dims(trained.get_trained_onnx()) == [number, number]  # as the file has it


def test_error_names_nodes_that_depend_on_the_number_of_samples():
    model = parser.parse_model(
        f"""{HEAD} g (float[2,4] x) => (float[2,4] y)
        <float[4,4] w = {{{", ".join(["1"] * 16)}}}, int64[2] mixed = {{4, 2}}, int64[2] back = {{2, 4}}>
        {{ t = MatMul (x, w) a = Transpose (t) b = Reshape (a, back) y = Neg (b) }}"""
    )
    assert first_dims(load_onnx(model)) == [2, 2]
    with pytest.raises(ConversionError, match=r"takes 2 sample\(s\) at a time, and Reshape .*'b'.* export"):
        to_trainable(model)


def test_inputs_with_different_first_dimensions():
    model = parser.parse_model(
        f"{HEAD} g (float[2,3] x, float[3,4] z) => (float[2,4] y) {{ y = MatMul (x, z) }}"
    )
    assert with_dynamic_batch(model) == model
    with pytest.raises(
        ConversionError, match=r"first dimensions of the inputs differ, .*'x': \[2, 3\], 'z': \[3, 4\]"
    ):
        to_trainable(model)


def test_states_beside_a_dynamic_batch_are_unchanged():
    model = parser.parse_model(f"{HEAD} g (float[N,3] x, float[2,3] h) => (float[N,2] y)"
                               " { t = Transpose (h) y = MatMul (x, t) }")  # fmt: skip
    assert first_dims(load_onnx(model)) == ["N", 2, "N"]


def single_sample(nodes, inputs, output, **arrays):
    """Return a model of a single sample with the given weights."""
    model = parser.parse_model(f"{HEAD} g ({inputs}) => ({output}) {{ {nodes} }}")
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(a, np.int64 if np.asarray(a).dtype.kind == "i" else np.float32), n)
        for n, a in arrays.items()
    )
    return model


rng = np.random.default_rng(0)
WEIGHT = rng.normal(size=(8, 8))
SINGLE_SAMPLE = {
    # attention exported from torch, steps first: samples and attention heads share a dimension
    "steps first": single_sample(
        """s = Transpose <perm = [1, 0, 2]> (x) p = Reshape (s, heads) q = Transpose <perm = [1, 0, 2]> (p)
        k = Transpose <perm = [0, 2, 1]> (q) m = MatMul (q, k) a = Softmax <axis = 2> (m) c = MatMul (a, q)
        t = Transpose <perm = [1, 0, 2]> (c) f = Reshape (t, rows) l = Gemm (f, w) r = Reshape (l, back)
        y = Transpose <perm = [1, 0, 2]> (r)""",
        "float[1,6,8] x",
        "float[1,6,8] y",
        heads=[6, 2, 4],
        rows=[6, 8],
        back=[6, 1, 8],
        w=WEIGHT,
    ),
    # windows of pixels: samples and windows share a dimension
    "windows": single_sample(
        """a = Reshape (x, cut) b = Transpose <perm = [0, 1, 3, 2, 4, 5]> (a) c = Reshape (b, windows)
        d = MatMul (c, w) m = Softmax <axis = 1> (d) e = Reshape (m, uncut)
        f = Transpose <perm = [0, 1, 3, 2, 4, 5]> (e) y = Reshape (f, whole)""",
        "float[1,4,4,8] x",
        "float[1,4,4,8] y",
        cut=[1, 2, 2, 2, 2, 8],
        windows=[4, 4, 8],
        uncut=[1, 2, 2, 2, 2, 8],
        whole=[1, 4, 4, 8],
        w=WEIGHT,
    ),
    # a learned first step, expanded to a computed shape
    "token": single_sample(
        """shape = Shape (x) flags = Equal (wanted, minus)
        ones = ConstantOfShape <value = int64[1] {1}> (three)
        size = Where (flags, ones, wanted) first = Expand (token, size) z = Concat <axis = 1> (first, x)
        y = MatMul (z, w)""",
        "float[1,3,8] x",
        "float[1,4,8] y",
        wanted=[1, -1, -1],
        minus=-1,
        three=[3],
        token=rng.normal(size=(1, 1, 8)),
        w=WEIGHT,
    ),
    "state": single_sample(
        "s = Transpose <perm = [1, 0, 2]> (x) h, y = GRU <hidden_size = 2> (s, w, r, , , h0)",
        "float[1,5,8] x",
        "float[1,1,2] y",
        w=rng.normal(size=(1, 6, 8)),
        r=rng.normal(size=(1, 6, 2)),
        h0=rng.normal(size=(1, 1, 2)),
    ),
}


@pytest.mark.parametrize("name", SINGLE_SAMPLE)
def test_batches_equal_single_samples(name, run_onnx):
    model = SINGLE_SAMPLE[name]
    if name == "state":  # its samples are in the second dimension
        del model.graph.output[:]
        model.graph.node.append(helper.make_node("Squeeze", ["y", "zero"], ["out"]))
        model.graph.initializer.append(numpy_helper.from_array(np.array([0]), "zero"))
        model.graph.output.append(helper.make_tensor_value_info("out", 1, [1, 2]))
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    samples = rng.normal(size=(7, *shape[1:])).astype(np.float32)
    free = load_onnx(model)
    assert first_dims(free) == ["rows", "rows"]
    alone = np.concatenate([run_onnx(model, samples[i : i + 1])[0] for i in range(7)])
    np.testing.assert_allclose(run_onnx(free, samples)[0], alone, rtol=1e-5, atol=1e-5)
    options = {"warm_start": True, "max_iter": 2, "learning_rate": 1e-3, "keep_better": False}
    trained = OrtGradientOptimizer(model, **options).fit(samples, alone + 1)
    result = trained.get_trained_onnx()
    assert (result.graph.input, result.graph.output) == (model.graph.input, model.graph.output)
    np.testing.assert_allclose(
        run_onnx(result, samples[:1])[0], trained.predict(samples)[:1], rtol=1e-4, atol=1e-5
    )


def test_state_shared_by_all_samples():
    nodes = """s = Transpose <perm = [1, 0, 2]> (x) h, z = GRU <hidden_size = 2> (s, w, r, , , h0)
        y = Squeeze (z, zero)"""
    arrays = {"w": rng.normal(size=(1, 6, 8)), "r": rng.normal(size=(1, 6, 2)), "zero": [0]}
    model = single_sample(nodes, "float[N,5,8] x, float[1,1,2] h0", "float[N,2] y", **arrays)
    samples = rng.normal(size=(9, 5, 8)).astype(np.float32)
    model.graph.input[1].type.tensor_type.shape.dim[0].dim_value = 4
    with pytest.raises(ConversionError, match=r"Input 'h0' has the shape \[4, 1, 2\].*initializer"):
        to_trainable(model)
    model.graph.input[1].type.tensor_type.shape.dim[0].dim_value = 1
    state = rng.normal(size=(1, 1, 2)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(state, "h0"))
    options = {"warm_start": True, "max_iter": 2, "learning_rate": 1e-3}
    trained = OrtGradientOptimizer(model, **options).fit(samples, np.ones((9, 2)))
    result = trained.get_trained_onnx()
    assert result.graph.input == model.graph.input
    np.testing.assert_array_equal(trained.predict(samples[:1]), trained.predict(samples)[:1])


def test_output_declared_as_a_scalar(run_onnx):
    """As exported from ``model(x).squeeze()``: a scalar for one sample, a vector for more."""
    file = single_sample(
        "z = MatMul (x, w) s = Squeeze (z) y = Sigmoid (s)", "float[N,1,8] x", "float y", w=WEIGHT[:, :1]
    )
    samples = rng.normal(size=(9, 1, 8)).astype(np.float32)
    options = {"warm_start": True, "max_iter": 2, "learning_rate": 1e-3}
    trained = OrtGradientOptimizer(file, **options).fit(samples, np.linspace(0, 1, 9))
    result = trained.get_trained_onnx()
    assert result.graph.output == file.graph.output and result.graph.node == file.graph.node
    assert trained.predict(samples[:1]).shape == (1,)
    for part in (samples, samples[:1]):
        np.testing.assert_allclose(np.ravel(run_onnx(result, part)[0]), trained.predict(part), rtol=1e-5)
