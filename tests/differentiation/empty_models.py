"""Gradients of empty tensors.

``python -m tests.differentiation.empty_models TopK 13 18`` computes the gradients of a graph at two opsets.
"""

from __future__ import annotations

import sys

import numpy as np

from ortlearn.differentiation import onnx_derivative
from tests.differentiation.evaluation import run_onnxruntime
from tests.differentiation.models import parse

__all__ = ["MODELS"]

#: Text of a graph, and the shapes of its inputs and its output.
MODELS = {
    "Gather": (
        "g (double[N,3] x, int64[K] i) => (double[N,K] y) { y = Gather<axis=1>(x, i) }",
        [(0, 3), (0,), (0, 0)],
    ),
    "GatherElements": (
        "g (double[N,3] x, int64[N,K] i) => (double[N,K] y) { y = GatherElements<axis=1>(x, i) }",
        [(0, 3), (0, 2), (0, 2)],
    ),
    "GatherND": (
        "g (double[N,3] x, int64[K,1] i) => (double[K,3] y) { y = GatherND(x, i) }",
        [(2, 3), (0, 1), (0, 3)],
    ),
    "MaxPool": (
        "g (float[N,2,4,4] x) => (float[N,2,3,3] y) { y = MaxPool<kernel_shape=[2,2]>(x) }",
        [(0, 2, 4, 4), (0, 2, 3, 3)],
    ),
    "TopK": (
        "g (float[N,3] x) => (float[N,2] y) { k = Constant<value_ints=[2]>() y, i = TopK<axis=1>(x, k) }",
        [(0, 3), (0, 2)],
    ),
    "Conv": (
        "g (float[N,2,5] x, float[2,2,3] w) => (float[N,2,3] y) { y = Conv(x, w) }",
        [(0, 2, 5), (2, 2, 3), (0, 2, 3)],
    ),
    "Einsum": (
        'g (float[N,2] x, float[2,3] w) => (float[N,3] y) { y = Einsum<equation="ij,jk->ik">(x, w) }',
        [(0, 2), (2, 3), (0, 3)],
    ),
    "MatMul": (
        "g (float[2,N,3] x, float[2,3,1] w) => (float[2,N,1] y) { y = MatMul(x, w) }",
        [(2, 0, 3), (2, 3, 1), (2, 0, 1)],
    ),
    "MatMul of matrices": (
        "g (float[N,3] x, float[3,2] w) => (float[N,2] y) { y = MatMul(x, w) }",
        [(0, 3), (3, 2), (0, 2)],
    ),
    "MatMul in float64": (
        "g (double[N,K] x, double[K,M] w) => (double[N,M] y) { y = MatMul(x, w) }",
        [(0, 3), (3, 2), (0, 2)],
    ),
    "Gemm": (
        "g (float[3,N] x, float[2,3] w, float[2] b) => (float[N,2] y) "
        "{ y = Gemm<transA=1, transB=1, alpha=0.5>(x, w, b) }",
        [(3, 0), (2, 3), (2,), (0, 2)],
    ),
    "no indices": (
        "g (float[A,B] x, int64[0] i) => (float[0,B] y) { y = Gather(x, i) }",
        [(2, 3), (0,), (0, 3)],
    ),
    "no indices of two axes": (
        "g (float[A,B] x, int64[0,1] i) => (float[0,B] y) { y = GatherND(x, i) }",
        [(2, 3), (0, 1), (0, 3)],
    ),
    "Tile": (
        "g (double[N,3] x, int64[2] r) => (double[M,6] y) { y = Tile(x, r) }",
        [(0, 3), (2,), (0, 6)],
    ),
    "Scan": (
        """g (float[N,4,2] x) => (float[N,2,4] y) { y = Scan(x) <num_scan_inputs=1, scan_input_axes=[1],
        scan_output_axes=[2], body = b (float[N,2] v) => (float[N,2] w) { w = Sin(v) }> }""",
        [(0, 4, 2), (0, 2, 4)],
    ),
    "broadcast": (
        "g (double[N,3] x, double[M,3] w) => (double[K,3] y) { y = Add(x, w) }",
        [(0, 3), (1, 3), (0, 3)],
    ),
}


def compute(text, opset, *shapes):
    """Compute the gradient of a model for given shapes of its inputs and its output."""
    model = parse(text, opset)
    feeds = {}
    for value, size in zip((*model.graph.input, *model.graph.output), shapes, strict=True):
        kind = {1: np.float32, 7: np.int64, 11: np.float64}[value.type.tensor_type.elem_type]
        feeds[value.name] = np.ones(size, dtype=kind)
    feeds["y_grad"] = feeds.pop("y")
    grads = run_onnxruntime(onnx_derivative(model, backend="rules"), feeds)
    for grad, value in zip(grads, shapes, strict=False):
        assert grad.shape == value
        assert not grad.any()


if __name__ == "__main__":
    for name, (text, shapes) in MODELS.items():
        for version in map(int, sys.argv[1:]):
            print(name, "in opset", version, flush=True)  # for a process that ends here
            compute(text, version, *shapes)
    print("survived")
