"""Nodes of a penalty for any graph."""

from __future__ import annotations

from typing import Any

from onnx import NodeProto, TensorProto

from ..graphs import GraphBuilder
from .elastic import ElasticPenalty

__all__ = ["penalty_loss_onnx"]


def penalty_loss_onnx(
    name: str,
    dtype: Any,
    l1: float | None = None,
    l2: float | None = None,
    existing_names: set[str] | None = None,
) -> tuple[list[TensorProto], list[NodeProto]]:
    """Return the nodes that compute ``l1 * |w| + l2 * w ** 2``, summed over a weight.

    Parameters
    ----------
    name : str
        Name of the weight w.
    dtype : dtype
        Its type, float32 or float64.
    l1 : float, default=None
        Factor of the absolute values.
    l2 : float, default=None
        Factor of the squares.
    existing_names : set of str, default=None
        Names in the graph, to which the new ones are added.

    Returns
    -------
    initializers : list of onnx.TensorProto
        Constants.
    nodes : list of onnx.NodeProto
        Nodes; the output of the last one is the penalty, a scalar of shape ().

    Raises
    ------
    ValueError
        If both factors are None or zero.

    Examples
    --------
    >>> import numpy
    >>> from ortlearn.penalties import penalty_loss_onnx
    >>> initializers, nodes = penalty_loss_onnx("w", numpy.float32, l2=0.1)
    >>> [node.op_type for node in nodes]
    ['ReduceSumSquare', 'Mul']
    """
    if not l1 and not l2:
        raise ValueError(f"The penalty of weight {name!r} is empty: set l1, l2 or both.")
    names = set() if existing_names is None else existing_names
    op = GraphBuilder(dtype=dtype, existing_names=names | {name}, prefix=f"penalty_{name}_")
    ElasticPenalty(l1=l1 or 0.0, l2=l2 or 0.0).forward(op, name)
    for node in op.nodes:
        names.update((node.name, *node.output))
    names.update(tensor.name for tensor in op.initializers)
    return op.initializers, op.nodes
