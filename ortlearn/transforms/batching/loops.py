"""Batching rule of Loop: one loop for all candidates."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, helper

from ...graphs import TensorType, make_value_info, value_types
from ...graphs.nodes import attribute
from ...runtime.sessions import CONDITION
from .scope import BatchScope, NotBatchable

__all__ = ["RULES"]


def loop(scope: BatchScope, node: NodeProto) -> list[str]:
    """Write a Loop with the same number of iterations.

    The loop over training batches ignores its condition: if the loss of one candidate is not finite, the
    others continue.
    """
    if any(scope.is_batched(name) for name in node.input[:2] if name):
        raise NotBatchable("Loop with a trip count or condition that differs between candidates.")
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
        batched |= found  # shared before the first iteration, batched after it
    if inner.is_batched(body.output[0].name) and node.input[1] != CONDITION:
        raise NotBatchable("Loop with a condition that differs between candidates.")
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
    for raw, name in scanned:  # axes are iterations, then candidates
        raw = _with_lengths(scope, raw, name)
        scope.op.Transpose(raw, perm=[1, 0, *range(2, scope.rank(name) + 1)], outputs=[name])
    return shared


def _with_lengths(scope: BatchScope, raw: str, name: str) -> str:
    """Return a scanned output of a Loop in its shape, also if it has no iterations.

    Lengths that are not declared are zero then, in onnxruntime.
    """
    lengths, first = scope.shape(name)[1:], scope.length
    if isinstance(first, list) or not all(isinstance(length, int) for length in lengths):
        return raw
    if scope.op.opset < 14:
        raise NotBatchable("Loop before opset 14 with any number of candidates.")
    n_iterations = scope.op.Slice(scope.op.Shape(raw), [0], [1], [0])
    shape = scope.op.Concat(n_iterations, first, np.array(lengths, dtype=np.int64), axis=0)
    return scope.op.Reshape(raw, shape, allowzero=1)


def _body(scope: BatchScope, inner: BatchScope, batched: set[str]) -> GraphProto:
    """Return the body of a Loop in which these inputs are batched."""
    body, size = inner.graph, scope.size
    inputs = [
        _info(value.name, inner.types.get(value.name), size, value.name in batched) for value in body.input
    ]
    outputs = []
    # Outputs of a loop without iterations have the declared lengths in onnxruntime, and 0 if not declared.
    declared = value_types(helper.make_model(body), infer=False)
    for number, value in enumerate(body.output):
        name, is_batched = value.name, inner.is_batched(value.name)
        if number == 0 and is_batched:
            name, is_batched = inner.op.Identity(body.input[1].name), False
        elif 0 < number < len(body.input) - 1 and body.input[1 + number].name in batched:
            name, is_batched = inner.expanded(name), True
        outputs.append(_info(name, declared.get(value.name, inner.type(value.name)), size, is_batched))
    return helper.make_graph(inner.op.nodes, body.name, inputs, outputs, inner.op.initializers)


def _info(name: str, known: TensorType | None, size: int | str, is_batched: bool) -> Any:
    if known is not None and is_batched and known.shape is not None:
        known = TensorType(known.elem_type, (size, *known.shape))
    return make_value_info(name, known)


RULES = {("", "Loop"): loop}
