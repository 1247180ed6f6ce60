"""The path of a gradient through a graph, as the rewrites see it."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import NodeProto, helper

__all__ = ["GradientPath", "attributes_of"]


@dataclass(frozen=True)
class GradientPath:
    """The part of a graph that a gradient passes.

    Attributes
    ----------
    reached : set of str
        Tensors that depend on what is differentiated to.
    read : set of str
        Tensors that nodes on the path read.
    constants : mapping of str to ndarray
        Initializers and results of Constant nodes.
    """

    reached: Set[str]
    read: Set[str]
    constants: Mapping[str, np.ndarray] = field(default_factory=dict)


def attributes_of(node: NodeProto) -> dict[str, Any]:
    """Return the attributes of a node by name."""
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}
