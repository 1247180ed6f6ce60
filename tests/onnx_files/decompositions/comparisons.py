"""Helpers of the tests of decompositions."""

import numpy as np
from onnx import TensorProto, checker

from ortlearn.graphs import GraphBuilder, TensorType, append_nodes, graph_names, make_value_info
from ortlearn.onnx_files.decompositions import decompose_operators


def check_same(run_onnx, model, X=None, expected=None, atol=1e-5):
    """Compare a model with its decomposition into standard operators, and return the latter."""
    if X is None:
        columns = model.graph.input[0].type.tensor_type.shape.dim[1].dim_value
        X = np.random.default_rng(0).normal(size=(60, columns)).astype(np.float32)
    before = model.SerializeToString()
    plain = decompose_operators(model)
    assert model.SerializeToString() == before
    checker.check_model(plain, full_check=True)
    assert all(node.domain == "" for node in plain.graph.node)
    assert_same_outputs(run_onnx(plain, X), run_onnx(model, X) if expected is None else expected, atol)
    return plain


def assert_same_outputs(found, expected, atol=1e-5):
    """Compare outputs: floats approximately, labels exactly."""
    for one, other in zip(expected, found, strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        if one.dtype.kind == "f":
            np.testing.assert_allclose(other, one, atol=atol, rtol=1e-5)
        else:
            assert other.tolist() == one.tolist()


def with_loss(model, scores, weights):
    """Return a model with the output ``loss``: the sum of some scores times weights."""
    op = GraphBuilder(existing_names=graph_names(model.graph))
    op.ReduceSum(op.Mul(scores, weights), keepdims=0, outputs=["loss"])
    return append_nodes(model, op, outputs=[make_value_info("loss", TensorType(TensorProto.FLOAT, ()))])
