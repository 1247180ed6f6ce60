"""Penalties as nodes of a graph of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnx import NodeProto, TensorProto

from .. import plugins
from ..graphs import GraphBuilder
from .base import BasePenalty
from .elastic import ElasticPenalty
from .per_weight import PerWeightPenalty

__all__ = ["penalty_loss_onnx", "resolve_penalty"]


def resolve_penalty(spec: Any) -> BasePenalty:
    """Return the penalty a user asked for: None, a name, a class, an object, or a dictionary of them.

    Parameters
    ----------
    spec : None, str, type, BasePenalty or dict
        None is no penalty; a dictionary has penalties by names of weights (:class:`PerWeightPenalty`).

    Returns
    -------
    BasePenalty
        New object.

    Raises
    ------
    PluginError
        If it is none of these, or unknown, or if a parameter makes no sense.

    Examples
    --------
    >>> from ortlearn.penalties import resolve_penalty
    >>> resolve_penalty("l1")
    L1Penalty()
    >>> resolve_penalty({"coefs_[0]": "l1"})
    PerWeightPenalty(penalties={'coefs_[0]': 'l1'})
    """
    if isinstance(spec, Mapping):
        spec = PerWeightPenalty(dict(spec))
    penalty = plugins.create(plugins.PENALTIES, "none" if spec is None else spec, BasePenalty)
    penalty.check()
    return penalty


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
        Names already taken in the graph; the new ones are added to it.

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
    ['Mul', 'ReduceSum', 'Mul']
    """
    if not l1 and not l2:
        raise ValueError(f"Weight {name!r} has no penalty: set l1, l2 or both.")
    names = set() if existing_names is None else existing_names
    op = GraphBuilder(dtype=dtype, existing_names=names | {name}, prefix=f"penalty_{name}_")
    ElasticPenalty(l1=l1 or 0.0, l2=l2 or 0.0).forward(op, name)
    for node in op.nodes:
        names.update((node.name, *node.output))
    names.update(tensor.name for tensor in op.initializers)
    return op.initializers, op.nodes
