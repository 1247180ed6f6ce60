"""Tensors filled with one number are used as that number."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from .body import Body

__all__ = ["use_scalars"]

ELEMENTWISE = {"Mul", "Div", "Add", "Sub"}
RESHAPING = {"Unsqueeze", "Squeeze", "Reshape", "Expand", "Identity", "Flatten", "Transpose"}


def use_scalars(body: Body) -> None:
    """Compute with a scalar what is the same for every element, and broadcast it at its last use.

    The mean over a batch, for instance, starts its gradient as one number for all rows: expanding
    and reshaping it takes a node each, where ``Mul`` broadcasts a scalar for nothing.
    """
    scalars: dict[str, str] = {}
    nodes: list[NodeProto] = []
    for node in body.nodes:
        own = _scalar_of(body, node, scalars, nodes)
        if own is not None:
            scalars[node.output[0]] = own
            nodes.append(node)  # dropped with what nothing needs, where nobody wants the tensor
            continue
        if node.op_type in ELEMENTWISE and node.domain == "":
            _broadcast(body, node, scalars)
        nodes.append(node)
    body.replace(nodes)


def _single(body: Body, name: str, scalars: dict[str, str]) -> str | None:
    """Return a tensor of shape () or (1,) that holds what every element of a tensor is."""
    if name in scalars:
        return scalars[name]
    return name if body.is_single(name) and len(body.shape(name) or ()) <= 1 else None


def _scalar_of(body: Body, node: NodeProto, scalars: dict[str, str], nodes: list[NodeProto]) -> str | None:
    if node.domain != "" or len(node.output) != 1:
        return None
    if node.op_type in RESHAPING:
        source = _single(body, node.input[0], scalars)
        return source if source is not None and not _is_small(body, node.output[0]) else None
    if node.op_type in ELEMENTWISE and any(name in scalars for name in node.input):
        parts = [_single(body, name, scalars) for name in node.input]
        if all(part is not None for part in parts):
            return _combine(body, node, [str(part) for part in parts], nodes)
    return None


def _is_small(body: Body, name: str) -> bool:
    return body.is_single(name)


def _combine(body: Body, node: NodeProto, parts: list[str], nodes: list[NodeProto]) -> str:
    values = [body.value(part) for part in parts]
    if values[0] is not None and values[1] is not None:
        operate = {"Mul": np.multiply, "Div": np.divide, "Add": np.add, "Sub": np.subtract}[node.op_type]
        with np.errstate(all="ignore"):
            result = operate(values[0].reshape(()), values[1].reshape(()))
        return body.constant(np.asarray(result, dtype=values[0].dtype))
    new, name = body.make(node.op_type, *parts, like=parts[0])
    nodes.append(new)
    return name


def _broadcast(body: Body, node: NodeProto, scalars: dict[str, str]) -> None:
    """Let a node read a scalar where its other operand has the shape of the result."""
    result = body.shape(node.output[0])
    for position, name in enumerate(node.input):
        other = node.input[1 - position]
        if name in scalars and other not in scalars and result is not None and body.shape(other) == result:
            node.input[position] = scalars[name]
