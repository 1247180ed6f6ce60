"""Limit the number of iterations of loops, which may otherwise not end."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, helper, numpy_helper

from .editing import copy_model
from .nodes import subgraphs

__all__ = ["LIMIT", "MAX_ITERATIONS", "with_loop_limits"]

#: Largest number of iterations of a Loop.
MAX_ITERATIONS = 1_000_000
#: Prefix of the names of nodes that enforce the limit.
LIMIT = "ortlearn_limit"


def with_loop_limits(model: ModelProto, trusted: str, most: int = MAX_ITERATIONS) -> ModelProto:
    """Return the model with an error in every Loop that exceeds the limit, by default a million iterations.

    Loops over batches, whose condition is ``trusted``, are not limited.
    """
    if not any(True for _ in _unlimited_loops(model.graph, trusted, {}, most)):
        return model
    model = copy_model(model)
    for number, node in enumerate(list(_unlimited_loops(model.graph, trusted, {}, most))):
        for body in subgraphs(node):
            _limit(body, f"{LIMIT}_{number}", most)
    return model


def _unlimited_loops(
    graph: GraphProto, trusted: str, outer: dict[str, int], most: int
) -> Iterator[NodeProto]:
    """Yield the Loops that may exceed the limit."""
    known = dict(outer)
    for tensor in graph.initializer:
        if tensor.data_type == tensor.INT64 and list(tensor.dims) in ([], [1]):
            known[tensor.name] = int(numpy_helper.to_array(tensor).reshape(()))
    for node in graph.node:
        if node.op_type == "Loop" and node.domain in ("", "ai.onnx"):
            is_trusted = bool(trusted) and node.input[1] == trusted
            if not is_trusted and known.get(node.input[0], most + 1) > most:
                yield node
        for inner in subgraphs(node):
            yield from _unlimited_loops(inner, trusted, known, most)


def _limit(body: GraphProto, name: str, most: int) -> None:
    """Make the iteration at the limit fail: it gathers element iteration // limit of a list of one."""
    limit = numpy_helper.from_array(np.array(most), f"{name}_iterations")
    allowed = numpy_helper.from_array(np.array([True]), f"{name}_allowed")
    body.initializer.extend([limit, allowed])
    condition = body.output[0].name
    for op_type, inputs, output in (
        ("Div", [body.input[0].name, limit.name], "index"),
        ("Gather", [allowed.name, f"{name}_index"], "passed"),
        ("And", [condition, f"{name}_passed"], "condition"),
    ):
        body.node.append(helper.make_node(op_type, inputs, [f"{name}_{output}"], name=f"{name}_{output}"))
    body.output[0].name = f"{name}_condition"
