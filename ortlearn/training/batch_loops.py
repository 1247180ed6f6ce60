"""Loops over the batches of an epoch: a turn holds one batch, or several."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper

from ..graphs import GraphBuilder, copy_model, graph_names, map_names, opset_versions, prune
from .sessions import GO_ON
from .step_graphs import OBJECTIVE, Carried, copy_value, renamed_value

__all__ = ["LOSSES", "ORDER", "ROWS_OF_BATCH", "append_loops", "is_long"]

ORDER = "ortlearn_order"
LOSSES = "ortlearn_losses"
ROWS_OF_BATCH = "ortlearn_rows_of_batch"
NUMBER = "ortlearn_number"
FINITE = "ortlearn_loss_is_finite"
#: Batches of a turn: onnxruntime takes about two microseconds to begin a turn.
BATCHES_PER_TURN = 4
#: Turns and nodes of a turn from which on the longer graph costs more than it saves.
MIN_TURNS = 8
MAX_NODES = 160
#: A name of the model never begins like this.
COPY_OF = "ortlearn_copy_{}_of_{}"


def is_long(n_batches: int) -> bool:
    """Tell whether an epoch has batches enough for several of them in a turn."""
    return n_batches >= MIN_TURNS * BATCHES_PER_TURN


def append_loops(
    op: GraphBuilder,
    body: ModelProto,
    carried: Sequence[Carried],
    starts: Sequence[str],
    size: int,
    long: bool,
) -> list[str]:
    """Append loops over the lines of ``ortlearn_order``, and return what is carried after them.

    The losses of all batches are written to ``ortlearn_losses``.

    Parameters
    ----------
    op : GraphBuilder
        Receives the loops.
    body : onnx.ModelProto
        A batch, from the numbers of its rows (``ortlearn_rows_of_batch``) and what is carried.
    carried : sequence of Carried
        Weights and states.
    starts : sequence of str
        Values they start with.
    size : int
        Rows of a batch.
    long : bool
        Whether there are batches enough for several in a turn.

    Returns
    -------
    list of str
        Names of the last weights and states.
    """
    body, scale = _without_scale(body)
    op.initializers.append(numpy_helper.from_array(np.array(True), GO_ON))
    n_batches = op.Gather(op.Shape(ORDER), np.array(0), axis=0)
    if not long or len(body.graph.node) * BATCHES_PER_TURN > MAX_NODES:
        *results, losses = _loop(op, "batches", n_batches, ORDER, _turn(body, carried, 1), starts)
    else:
        results, losses = _long_loops(op, body, carried, starts, size, n_batches)
    if scale is None:
        op.node("Identity", losses, outputs=[LOSSES])
    else:
        op.node("Mul", losses, scale, outputs=[LOSSES])
    return list(results)


def _long_loops(
    op: GraphBuilder,
    body: ModelProto,
    carried: Sequence[Carried],
    starts: Sequence[str],
    size: int,
    n_batches: str,
) -> tuple[list[str], str]:
    """Append a loop with several batches in a turn, and one over those that are left."""
    n_turns = op.Div(n_batches, np.array(BATCHES_PER_TURN))
    in_turns = op.Reshape(op.Mul(n_turns, np.array(BATCHES_PER_TURN)), np.array([1]))
    head = op.Slice(ORDER, np.array([0]), in_turns, np.array([0]))
    lines = op.Reshape(head, np.array([-1, BATCHES_PER_TURN * size]))
    looped = _loop(op, "turns", n_turns, lines, _turn(body, carried, BATCHES_PER_TURN), starts)
    middle, losses = looped[: len(carried)], looped[len(carried) :]
    columns = [op.Unsqueeze(name, np.array([1])) for name in losses]
    first = op.Reshape(op.Concat(*columns, axis=1), np.array([-1]))
    tail = op.Slice(ORDER, in_turns, np.array([np.iinfo(np.int64).max]), np.array([0]))
    n_left = op.Gather(op.Shape(tail), np.array(0), axis=0)
    *results, last = _loop(op, "left", n_left, tail, _turn(body, carried, 1), middle)
    return results, op.Concat(first, last, axis=0)


def _loop(
    op: GraphBuilder, name: str, n_turns: str, lines: str, turn: GraphProto, starts: Sequence[str]
) -> list[str]:
    for node in turn.node:
        node.input[:] = [lines if read == ORDER else read for read in node.input]
    outputs = [op.unique(f"{name}_{value.name}") for value in turn.output[1:]]
    op.nodes.append(
        helper.make_node("Loop", [n_turns, GO_ON, *starts], outputs, name=f"ortlearn_{name}", body=turn)
    )
    return outputs


def _without_scale(body: ModelProto) -> tuple[ModelProto, np.ndarray | None]:
    """Take a constant factor of the objective out of a batch: it is multiplied to all losses at once."""
    last = next((node for node in body.graph.node if OBJECTIVE in node.output), None)
    tensors = {tensor.name: tensor for tensor in body.graph.initializer}
    if last is None or last.op_type != "Mul" or last.input[1] not in tensors:
        return body, None
    scale = numpy_helper.to_array(tensors[last.input[1]])
    reads = [name for node in body.graph.node for name in node.input].count(last.input[0])
    kept = {value.name for value in body.graph.output}
    made = any(last.input[0] in node.output for node in body.graph.node)
    if scale.shape != () or not scale > 0 or reads > 1 or last.input[0] in kept or not made:
        return body, None
    shorter = copy_model(body)
    nodes = [node for node in shorter.graph.node if OBJECTIVE not in node.output]
    for node in nodes:
        node.output[:] = [OBJECTIVE if name == last.input[0] else name for name in node.output]
    del shorter.graph.node[:]
    shorter.graph.node.extend(nodes)
    return prune(shorter), scale


def _turn(body: ModelProto, carried: Sequence[Carried], n_batches: int) -> GraphProto:
    """Return the body of a loop: some batches, one after the other."""
    op = GraphBuilder(opset_versions(body)[""], existing_names=graph_names(body.graph), prefix="loop_")
    line = op.Gather(ORDER, NUMBER, axis=0)
    if n_batches == 1:
        rows = [line]
    else:  # in equal parts, which opsets before 18 do without being asked
        parts = n_batches if op.opset >= 18 else None
        rows = op.node("Split", line, n_outputs=n_batches, axis=0, num_outputs=parts)
    made = {name for node in body.graph.node for name in node.output if name}
    current = {item.source: item.source for item in carried}
    losses: list[str] = []
    for number in range(n_batches):
        names = {**current, ROWS_OF_BATCH: rows[number]}
        if number < n_batches - 1:
            names |= {name: COPY_OF.format(number, name) for name in made}
        copied = map_names(body, names)
        for node in copied.graph.node:
            node.name = COPY_OF.format(number, node.name) if node.name else ""
        op.nodes.extend(copied.graph.node)
        current = {item.source: names.get(item.result, item.result) for item in carried}
        losses.append(names.get(OBJECTIVE, OBJECTIVE))
    return _as_body(op, body, carried, list(current.values()), losses)


def _as_body(
    op: GraphBuilder, body: ModelProto, carried: Sequence[Carried], results: list[str], losses: list[str]
) -> GraphProto:
    """Return the graph of a loop's body, which goes on while the last loss is finite."""
    infos = {value.name: value for value in (*body.graph.input, *body.graph.output)}
    dtype = helper.tensor_dtype_to_np_dtype(infos[OBJECTIVE].type.tensor_type.elem_type)
    # False for NaN too. Minus infinity is seen after the epoch: one node less in every batch.
    op.node("Less", losses[-1], np.array(np.inf, dtype=dtype), outputs=[FINITE])
    inputs = [
        helper.make_tensor_value_info(NUMBER, TensorProto.INT64, []),
        helper.make_tensor_value_info(f"{GO_ON}_before", TensorProto.BOOL, []),
        *(copy_value(infos[item.source]) for item in carried),
    ]
    outputs = [
        helper.make_tensor_value_info(FINITE, TensorProto.BOOL, []),
        *(renamed_value(infos[item.result], name) for item, name in zip(carried, results, strict=True)),
        *(renamed_value(infos[OBJECTIVE], name) for name in losses),
    ]
    constants = [*body.graph.initializer, *op.initializers]
    return helper.make_graph(op.nodes, "turn", inputs, outputs, constants)
