"""Reshapes to the number of rows of X go where they do nothing."""

import numpy as np
import pytest
from onnx import parser

from ortlearn.onnx_files.rewrites.row_reshapes import rewrite_row_reshapes


def model(x="float[N,2] x", middle="z = Neg (x)", index="{0}", rest="{-1}", output="float[N,2] y"):
    return parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]>
        g ({x}) => ({output}) <int64[1] first = {index}, int64[1] rest = {rest}> {{
            {middle}
            shape = Shape (x)
            rows = Gather (shape, first)
            new = Concat <axis = 0> (rows, rest)
            y = Reshape (z, new)
        }}"""
    )


def operators(onx):
    return [node.op_type for node in onx.graph.node]


def test_a_matrix_keeps_its_rows(run_onnx):
    before = model()
    after = rewrite_row_reshapes(before)
    assert operators(after) == ["Neg", "Shape", "Gather", "Concat", "Identity"]
    X = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.testing.assert_array_equal(run_onnx(after, X)[0], run_onnx(before, X)[0])


@pytest.mark.parametrize(
    "changes",
    [
        {"x": "float[N,2,3] x", "output": "float[N,6] y"},
        {"middle": "z = Transpose (x)"},
        {"middle": "z = Flatten <axis = 2> (x)"},
        {"index": "{1}", "output": "float[2,M] y"},
        {"rest": "{1}", "x": "float[N,1] x", "output": "float[N,1] y"},
        {"x": "float[?,2] x", "output": "float[M,2] y"},
    ],
    ids=["three axes", "transposed", "flattened", "columns", "columns given", "rows unknown"],
)
def test_other_reshapes_stay(changes):
    before = model(**changes)
    assert rewrite_row_reshapes(before).SerializeToString() == before.SerializeToString()
