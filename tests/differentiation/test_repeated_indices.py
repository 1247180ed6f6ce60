"""Gradients of tables whose rows are read repeatedly, added by several threads."""

import numpy as np
import onnxruntime
import pytest
from onnx import parser

from ortlearn.differentiation import gradient_of_loss

N = 200_000


@pytest.mark.parametrize("columns", [[], [2]], ids=["numbers", "rows"])
def test_scatter_adds_all_values(columns):
    shape = "".join(f",{c}" for c in columns)
    text = f"""<ir_version: 8, opset_import: ["": 18]>
        g (float[3{shape}] table, int64[N] places) => (float loss) {{
            y = Gather (table, places) loss = ReduceSum <keepdims = 0> (y) }}"""
    gradient = gradient_of_loss(parser.parse_model(text), "loss", ["table"], "rules")
    # Threads of onnxruntime 1.19's ScatterND overwrite sums of others.
    assert "ScatterND" not in {node.op_type for node in gradient.graph.node}
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 4
    session = onnxruntime.InferenceSession(
        gradient.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    places = np.arange(N) % 2
    feeds = {"table": np.zeros((3, *columns), dtype=np.float32), "places": places}
    for _ in range(3):
        found = session.run(["table_grad"], feeds)[0]
        expected = np.multiply.outer([N / 2, N / 2, 0], np.ones(columns))
        np.testing.assert_array_equal(found, expected)
