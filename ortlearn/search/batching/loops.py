"""Loops: one for all candidates, whose values are carried side by side."""

from __future__ import annotations

from onnx import GraphProto, NodeProto, helper

from ...graphs import TensorType, make_value_info
from ...graphs.nodes import attribute
from .scope import BatchScope, NotBatchable

__all__ = ["RULES"]


def loop(scope: BatchScope, node: NodeProto) -> None:
    """Write a Loop over as many iterations as that of one candidate has.

    A condition that depends on what is carried, as that of a training which stops at a loss that is not
    finite, is left out: the other candidates go on.
    """
    if any(scope.is_batched(name) for name in node.input[:2] if name):
        raise NotBatchable("Loop with a number of iterations of each candidate.")
    body, starts = attribute(node, "body"), list(node.input[2:])
    inputs = [value.name for value in body.input]
    known = dict(zip(inputs[2:], map(scope.type, starts), strict=True))
    batched = {name for name, start in zip(inputs[2:], starts, strict=True) if scope.is_batched(start)}
    while True:
        inner = scope.child(body, known)
        inner.batched |= batched
        inner.rewrite()
        results = [value.name for value in body.output[1 : 1 + len(starts)]]
        found = {name for name, result in zip(inputs[2:], results, strict=True) if inner.is_batched(result)}
        if found <= batched:
            break
        batched |= found  # shared at first, and different after an iteration
    outputs = _write_body(scope, node, inner, batched)
    written = [scope.expanded(s) if n in batched else s for n, s in zip(inputs[2:], starts, strict=True)]
    graph = outputs.pop("body")
    scope.op.nodes.append(
        helper.make_node("Loop", [*node.input[:2], *written], outputs["names"], name=node.name, body=graph)
    )
    for name, raw in outputs["scanned"]:
        rank = scope.rank(name)
        scope.op.Transpose(raw, perm=[1, 0, *range(2, rank + 1)], outputs=[name])
    return outputs["shared"]


def _write_body(scope: BatchScope, node: NodeProto, inner: BatchScope, batched: set[str]) -> dict:
    """Return the body, and what becomes of the outputs of the node."""
    body, size = inner.graph, scope.size
    n_carried = len(node.input) - 2
    infos, outputs = [], []
    for value in body.input:
        known = inner.types.get(value.name)
        infos.append(_info(value.name, known, size, value.name in batched))
    names, scanned, shared = list(node.output), [], []
    for number, value in enumerate(body.output):
        name, known = value.name, inner.type(value.name)
        is_batched = inner.is_batched(name)
        if number == 0:
            if is_batched:
                name, is_batched = inner.op.Identity(body.input[1].name), False
        elif number <= n_carried:
            if body.input[1 + number].name in batched:
                name, is_batched = inner.expanded(name), True
        elif is_batched and names[number - 1]:
            names[number - 1] = scope.op.unique("scanned")
            scanned.append((node.output[number - 1], names[number - 1]))
        if number and not is_batched:
            shared.append(node.output[number - 1])
        outputs.append(_info(name, known, size, is_batched))
    graph: GraphProto = helper.make_graph(inner.op.nodes, body.name, infos, outputs, inner.op.initializers)
    return {"body": graph, "names": names, "scanned": scanned, "shared": shared}


def _info(name: str, known: TensorType | None, size: int, is_batched: bool):
    if known is not None and is_batched and known.shape is not None:
        known = TensorType(known.elem_type, (size, *known.shape))
    return make_value_info(name, known)


RULES = {("", "Loop"): loop}
