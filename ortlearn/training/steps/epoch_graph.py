"""The graph of an epoch: loops over full batches, then the short last batch."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from ...differentiation import gradient_of_loss
from ...graphs import (
    GraphBuilder,
    TensorType,
    append_nodes,
    graph_names,
    make_value_info,
    map_names,
    node_inputs,
    opset_versions,
)
from ...graphs.editing import with_fields
from ...graphs.queries import copy_value, renamed_value
from ...runtime.buffers import Carried
from ..fusions import fuse_step
from ..fusions.tables import scatter_rows
from ..graphs.names import OBJECTIVE, RATE, SAMPLE_WEIGHT
from ..graphs.objective import batch_type, differentiated, objective_graph, statistic_outputs
from ..graphs.sparse_products import all_entries, append_slices
from ..graphs.step_graphs import StepGraph, append_model, append_updates
from ..graphs.task import TrainingTask
from ..optimisations.intercept_column import loop_weights
from ..optimisations.layouts import Layout, faster_layouts
from ..optimisations.packing import Packing
from .batch_loops import LOSSES, ORDER, SAMPLES_OF_BATCH, PerBatch, append_loops
from .batch_timer import BatchTimer

__all__ = [
    "LAST",
    "LOSSES",
    "ORDER",
    "REST",
    "EpochGraph",
    "all_samples",
    "batch_graph",
    "epoch_graph",
    "gathered_columns",
    "order_arrays",
    "with_gathers",
]

#: Input with the sample indices of a short last batch.
REST = "ortlearn_rest"
#: Objective of a short last batch.
LAST = "ortlearn_last_loss"
SCALED = "ortlearn_scaled_objective"
# Names in models never have these prefixes.
BATCH_OF = "ortlearn_batch_{}"
START_OF = "ortlearn_start_{}"
LAST_OF = "ortlearn_rest_of_{}"
#: Operators that draw random numbers, also from constant inputs.
RANDOM = {"Bernoulli", "Dropout", "Multinomial", "RandomNormalLike", "RandomUniformLike"}


@dataclass(frozen=True)
class EpochGraph:
    """A graph that trains an epoch.

    Inputs are the columns of all samples, ``ortlearn_order`` (sample indices of shape (n_batches,
    batch_size)), ``ortlearn_rest`` (indices of the short last batch, if any), ``ortlearn_rate``, weights and
    states. Outputs are ``ortlearn_losses``, one per full batch that was run, ``ortlearn_last_loss`` (of the
    short batch, if any), weights and states.
    """

    model: ModelProto
    carried: list[Carried]  # weights and states
    strengths: tuple[str, ...] = ()  # of the penalty, which are inputs
    draws: bool = False  # whether it draws random numbers
    timer: BatchTimer = field(default_factory=BatchTimer)  # measures the time per batch


def batch_graph(
    task: TrainingTask,
    size: int | str,
    packing: Packing | None = None,
    keep_output: bool = False,
    fuses: bool = True,
) -> StepGraph:
    """Return the graph of a step on a batch, by default fused if its size is known.

    Inputs are the columns of the batch, weights and states (in packed form, if given), and the learning rate.
    With ``keep_output``, the output of the model is an output.
    """
    objective = objective_graph(task, size)
    if packing is not None:
        objective, task = packing.objective(objective), packing.task()
    if task.folds_rate:
        # The gradient of -rate * objective includes rate and sign, so that updates are additions: a Gemm that
        # adds is several times as fast as one that subtracts.
        op = GraphBuilder(opset_versions(objective)[""], existing_names=graph_names(objective.graph))
        op.node("Mul", differentiated(task), op.Neg(RATE), outputs=[SCALED])
        scalar = TensorType(helper.np_dtype_to_tensor_dtype(task.graph.dtype), ())
        outputs = [make_value_info(SCALED, scalar), make_value_info(OBJECTIVE, scalar)]
        outputs += statistic_outputs(task, objective)
        objective = append_nodes(objective, op, inputs=[make_value_info(RATE, scalar)], outputs=outputs)
    target = SCALED if task.folds_rate else differentiated(task)
    gradient = gradient_of_loss(
        objective, target, task.graph.learned, task.gradient, keep_outputs=True, origin=task.graph.origin
    )
    names = [value.name for value in gradient.graph.output][-len(task.graph.learned) :]
    gradients = dict(zip(task.graph.learned, names, strict=True))
    step = append_updates(task, gradient, gradients, OBJECTIVE)
    model = step.model
    if keep_output:
        output = make_value_info(task.graph.output, batch_type(task.graph.output_type, size))
        model = with_fields(model, output=[*model.graph.output, output])
    if fuses and isinstance(size, int):
        model = fuse_step(model)
        if task.graph.sparse:
            model = fuse_step(model, [scatter_rows])
    return StepGraph(model, step.value, step.carried)


def epoch_graph(
    task: TrainingTask,
    size: int,
    rest: int,
    n_joined: int = 1,
    layout: Layout | None = faster_layouts,
    joins_intercepts: bool = True,
) -> EpochGraph:
    """Return the graph of an epoch; if there is a ``layout``, with weights in the form that is fastest."""
    packing = loop_weights(task, size, joins_intercepts and layout is not None and n_joined > 1)
    step = batch_graph(task, size, packing)
    step = (layout(step, None) if layout else None) or step
    columns = gathered_columns(task, step)
    inputs = {value.name: value for value in step.model.graph.input}
    single = [name for name in columns if _is_single(inputs[name])]
    wide = [name for name in columns if name not in single]
    renamed = map_names(step.model, {name: BATCH_OF.format(name) for name in single})
    gathered = with_gathers(renamed, wide, SAMPLES_OF_BATCH, task.graph.sparse)
    body, invariant = _split_invariant(gathered, {RATE, *task.objective.strengths})
    op = GraphBuilder(opset_versions(step.model)[""], prefix="ortlearn_epoch_")
    op.nodes.extend(invariant.nodes)
    op.initializers.extend(invariant.initializers)
    per_batch = {SAMPLES_OF_BATCH: PerBatch(ORDER, (size,))}
    per_batch |= {BATCH_OF.format(name): _in_order(op, inputs[name]) for name in single}
    if packing is None:
        starts = [START_OF.format(item.source) for item in step.carried]
        infos = [renamed_value(inputs[i.source], n) for i, n in zip(step.carried, starts, strict=True)]
    else:
        starts, infos = packing.join(op, step.carried)
    looped = append_loops(op, body, step.carried, starts, per_batch, n_joined)
    results = dict(zip(step.carried, looped, strict=True))
    # Providers that compile graphs, such as OpenVINO, need the rank of the outputs of a loop.
    known = [renamed_value(inputs[i.source], name) for i, name in results.items()]
    if rest:
        results = _append_rest(op, batch_graph(task, rest, packing), task, columns, results, layout)
    if packing is None:
        after = [
            (replace(i, source=start, result=results[i]), renamed_value(inputs[i.source], results[i]))
            for i, start in zip(step.carried, starts, strict=True)
        ]
    else:
        after = packing.split(op, step.carried, results)
    ends = [info for _, info in after]
    model = _assemble(task, step, op, columns, rest, infos, ends, known)
    draws = any(node.op_type in RANDOM for node in step.model.graph.node)
    return EpochGraph(model, [item for item, _ in after], task.objective.strengths, draws)


def order_arrays(order: np.ndarray, size: int) -> dict[str, np.ndarray]:
    """Return the inputs of an epoch's graph with an order of samples, or several along leading axes."""
    full = order.shape[-1] // size * size
    found = {ORDER: order[..., :full].reshape(*order.shape[:-1], -1, size), REST: order[..., full:]}
    return {name: np.ascontiguousarray(array) for name, array in found.items() if array.size or name == ORDER}


def gathered_columns(task: TrainingTask, step: StepGraph) -> list[str]:
    """Return the inputs of a step that are columns of a batch: features, labels and sample weights."""
    columns = {*task.graph.features, task.objective.label, SAMPLE_WEIGHT}
    return [value.name for value in step.model.graph.input if value.name in columns]


def _is_single(column: ValueInfoProto) -> bool:
    """Return whether a column of a batch has one element per sample."""
    return all(dim.dim_value == 1 for dim in column.type.tensor_type.shape.dim[1:])


def _in_order(op: GraphBuilder, column: ValueInfoProto) -> PerBatch:
    """Append a column of all samples in the order of an epoch, with one entry per batch.

    For columns of one element, GatherElements takes a tenth of the time of Gather.
    """
    shape = tuple(dim.dim_value for dim in column.type.tensor_type.shape.dim)
    flat, order = (op.Reshape(name, np.array([-1])) for name in (column.name, ORDER))
    return PerBatch(op.Reshape(op.GatherElements(flat, order, axis=0), np.array([-1, *shape])), shape)


def with_gathers(
    model: ModelProto, columns: list[str], samples: str, sparse: Collection[str] = ()
) -> ModelProto:
    """Return a step that gathers its batch from the columns, or entries, of all samples."""
    op = GraphBuilder(opset_versions(model)[""], existing_names=graph_names(model.graph), prefix="gather_")
    names = {name: BATCH_OF.format(name) for name in columns}
    for name in sparse:
        names |= append_slices(op, name, samples)
    model = map_names(model, names)
    for name in columns:
        op.node("Gather", name, samples, outputs=[BATCH_OF.format(name)], axis=0)
    return append_nodes(model, op, first=True)


def _split_invariant(model: ModelProto, scalars: set[str]) -> tuple[ModelProto, GraphBuilder]:
    """Move nodes that read only these scalars and constants out of a loop body."""
    before = GraphBuilder(opset_versions(model)[""])
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    known = {*scalars, *tensors}
    nodes: list[NodeProto] = []
    for node in model.graph.node:
        reads = node_inputs(node)
        drawn = node.op_type in RANDOM
        if reads and not drawn and reads <= known:
            known.update(node.output)
            before.nodes.append(node)
        else:
            nodes.append(node)
    moved = set().union(*(node_inputs(node) for node in before.nodes)) & tensors.keys()
    before.initializers.extend(tensors[name] for name in sorted(moved))
    kept = [tensor for name, tensor in tensors.items() if name not in moved]
    return with_fields(model, node=nodes, initializer=kept), before


def _append_rest(
    op: GraphBuilder,
    last: StepGraph,
    task: TrainingTask,
    columns: list[str],
    looped: dict[Carried, str],
    layout: Layout | None,
) -> dict[Carried, str]:
    """Append the short last batch, and return the name of each result."""
    stored = {own.source: item.transposed for own, item in zip(last.carried, looped, strict=True)}
    fitting = layout(last, stored) if layout and any(stored.values()) else last
    if fitting is None:
        looped = {item: _turned(op, item, name) for item, name in looped.items()}
    last = fitting or last
    model = with_gathers(last.model, columns, REST, task.graph.sparse)
    scalars = {RATE, *task.objective.strengths}
    shared = {*columns, *all_entries(task.graph.model, task.graph.sparse), REST, *scalars}
    names = {name: LAST_OF.format(name) for name in graph_names(model.graph) - shared}
    names |= {own.source: name for own, name in zip(last.carried, looped.values(), strict=True)}
    names[OBJECTIVE] = LAST
    append_model(op, model, names, LAST_OF)
    results = {
        item: names.get(own.result, own.result) for own, item in zip(last.carried, looped, strict=True)
    }
    return {item: _turned(op, item, name) for item, name in results.items()} if fitting is None else results


def _turned(op: GraphBuilder, item: Carried, name: str) -> str:
    """Append the transpose of a weight or state that is stored transposed."""
    return op.Transpose(name, perm=[1, 0]) if item.transposed else name


def _assemble(
    task: TrainingTask,
    step: StepGraph,
    op: GraphBuilder,
    columns: list[str],
    rest: int,
    starts: list[ValueInfoProto],
    ends: list[ValueInfoProto],
    known: list[ValueInfoProto],
) -> ModelProto:
    own = {value.name: value for value in (*step.model.graph.input, *step.model.graph.output)}
    elem_type = helper.np_dtype_to_tensor_dtype(task.graph.dtype)
    size = own[columns[0]].type.tensor_type.shape.dim[0].dim_value
    inputs = [
        *map(all_samples, (own[name] for name in columns)),
        *all_entries(task.graph.model, task.graph.sparse).values(),
    ]
    inputs.append(make_value_info(ORDER, TensorType(TensorProto.INT64, ("batches", size))))
    if rest:
        inputs.append(make_value_info(REST, TensorType(TensorProto.INT64, (rest,))))
    scalars = (RATE, *task.objective.strengths)
    inputs += [make_value_info(name, TensorType(elem_type, ())) for name in scalars] + starts
    outputs = [make_value_info(LOSSES, TensorType(elem_type, (None,)))]
    if rest:
        outputs.append(make_value_info(LAST, TensorType(elem_type, ())))
    outputs += ends
    written = {value.name for value in outputs}
    known = [value for value in known if value.name not in written]
    graph = helper.make_graph(op.nodes, "epoch", inputs, outputs, op.initializers, value_info=known)
    versions = {**opset_versions(step.model), **op.opsets}
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(d, v) for d, v in versions.items()])
    model.ir_version = step.model.ir_version
    return model


def all_samples(value: ValueInfoProto) -> ValueInfoProto:
    """Return the input with all samples of a column of a batch."""
    copied = copy_value(value)
    copied.type.tensor_type.shape.dim[0].dim_param = "rows"
    return copied
