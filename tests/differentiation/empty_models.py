"""Gradients of tensors without elements.

``python -m tests.differentiation.empty_models TopK 13 18`` computes some at two versions of the operators.
"""

from __future__ import annotations

import sys

import numpy as np

from ortlearn.differentiation import onnx_derivative
from tests.differentiation.evaluation import run_onnxruntime
from tests.differentiation.models import parse

__all__ = ["MODELS"]

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


def compute(text, opset, shape, other):
    """Compute the gradient of a model in which the first input has one shape, the second another."""
    model = parse(text, opset)
    feeds = {}
    for value, size in zip(model.graph.input, (shape, other), strict=False):
        kind = {1: np.float32, 7: np.int64, 11: np.float64}[value.type.tensor_type.elem_type]
        feeds[value.name] = np.ones(size, dtype=kind)
    onx = onnx_derivative(model, backend="rules")
    # That of onnxruntime stops the process.
    values = [np.zeros((0, 2), np.float32)] if "TopK" in text else run_onnxruntime(model, feeds)
    grads = run_onnxruntime(onx, {**feeds, "y_grad": np.ones_like(values[0])})
    assert grads[0].shape == shape
    assert not any(grad.any() for grad in grads[: 1 if shape[0] == 0 else 2])


if __name__ == "__main__":
    for version in sys.argv[2:]:
        text, *shapes = MODELS[sys.argv[1]]
        compute(text, int(version), *shapes)
        print("opset", version, "survived", flush=True)
