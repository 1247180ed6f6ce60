"""Memory of what a graph computes of a sample, which its gradient reads again."""

from __future__ import annotations

import math

from onnx import ModelProto, helper

from ..graphs import value_types
from .buffers import Data, row_bytes
from .hoisting import CHUNK_BYTES
from .task import TrainingTask

__all__ = ["activation_bytes", "rows_of_call"]

#: Bytes of activations that one call may hold; more samples are computed in several calls.
MAX_ACTIVATIONS = 2**27


def activation_bytes(model: ModelProto) -> int:
    """Return the bytes of the results of all nodes for one sample.

    Parameters
    ----------
    model : onnx.ModelProto
        Graph whose samples come first.

    Returns
    -------
    int
        Bytes. Results of a fixed size are left out, and so are those of unknown type; a size that is not
        known counts as one.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.training.activations import activation_bytes
    >>> activation_bytes(parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,3] x, float[3,5] w) => (float[N,5] y) { z = MatMul (x, w) y = Tanh (z) }'''))
    40
    """
    types, total = value_types(model), 0
    for name in (name for node in model.graph.node for name in node.output):
        known = types.get(name)
        if known is not None and known.shape and not isinstance(known.shape[0], int):
            sizes = [size for size in known.shape[1:] if isinstance(size, int)]
            total += math.prod(sizes) * helper.tensor_dtype_to_np_dtype(known.elem_type).itemsize
    return total


def rows_of_call(task: TrainingTask, data: Data) -> int | None:
    """Return the number of samples that one call computes objective and gradient of, None for all of them.

    Sparse samples are made dense in chunks. A graph's own loss may be anything of its samples: it gets all.

    Parameters
    ----------
    task : TrainingTask
        What is trained.
    data : Data
        All samples.

    Returns
    -------
    int or None
        Number.
    """
    if task.objective.loss is None:
        return None
    if data.is_sparse:
        return max(1, CHUNK_BYTES // row_bytes(data.inputs(task).values()))
    size = max(1, MAX_ACTIVATIONS // max(1, activation_bytes(task.graph.model)))
    return size if size < len(data) else None
