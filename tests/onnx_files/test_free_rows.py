"""A number of samples that a file fixes becomes free where nothing depends on it."""

import numpy as np
import pytest
from onnx import parser

from ortlearn import OrtGradientOptimizer
from ortlearn.conversion import to_trainable
from ortlearn.exceptions import ConversionError
from ortlearn.onnx_files.free_rows import with_free_rows
from ortlearn.onnx_files.loading import load_onnx

HEAD = '<ir_version: 8, opset_import: ["": 18]>'
W = "float[4,1] w = {1, 2, 3, 4}"
X = np.random.RandomState(0).normal(size=(20, 4)).astype(np.float32)


def first_dims(model):
    values = (*model.graph.input, *model.graph.output)
    return [d.dim_param or d.dim_value for d in (v.type.tensor_type.shape.dim[0] for v in values)]


@pytest.mark.parametrize("number", [1, 5])
def test_reshapes_and_expands_follow(run_onnx, number):
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


def test_what_depends_on_the_number_is_named():
    model = parser.parse_model(
        f"""{HEAD} g (float[2,4] x) => (float[2,4] y)
        <float[4,4] w = {{{", ".join(["1"] * 16)}}}, int64[2] mixed = {{4, 2}}, int64[2] back = {{2, 4}}>
        {{ t = MatMul (x, w) a = Transpose (t) b = Reshape (a, back) y = Neg (b) }}"""
    )
    assert first_dims(load_onnx(model)) == [2, 2]
    with pytest.raises(ConversionError, match=r"takes 2 sample\(s\) at a time, and Reshape .*'b'.* export"):
        to_trainable(model)


def test_inputs_of_other_first_dimensions():
    model = parser.parse_model(
        f"{HEAD} g (float[2,3] x, float[3,4] z) => (float[2,4] y) {{ y = MatMul (x, z) }}"
    )
    assert with_free_rows(model) == model
    with pytest.raises(ConversionError, match=r"other fixed first dimensions .*'x': \[2, 3\], 'z': \[3, 4\]"):
        to_trainable(model)


def test_states_beside_free_rows_stay():
    model = parser.parse_model(f"{HEAD} g (float[N,3] x, float[2,3] h) => (float[N,2] y)"
                               " { t = Transpose (h) y = MatMul (x, t) }")  # fmt: skip
    assert first_dims(load_onnx(model)) == ["N", 2, "N"]
