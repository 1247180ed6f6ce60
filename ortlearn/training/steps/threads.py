"""Number of threads of a training: several are faster only for large products."""

from __future__ import annotations

import math

from onnx import NodeProto

from ...graphs import TensorType, value_types
from ...graphs.nodes import attribute
from ...runtime.sessions import n_threads
from ..graphs.objective import with_batch_dimension
from ..graphs.task import TrainingTask

__all__ = ["largest_product", "threads_of_training"]

#: Floating-point operations of a product above which several threads are faster. Relative to one thread, two
#: threads took 1.16 times as long for 4.2 million operations, and 0.73 times for 103 million.
LARGE = 2**24
#: Operators whose cost does not follow from the shapes of their inputs and output.
WITH_PRODUCTS_INSIDE = frozenset(
    {"ConvTranspose", "DeformConv", "Einsum", "GRU", "If", "LSTM", "Loop", "RNN", "Scan"}
)


def threads_of_training(task: TrainingTask, size: int | str, n_jobs: int | None) -> int | None:
    """Return ``n_jobs``, or 1 if no product of a batch is large enough for several threads."""
    if n_threads(n_jobs) == 1:
        return n_jobs
    return n_jobs if largest_product(task, size) >= LARGE else 1


def largest_product(task: TrainingTask, size: int | str) -> float:
    """Return the floating-point operations of the largest matrix product or convolution of a batch."""
    model = with_batch_dimension(task, size)
    types = value_types(model)
    return max((_operations(node, types) for node in model.graph.node), default=0.0)


def _operations(node: NodeProto, types: dict[str, TensorType]) -> float:
    if node.domain not in ("", "ai.onnx") or node.op_type in WITH_PRODUCTS_INSIDE:
        return math.inf
    if node.op_type not in ("Conv", "Gemm", "MatMul"):
        return 0.0
    left, right, result = (_sizes(types, name) for name in (*node.input[:2], node.output[0]))
    if left is None or right is None or result is None:
        return math.inf
    if node.op_type == "Conv":
        terms = math.prod(right[1:])
    else:
        terms = left[0] if node.op_type == "Gemm" and attribute(node, "transA", 0) else left[-1]
    return 2.0 * math.prod(result) * terms


def _sizes(types: dict[str, TensorType], name: str) -> list[int] | None:
    """Return the shape of a tensor, or None if it is not completely known."""
    known = types[name].shape if name in types else None
    sizes = [dim for dim in known or () if isinstance(dim, int)]
    return sizes if known is not None and len(sizes) == len(known) else None
