"""Paths of gradients through a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto

from ...graphs import TensorType, node_inputs

__all__ = ["GradientPath", "gradient_nodes", "is_float"]

_NOT_FLOATS = {TensorProto.BOOL, TensorProto.INT32, TensorProto.INT64, TensorProto.STRING}


@dataclass(frozen=True)
class GradientPath:
    """The part of a graph on gradient paths.

    Attributes
    ----------
    reached : set of str
        Tensors that depend on a differentiated one.
    read : set of str
        Tensors that nodes on the path read.
    value : callable
        Returns the value of a constant, or None for other tensors.
    """

    reached: Set[str]
    read: Set[str]
    value: Callable[[str], np.ndarray | None]


def gradient_nodes(
    model: ModelProto, outputs: Iterable[str], wrt: Iterable[str], types: Mapping[str, TensorType]
) -> list[NodeProto]:
    """Return the nodes on gradient paths, in order."""

    def carrying(names: Iterable[str]) -> set[str]:
        return {name for name in names if name and is_float(types.get(name))}

    needed, before = set(outputs), []
    for node in reversed(model.graph.node):
        if not needed.isdisjoint(carrying(node.output)):
            before.append(node)
            needed |= carrying(node_inputs(node))
    reached, found = set(wrt), []
    for node in reversed(before):
        if not reached.isdisjoint(node_inputs(node)):
            found.append(node)
            reached |= carrying(node.output)
    return found


def is_float(known: TensorType | None) -> bool:
    """Return whether a tensor may have a gradient."""
    return known is None or known.elem_type not in _NOT_FLOATS
