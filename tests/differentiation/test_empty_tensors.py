"""Gradients of tensors without elements, in a process that may be stopped."""

from __future__ import annotations

import multiprocessing

import numpy as np
import pytest

from ortlearn.differentiation import onnx_derivative
from tests.differentiation.evaluation import run_onnxruntime
from tests.differentiation.models import parse

MODELS = {
    "Gather": ("g (double[N,3] x, int64[K] i) => (double[N,K] y) { y = Gather<axis=1>(x, i) }", (0, 3), (0,)),
    "GatherElements": (
        "g (double[N,3] x, int64[N,K] i) => (double[N,K] y) { y = GatherElements<axis=1>(x, i) }",
        (0, 3),
        (0, 2),
    ),
    "GatherND": ("g (double[N,3] x, int64[K,1] i) => (double[K,3] y) { y = GatherND(x, i) }", (2, 3), (0, 1)),
    "MaxPool": (
        "g (float[N,2,4,4] x) => (float[N,2,3,3] y) { y = MaxPool<kernel_shape=[2,2]>(x) }",
        (0, 2, 4, 4),
        None,
    ),
    "TopK": (
        "g (float[N,3] x) => (float[N,2] y) { k = Constant<value_ints=[2]>() y, i = TopK<axis=1>(x, k) }",
        (0, 3),
        None,
    ),
    "Conv": (
        """g (float[N,2,5] x, float[2,2,3] w) => (float[N,2,3] y) { y = Conv(x, w) }""",
        (0, 2, 5),
        (2, 2, 3),
    ),
    "broadcast": ("g (double[N,3] x, double[M,3] w) => (double[K,3] y) { y = Add(x, w) }", (0, 3), (1, 3)),
}


def _compute(text, opset, shape, other, queue):
    model = parse(text, opset)
    feeds = {}
    for value, size in zip(model.graph.input, (shape, other), strict=False):
        kind = {1: np.float32, 7: np.int64, 11: np.float64}[value.type.tensor_type.elem_type]
        feeds[value.name] = np.ones(size, dtype=kind)
    onx = onnx_derivative(model, backend="rules")
    (y,) = run_onnxruntime(model, feeds) if "TopK" not in text else [np.zeros((0, 2), np.float32)]
    found = run_onnxruntime(onx, {**feeds, "y_grad": np.ones_like(y)})
    queue.put([(grad.shape, float(np.abs(grad).sum())) for grad in found])


@pytest.mark.slow
@pytest.mark.parametrize("opset", [13, 15, 18, 19, 21])
@pytest.mark.parametrize("name", MODELS)
def test_nothing_is_stopped(name, opset):
    text, shape, other = MODELS[name]
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    process = context.Process(target=_compute, args=(text, opset, shape, other, queue))
    process.start()
    process.join(60)
    process.kill()
    assert process.exitcode == 0
    found = queue.get()
    assert found[0] == (shape, 0.0)
