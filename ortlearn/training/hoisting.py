"""What depends only on the inputs and on frozen weights is computed once, before the training."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from onnx import ModelProto, helper
from scipy.sparse import issparse

from ..graphs import TensorType, extract_model, make_value_info, node_inputs
from .buffers import Data, take_rows
from .sessions import Device, make_session
from .task import TrainingTask

__all__ = ["hoist"]

#: Bytes of a chunk of rows, about: memory stays bounded whatever the number of rows.
CHUNK_BYTES = 2**24
#: Rows on which the frozen part must give the same one by one as together.
PROBE_ROWS = 8


def hoist(task: TrainingTask, data: Data, device: Device, n_jobs: int | None) -> tuple[TrainingTask, Data]:
    """Compute the frozen prefix of a task on all rows, and return the task that is left.

    A prefix that does not treat rows one by one (a mean over the batch, say) stays where it is.

    Parameters
    ----------
    task : TrainingTask
        What is trained.
    data : Data
        Rows.
    device : Device
        Where to compute.
    n_jobs : int or None
        Threads of an operator.

    Returns
    -------
    task : TrainingTask
        The same objective from the results of the prefix; the task itself if there is none.
    data : Data
        Rows with these results.

    Examples
    --------
    >>> import numpy as np
    >>> from onnx import parser
    >>> from ortlearn.graphs import TensorType
    >>> from ortlearn.learning_rates import LearningRateSGD
    >>> from ortlearn.losses import SquaredErrorLoss
    >>> from ortlearn.penalties import NoPenalty
    >>> from ortlearn.training import Data, TrainingTask, hoist, parse_device
    >>> graph = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,1] x, float[1,1] w) => (float[N,1] f) { s = Exp (x) f = MatMul (s, w) }''')
    >>> column = TensorType(1, (None, 1))
    >>> task = TrainingTask(graph, "x", column, "f", column, ["w"], {"w": False}, SquaredErrorLoss(), column,
    ...                     NoPenalty(), LearningRateSGD())
    >>> rows = np.zeros((4, 1), dtype=np.float32)
    >>> left, data = hoist(task, Data(rows, rows), parse_device("cpu"), None)
    >>> [node.op_type for node in left.graph.graph.node], data.features["s"].ravel().tolist()
    (['MatMul'], [1.0, 1.0, 1.0, 1.0])
    """
    frontier = _frontier(task)
    if frontier in ([], [task.data]):
        return task, data
    own = [name for name in frontier if name != task.data or issparse(data.X)]
    session = make_session(_for_any_rows(extract_model(task.graph, own, inputs=[task.data])), device, n_jobs)
    if not _is_row_wise(session, task.data, data.X):
        return task, data
    features = _run_in_chunks(session, task.data, data.X)
    if task.data in frontier:
        features.setdefault(task.data, data.X)
    known = {
        name: TensorType(helper.np_dtype_to_tensor_dtype(array.dtype), (None, *array.shape[1:]))
        for name, array in features.items()
    }
    others = [v.name for v in task.graph.graph.input if v.name != task.data]
    rest = extract_model(task.graph, [task.output], inputs=[*frontier, *others])
    for value in rest.graph.input:
        if value.name in known:
            value.CopyFrom(make_value_info(value.name, known[value.name]))
    return replace(task, graph=rest, features=known), Data(data.X, data.y, data.sample_weight, features)


def _frontier(task: TrainingTask) -> list[str]:
    """Return the tensors where the frozen part ends."""
    changing = {*task.weights, task.label}
    frozen = {task.data}
    constants: set[str] = {tensor.name for tensor in task.graph.graph.initializer}
    read: list[str] = []
    for node in task.graph.graph.node:
        reads = node_inputs(node)
        if reads & changing or task.output in node.output:
            changing.update(node.output)
            read += [name for name in node.input if name in frozen]
            read += sorted(reads & frozen - set(node.input))
        elif reads <= constants:
            constants.update(node.output)
        else:
            frozen.update(node.output)
    return list(dict.fromkeys(read))


def _for_any_rows(prefix: ModelProto) -> ModelProto:
    """Return a prefix that takes any number of rows, also where the model declares one."""
    for dim in prefix.graph.input[0].type.tensor_type.shape.dim[:1]:
        dim.dim_param = "rows"
    for value in prefix.graph.output:
        value.type.tensor_type.ClearField("shape")
    return prefix


def _is_row_wise(session, name: str, rows: np.ndarray) -> bool:
    """Tell whether some rows give the same together and one by one."""
    # Far apart: neighbours are often alike, and alike rows tell nothing.
    last = rows.shape[0] - 1
    probe = take_rows(rows, np.linspace(0, last, min(PROBE_ROWS, last + 1)).astype(np.int64))
    together = session.run(None, {name: probe})
    single = [session.run(None, {name: probe[i : i + 1]}) for i in range(len(probe))]
    for position, whole in enumerate(together):
        parts = [result[position] for result in single]
        if whole.ndim == 0 or len(whole) != len(probe) or any(p.shape[:1] != (1,) for p in parts):
            return False
        if not np.allclose(whole, np.concatenate(parts), rtol=1e-5, atol=1e-6, equal_nan=True):
            return False
    return True


def _run_in_chunks(session, name: str, rows: np.ndarray) -> dict[str, np.ndarray]:
    outputs = [value.name for value in session.get_outputs()]
    n_rows = rows.shape[0]
    size = max(1, CHUNK_BYTES // max(1, rows.shape[1] * rows.dtype.itemsize))
    results: dict[str, np.ndarray] = {}
    for start in range(0, n_rows, size):
        part: Any = rows[start : start + size]
        chunk = part.toarray() if issparse(part) else np.ascontiguousarray(part)
        for output, value in zip(outputs, session.run(outputs, {name: chunk}), strict=True):
            if start == 0:
                results[output] = np.empty((n_rows, *value.shape[1:]), dtype=value.dtype)
            results[output][start : start + size] = value
    return results
