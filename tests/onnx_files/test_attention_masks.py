"""Masks of keys, which onnxruntime 1.19 reads at wrong positions if there are more or fewer queries."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from ortlearn.differentiation import onnx_derivative
from ortlearn.exceptions import ConversionError
from ortlearn.graphs import make_value_info
from ortlearn.graphs.builder import TensorType
from ortlearn.onnx_files.loading import load_onnx
from ortlearn.runtime.onnxruntime_module import is_before


def attention(queries, keys, masked=True):
    """Return a MultiHeadAttention of two heads."""
    node = helper.make_node(
        "MultiHeadAttention", ["q", "k", "k", *(["", "m"] if masked else [])], ["y"],
        domain="com.microsoft", num_heads=2, name="attention",
    )  # fmt: skip
    shapes = {"q": ("N", queries, 4), "k": ("N", keys, 4), **({"m": ("N", keys)} if masked else {})}
    kinds = {"m": TensorProto.INT32}
    inputs = [make_value_info(n, TensorType(kinds.get(n, TensorProto.FLOAT), s)) for n, s in shapes.items()]
    output = make_value_info("y", TensorType(TensorProto.FLOAT, ("N", queries, 4)))
    graph = helper.make_graph([node], "attention", inputs, [output])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("queries, keys", [(3, 5), (5, 3), ("S", "T"), (None, None)])
def test_mask_that_the_runtime_misreads_is_refused(queries, keys):
    model = attention(queries, keys)
    if is_before(1, 20):
        with pytest.raises(ConversionError, match="'attention'.*mask of keys.*newest onnxruntime"):
            load_onnx(model)
    else:
        assert load_onnx(model) is not None
    assert load_onnx(attention(queries, keys, masked=False)) is not None


@pytest.mark.parametrize("size", [5, "S"])
def test_as_many_queries_as_keys(size):
    model = attention(size, size)
    assert load_onnx(model) is not None
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(2, 2, 5, 4)).astype(np.float32)
    m = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"q": q, "k": k, "m": m})[0], expected(q, k, m), rtol=1e-4)


def expected(q, k, m):
    """Return attention with masked keys."""
    heads = [x.reshape(len(x), -1, 2, 2).swapaxes(1, 2) for x in (q, k)]
    scores = heads[0] @ heads[1].swapaxes(2, 3) / np.sqrt(2)
    shares = np.exp(np.where(m[:, None, None] > 0, scores, -np.inf))
    shares /= shares.sum(axis=-1, keepdims=True)
    return (shares @ heads[1]).swapaxes(1, 2).reshape(q.shape)


@pytest.mark.parametrize("queries", [3, 5, 7])
def test_derivative(queries):
    """The operator is replaced by standard ones."""
    rng = np.random.default_rng(0)
    q, k = (rng.normal(size=(2, n, 4)).astype(np.float32) for n in (queries, 5))
    m = np.array([[1, 1, 1, 0, 0], [1, 1, 0, 1, 1]], np.int32)
    seed = rng.normal(size=q.shape).astype(np.float32)
    if is_before(1, 20) and queries != 5:
        with pytest.raises(ConversionError, match="mask of keys"):
            onnx_derivative(attention(queries, 5), inputs=["q"])
        return
    onx = onnx_derivative(attention(queries, 5), inputs=["q"])
    session = onnxruntime.InferenceSession(onx.SerializeToString(), providers=["CPUExecutionProvider"])
    (grad,) = session.run(None, {"q": q, "k": k, "m": m, "y_grad": seed})
    direction, step = rng.normal(size=q.shape), 1e-5
    up, down = (expected(q + h * direction, k.astype(np.float64), m) for h in (step, -step))
    slope = ((up - down) * seed).sum() / (2 * step)
    assert (grad * direction).sum() == pytest.approx(slope, rel=1e-3)
