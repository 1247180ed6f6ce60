"""Two opposite columns of scores become one, and nothing else does."""

import numpy as np
import pytest
from onnx import checker, parser

from ortlearn.conversion.opposite_columns import merge_opposite_columns
from ortlearn.graphs import initializer_arrays

X = np.array([[1, 2], [-3, 0.5], [0, 0]], dtype=np.float32)


def model(w="-1, 1, 2, -2", b="-3, 3", link="Sigmoid", more="", outputs="", label="ArgMax <axis = 1>"):
    return parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[N,2] x) => (float[N,2] y, int64[N,M] c{outputs})
        <float[2,2] w = {{{w}}}, float[1,2] b = {{{b}}}>
        {{ z = MatMul (x, w)  s = Add (z, b)  y = {link} (s)  c = {label} (s)  {more} }}"""
    )


def test_opposite_columns(run_onnx):
    before = model()
    content = before.SerializeToString()
    merged = merge_opposite_columns(before)
    assert before.SerializeToString() == content
    checker.check_model(merged, full_check=True)
    np.testing.assert_array_equal(run_onnx(merged, X)[0], run_onnx(before, X)[0])
    arrays = initializer_arrays(merged)
    assert arrays["w"].tolist() == [[1], [-2]] and arrays["b"].tolist() == [3]


@pytest.mark.parametrize(
    "options",
    [
        {"w": "-1, 1, 2, -3"},
        {"b": "-3, 2"},
        {"link": "Softmax"},
        {"label": "Cast <to = 7>"},
        {"more": "t = MatMul (x, w)  u = Neg (t)", "outputs": ", float[N,2] u"},
        {"more": "u = Neg (z)", "outputs": ", float[N,2] u"},
        {"more": "u = Neg (b)", "outputs": ", float[1,2] u"},
    ],
    ids=[
        "coefficients",
        "intercepts",
        "softmax",
        "labels",
        "weight twice",
        "product twice",
        "intercept twice",
    ],
)
def test_what_stays(options):
    before = model(**options)
    assert merge_opposite_columns(before).SerializeToString() == before.SerializeToString()


@pytest.mark.parametrize("body", ["y = Add (x, b)", "z = MatMul (x, x)  y = Add (z, b)", "y = Add (b, x)"])
def test_other_sums_stay(body):
    before = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[2,2] x) => (float[2,2] y)
        <float[2] b = {{-1, 1}}> {{ {body} }}"""
    )
    assert merge_opposite_columns(before).SerializeToString() == before.SerializeToString()
