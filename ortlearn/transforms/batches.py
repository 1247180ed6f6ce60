"""Batched graphs, the public form: the same graph for many inputs, or many models as one graph."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from onnx import ModelProto, TensorProto

from .batching import NotBatchable, align, batched_model

__all__ = ["batched"]


def batched(
    models: ModelProto | Sequence[ModelProto],
    size: int | None = None,
    inputs: Collection[str] | None = None,
) -> ModelProto:
    """Return one graph for several inputs of a graph, or for several graphs of the same structure.

    Parameters
    ----------
    models : onnx.ModelProto or sequence of them
        A graph, or graphs that differ only in the values of constants, such as the members of an ensemble.
    size : int, default=None
        Number of copies, for a single graph.
    inputs : collection of str, default=None
        Inputs that get a leading axis, one entry per copy; others are shared by all copies. By default all
        of a single graph, and none of several.

    Returns
    -------
    onnx.ModelProto
        Graph with the same names, whose outputs have a leading axis of the number of copies.

    Raises
    ------
    NotBatchable
        If an operator has no batching rule, the rank of a tensor is unknown, or the structures differ.
    ValueError
        If ``size`` or a name is invalid.

    Examples
    --------
    Gradients of single samples, with respect to a weight that they share:

    >>> import numpy as np
    >>> from onnx import parser
    >>> from onnx.reference import ReferenceEvaluator
    >>> from ortlearn.transforms import batched, gradient
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]> g (float[1,2] x) => (float[1,1] y)
    ...     <float[2,1] w = {1, 2}> { z = MatMul (x, w) y = Mul (z, z) }''')
    >>> by_sample = batched(gradient(model, wrt=["w"]), size=2)
    >>> feeds = {"x": np.float32([[[1, 0]], [[0, 1]]]), "y_grad": np.ones((2, 1, 1), np.float32)}
    >>> ReferenceEvaluator(by_sample).run(None, feeds)[0].squeeze(2).tolist()  # 2 (x w) x
    [[2.0, 0.0], [0.0, 4.0]]
    """
    is_single = isinstance(models, ModelProto)
    parts = [models] if isinstance(models, ModelProto) else list(models)
    size = size if is_single else len(parts)
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise ValueError(f"size={size!r} must be a positive number of copies of a graph, or pass graphs.")
    kinds = {value.name: value.type.tensor_type.elem_type for value in parts[0].graph.input}
    inputs = (list(kinds) if is_single else []) if inputs is None else list(inputs)
    unknown = [name for name in inputs if name not in kinds]
    if unknown:
        raise ValueError(f"inputs: {unknown} are not inputs of the graph, which are {list(kinds)}.")
    if is_single:
        return batched_model(parts[0], inputs, {}, size)
    aligned = align(parts, np.float64 if TensorProto.DOUBLE in kinds.values() else np.float32)
    if aligned is None:
        raise NotBatchable("The graphs differ in more than the values of constants of equal shapes.")
    return batched_model(aligned.model, inputs, aligned.constants, size)
