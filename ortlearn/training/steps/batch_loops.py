"""Loop nodes over the batches of an epoch; an iteration runs one or several batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper

from ...graphs import GraphBuilder, TensorType, graph_names, make_value_info, map_names, opset_versions, prune
from ...graphs.queries import copy_value, renamed_value
from ...graphs.view import GraphView
from ...runtime.buffers import Carried
from ...runtime.sessions import CONDITION
from ..graphs.names import OBJECTIVE
from ..optimisations.joined_batches import JoinedLosses, joined_losses, with_joined_samples

__all__ = ["LOSSES", "ORDER", "SAMPLES_OF_BATCH", "PerBatch", "append_loops", "batches_per_iteration"]

#: Input with the sample indices of the full batches, of shape (n_batches, batch_size).
ORDER = "ortlearn_order"
#: Output with the objectives of the full batches.
LOSSES = "ortlearn_losses"
SAMPLES_OF_BATCH = "ortlearn_rows_of_batch"
NUMBER = "ortlearn_number"
FINITE = "ortlearn_loss_is_finite"
#: Minimum number of iterations of several batches, the most preferred first: an iteration takes up to 2 us
#: besides its nodes. Maximum number of nodes of an iteration of several batches.
MIN_ITERATIONS = {16: 16, 8: 8, 4: 8}
MAX_NODES = 240
#: Name of the body of a loop: the OpenVINO provider splits bodies of other names, and then rejects the loop.
BODY = "tf2onnx"
#: Names in models never have this prefix.
COPY_OF = "ortlearn_copy_{}_of_{}"


def batches_per_iteration(n_batches: int, min_iterations: Mapping[int, int] = MIN_ITERATIONS) -> int:
    """Return the maximum number of batches of an iteration, given the number of batches of an epoch."""
    counts = (n for n, least in min_iterations.items() if n_batches >= n * least)
    return next(counts, 1)


@dataclass(frozen=True)
class PerBatch:
    """A tensor with one entry per batch of an epoch."""

    name: str
    shape: tuple[int, ...]  # shape of an entry; the first axis is that of the samples of a batch


def append_loops(
    op: GraphBuilder,
    batch: ModelProto,
    carried: Sequence[Carried],
    starts: Sequence[str],
    per_batch: Mapping[str, PerBatch],
    max_joined: int,
) -> list[str]:
    """Append loops over the batches of an epoch, and return the names of the updated weights and states.

    The losses of all batches are written to ``ortlearn_losses``.
    """
    batch, scale = _without_scale(batch)
    op.initializers.append(numpy_helper.from_array(np.array(True), CONDITION))
    read = {name for node in batch.graph.node for name in node.input}
    per_batch = {name: found for name, found in per_batch.items() if name in read}
    n_batches = op.Gather(op.Shape(ORDER), np.array(0), axis=0)
    counts = [max_joined, *(n for n in MIN_ITERATIONS if n < max_joined)]
    fitting = (n for n in counts if n * len(batch.graph.node) <= MAX_NODES)
    n_joined = next(fitting, 1)
    if n_joined == 1:
        body = _iteration(batch, carried, {name: found.name for name, found in per_batch.items()}, 1, None)
        *results, losses = _loop(op, "batches", n_batches, body, starts)
    else:
        results, losses = _long_loops(op, batch, carried, starts, per_batch, n_joined, n_batches)
    if scale is None:
        op.node("Identity", losses, outputs=[LOSSES])
    else:
        op.node("Mul", losses, scale, outputs=[LOSSES])
    return list(results)


def _long_loops(
    op: GraphBuilder,
    batch: ModelProto,
    carried: Sequence[Carried],
    starts: Sequence[str],
    per_batch: Mapping[str, PerBatch],
    n_joined: int,
    n_batches: str,
) -> tuple[list[str], str]:
    """Append a loop with several batches per iteration, and one over the remaining batches."""
    n_iterations = op.Div(n_batches, np.array(n_joined))
    n_grouped = op.Reshape(op.Mul(n_iterations, np.array(n_joined)), np.array([1]))
    grouped, remaining = {}, {}
    for name, found in per_batch.items():
        size, *others = found.shape
        group = op.Slice(found.name, np.array([0]), n_grouped, np.array([0]))
        grouped[name] = op.Reshape(group, np.array([-1, n_joined * size, *others]))
        remaining[name] = op.Slice(found.name, n_grouped, np.array([np.iinfo(np.int64).max]), np.array([0]))
    joined = joined_losses(batch)
    looped = _loop(
        op, "iterations", n_iterations, _iteration(batch, carried, grouped, n_joined, joined), starts
    )
    middle, losses = looped[: len(carried)], looped[len(carried) :]
    if joined is None:
        losses = [op.Concat(*(op.Unsqueeze(name, np.array([1])) for name in losses), axis=1)]
    first = op.Reshape(*losses, np.array([-1]))
    n_remaining = op.Sub(n_batches, op.Reshape(n_grouped, np.array([], dtype=np.int64)))
    body = _iteration(batch, carried, remaining, 1, joined)
    *results, last = _loop(op, "remaining", n_remaining, body, middle)
    if joined is not None:  # each loss is there twice
        last = op.Gather(last, np.array(0), axis=1)
    return results, op.Concat(first, last, axis=0)


def _loop(
    op: GraphBuilder, name: str, n_iterations: str, body: GraphProto, starts: Sequence[str]
) -> list[str]:
    outputs = [op.unique(f"{name}_{value.name}") for value in body.output[1:]]
    op.nodes.append(
        helper.make_node(
            "Loop", [n_iterations, CONDITION, *starts], outputs, name=f"ortlearn_{name}", body=body
        )
    )
    return outputs


def _without_scale(batch: ModelProto) -> tuple[ModelProto, np.ndarray | None]:
    """Remove a constant factor of the objective, which is multiplied to the losses of all batches at once."""
    graph = GraphView(batch, types={})
    last = graph.producers.get(OBJECTIVE)
    scale = None if last is None or last.op_type != "Mul" else graph.value(last.input[1])
    if last is None or scale is None or scale.shape != () or not scale > 0:
        return batch, None
    if last.input[0] not in graph.producers or not graph.read_once(last.input[0]):
        return batch, None
    graph.rewrite(lambda node: node is last and node.input[0])
    graph.rename({last.input[0]: OBJECTIVE})
    return prune(graph.to_model()), scale


def _iteration(
    batch: ModelProto,
    carried: Sequence[Carried],
    per_batch: Mapping[str, str],
    n_batches: int,
    joined: JoinedLosses | None,
) -> GraphProto:
    """Return the body of a loop: the steps of ``n_batches`` batches."""
    op = GraphBuilder(opset_versions(batch)[""], existing_names=graph_names(batch.graph), prefix="loop_")
    parts: dict[str, Sequence[str]] = {}
    if n_batches == 1:
        for name, tensor in per_batch.items():
            parts[name] = [op.node("Gather", tensor, NUMBER, outputs=[name], axis=0)]
    else:
        joined_values = {name: op.Gather(tensor, NUMBER, axis=0) for name, tensor in per_batch.items()}
        batch, joined_values = with_joined_samples(op, batch, joined_values, n_batches)
        # Before opset 18, Split without sizes always gives equal parts.
        count = n_batches if op.opset >= 18 else None
        for name, value in joined_values.items():
            parts[name] = op.node("Split", value, n_outputs=n_batches, axis=0, num_outputs=count)
    if joined is not None:
        batch = joined.without(batch)
    made = {name for node in batch.graph.node for name in node.output if name}
    current = {item.source: item.source for item in carried}
    losses: list[str] = []
    copies: list[dict[str, str]] = []
    for number in range(n_batches):
        names = {**current, **{name: part[number] for name, part in parts.items()}}
        if number < n_batches - 1:
            names |= {name: COPY_OF.format(number, name) for name in made}
        copied = map_names(batch, names)
        for node in copied.graph.node:
            node.name = COPY_OF.format(number, node.name) if node.name else ""
        op.nodes.extend(copied.graph.node)
        current = {item.source: names.get(item.result, item.result) for item in carried}
        losses.append(names.get(OBJECTIVE, OBJECTIVE))
        copies.append(names)
    n_values = 0
    if joined is not None:
        copies *= max(1, 3 - n_batches)
        n_values, losses = len(copies), [joined.write(op, copies)]
    return _loop_body(op, batch, carried, list(current.values()), losses, n_values)


def _loop_body(
    op: GraphBuilder,
    batch: ModelProto,
    carried: Sequence[Carried],
    results: list[str],
    losses: list[str],
    n_values: int,
) -> GraphProto:
    """Return the body of a loop that stops at the first non-finite loss; losses may be a vector."""
    infos = {value.name: value for value in (*batch.graph.input, *batch.graph.output)}
    objective = infos[OBJECTIVE]
    if n_values:
        objective = make_value_info(OBJECTIVE, TensorType(objective.type.tensor_type.elem_type, (n_values,)))
    dtype = helper.tensor_dtype_to_np_dtype(objective.type.tensor_type.elem_type)
    checked = op.ReduceSum(losses[-1], keepdims=0) if n_values else losses[-1]
    # False for NaN, too. Minus infinity is detected after the epoch, which saves a node per batch.
    op.node("Less", checked, np.array(np.inf, dtype=dtype), outputs=[FINITE])
    inputs = [
        helper.make_tensor_value_info(NUMBER, TensorProto.INT64, []),
        helper.make_tensor_value_info(f"{CONDITION}_before", TensorProto.BOOL, []),
        *(copy_value(infos[item.source]) for item in carried),
    ]
    outputs = [
        helper.make_tensor_value_info(FINITE, TensorProto.BOOL, []),
        *(renamed_value(infos[item.result], name) for item, name in zip(carried, results, strict=True)),
        *(renamed_value(objective, name) for name in losses),
    ]
    constants = [*batch.graph.initializer, *op.initializers]
    return helper.make_graph(op.nodes, BODY, inputs, outputs, constants)
