"""Loops: one for all candidates, whose values are carried side by side."""

from __future__ import annotations

from onnx import GraphProto, NodeProto, helper

from ...graphs import TensorType, make_value_info, value_types
from ...graphs.nodes import attribute
from ...training.sessions import CONDITION
from .scope import BatchScope, NotBatchable

__all__ = ["RULES"]


def loop(scope: BatchScope, node: NodeProto) -> list[str]:
    """Write a Loop over as many iterations as that of one candidate has.

    The loop over batches goes on where that of one candidate would stop, at a loss that is not finite: the
    other candidates need it.
    """
    if any(scope.is_batched(name) for name in node.input[:2] if name):
        raise NotBatchable("Loop with a number of iterations of each candidate.")
    body, starts = attribute(node, "body"), list(node.input[2:])
    inputs = [value.name for value in body.input]
    pairs = list(zip(inputs[2:], starts, strict=True))
    known = {name: scope.type(start) for name, start in pairs}
    batched = {name for name, start in pairs if scope.is_batched(start)}
    while True:
        inner = scope.child(body, known)
        inner.batched |= batched
        inner.rewrite()
        results = [value.name for value in body.output[1 : 1 + len(starts)]]
        found = {name for name, result in zip(inputs[2:], results, strict=True) if inner.is_batched(result)}
        if found <= batched:
            break
        batched |= found  # shared at first, and different after an iteration
    if inner.is_batched(body.output[0].name) and node.input[1] != CONDITION:
        raise NotBatchable("Loop with an end that depends on values of each candidate.")
    graph = _body(scope, inner, batched)
    carried = [scope.expanded(start) if name in batched else start for name, start in pairs]
    names, scanned, shared = list(node.output), [], []
    for number, (name, value) in enumerate(zip(node.output, body.output[1:], strict=True)):
        is_batched = inputs[2 + number] in batched if number < len(starts) else inner.is_batched(value.name)
        if not is_batched:
            shared.append(name)
        elif number >= len(starts) and name:
            names[number] = scope.op.unique("scanned")
            scanned.append((names[number], name))
    nodes = scope.op.nodes
    nodes.append(helper.make_node("Loop", [*node.input[:2], *carried], names, name=node.name, body=graph))
    for raw, name in scanned:  # iterations come first, candidates after them
        scope.op.Transpose(raw, perm=[1, 0, *range(2, scope.rank(name) + 1)], outputs=[name])
    return shared


def _body(scope: BatchScope, inner: BatchScope, batched: set[str]) -> GraphProto:
    """Return the body of a Loop, whose inputs of these names are batched."""
    body, size = inner.graph, scope.size
    inputs = [
        _info(value.name, inner.types.get(value.name), size, value.name in batched) for value in body.input
    ]
    outputs = []
    # onnxruntime gives the output of a loop without iterations the lengths that are declared, 0 for others.
    declared = value_types(helper.make_model(body), infer=False)
    for number, value in enumerate(body.output):
        name, is_batched = value.name, inner.is_batched(value.name)
        if number == 0 and is_batched:
            name, is_batched = inner.op.Identity(body.input[1].name), False
        elif 0 < number < len(body.input) - 1 and body.input[1 + number].name in batched:
            name, is_batched = inner.expanded(name), True
        outputs.append(_info(name, declared.get(value.name, inner.type(value.name)), size, is_batched))
    return helper.make_graph(inner.op.nodes, body.name, inputs, outputs, inner.op.initializers)


def _info(name: str, known: TensorType | None, size: int, is_batched: bool):
    if known is not None and is_batched and known.shape is not None:
        known = TensorType(known.elem_type, (size, *known.shape))
    return make_value_info(name, known)


RULES = {("", "Loop"): loop}
