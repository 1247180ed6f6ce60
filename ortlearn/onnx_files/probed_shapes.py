"""Shapes that inference does not find, and branches that shapes choose, by runs on made-up rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto

from ..differentiation.inference import infer_types
from ..differentiation.random_feed import random_feed
from ..graphs import (
    GraphBuilder,
    TensorType,
    extract_model,
    graph_names,
    make_value_info,
    node_inputs,
    value_types,
)
from ..graphs.editing import renamed_node, with_fields
from .branches import chosen_branch, with_chosen_branches

#: Runs a graph on arrays by the name of their inputs, and returns its first output.
Run = Callable[[ModelProto, dict[str, np.ndarray]], np.ndarray]

#: Numbers of rows to run with, and of the other lengths that inputs leave open.
PROBES = ((1, 4), (2, 6), (3, 9))
#: Operators whose result is known from the shape of what they read.
OF_SHAPES = ("Shape", "Size")


def with_probed_shapes(model: ModelProto, run: Run) -> ModelProto:
    """Return a model that computes the same, the rank of every tensor known where runs can tell it.

    It is run on one, two and three random rows, and other lengths that its inputs leave open differ too. An
    If takes its branch where the condition depends on shapes only and was the same each time. A tensor of
    unknown rank is reshaped to the shape that it had: to the lengths that were the same each time, the others
    as they come.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.
    run : callable
        Runs a graph on arrays by the name of their inputs, and returns its first output.

    Returns
    -------
    onnx.ModelProto
        Model with known ranks; the one given where nothing is unknown, or where it cannot be run so.
    """
    conditions = [node.input[0] for node in model.graph.node if _is_of_shapes(node, model)]
    if conditions:
        found = _probe(model, run, conditions, values=True)
        choices = {n: bool(runs[0][0]) for n, runs in found.items() if len({*map(tuple, runs)}) == 1}
        model = with_chosen_branches(model, choices)
    unknown = _unknown(model)
    if not unknown:
        return model
    shapes = _probe(model, run, unknown)
    while unknown and unknown[0] in shapes:
        template = _template(shapes.pop(unknown[0]))
        if template is not None:
            model = _reshaped(model, unknown[0], template)
        unknown = [name for name in _unknown(model) if name in shapes]
    return model


def _is_of_shapes(node: NodeProto, model: ModelProto) -> bool:
    """Return whether an If is chosen by shapes of tensors alone."""
    return chosen_branch(node) and _depends_on_shapes(node.input[0], model)


def _depends_on_shapes(name: str, model: ModelProto) -> bool:
    producers = {output: node for node in model.graph.node for output in node.output}
    inputs = {value.name for value in model.graph.input}
    pending, seen = [name], set[str]()
    while pending:
        tensor = pending.pop()
        if tensor in inputs:
            return False
        node = producers.get(tensor)
        if node is not None and node.op_type not in OF_SHAPES and tensor not in seen:
            if node.op_type.startswith("Random"):
                return False
            pending.extend(node_inputs(node))
        seen.add(tensor)
    return True


def _unknown(model: ModelProto) -> list[str]:
    """Return the tensors of unknown rank, in order; sequences are none of them."""
    inferred = infer_types(model)
    types = value_types(inferred, infer=False)
    others = {value.name for value in _values(inferred) if not _may_be_tensor(value)}
    names = [name for node in model.graph.node for name in node.output if name and name not in others]
    return [name for name in names if name not in types or types[name].shape is None]


def _values(model: ModelProto) -> Iterator[ValueInfoProto]:
    yield from (*model.graph.input, *model.graph.value_info, *model.graph.output)


def _may_be_tensor(value: ValueInfoProto) -> bool:
    return value.type.WhichOneof("value") in (None, "tensor_type")


def _probe(
    model: ModelProto, run: Run, names: Sequence[str], values: bool = False
) -> dict[str, list[np.ndarray]]:
    """Return the shapes of some tensors, or their values as integers, in each of the runs.

    Nothing is returned where a run fails: random rows may be none that the model takes, and training reports
    what is wrong.
    """
    op = GraphBuilder(existing_names=graph_names(model.graph))
    parts = []
    for name in names:
        part = op.Reshape(op.Cast(name, to=TensorProto.INT64), [-1]) if values else op.Shape(name)
        parts.extend([op.Shape(part), part])
    result = op.Concat(*parts, axis=0)
    graph = with_fields(
        model,
        node=[*model.graph.node, *op.nodes],
        initializer=[*model.graph.initializer, *op.initializers],
        output=[make_value_info(result, TensorType(TensorProto.INT64, (None,)))],
        value_info=(),
    )
    graph = extract_model(graph, [result])
    found: dict[str, list[np.ndarray]] = {name: [] for name in names}
    try:
        for seed, (rows, length) in enumerate(PROBES):
            left = run(graph, random_feed(graph, rows, length, random_state=seed))
            for name in names:
                end = 1 + int(left[0])
                found[name].append(left[1:end])
                left = left[end:]
    except Exception:
        return {}
    return found


def _template(shapes: Sequence[np.ndarray]) -> list[int] | None:
    """Return what to reshape to: lengths that are always the same, zeros for the others."""
    if len({len(shape) for shape in shapes}) > 1:
        return None
    return [int(sizes[0]) if len({*sizes}) == 1 else 0 for sizes in zip(*shapes, strict=True)]


def _reshaped(model: ModelProto, name: str, template: Sequence[int]) -> ModelProto:
    """Return a model where a tensor is reshaped right after it is made."""
    op = GraphBuilder(existing_names=graph_names(model.graph))
    raw, nodes = op.unique(f"{name}_of_unknown_rank"), []
    for node in model.graph.node:
        if name in node.output:
            op.Reshape(raw, list(template), outputs=[name])
            nodes.extend([renamed_node(node, {name: raw}), *op.nodes])
        else:
            nodes.append(node)
    return with_fields(
        model, node=nodes, initializer=[*model.graph.initializer, *op.initializers], value_info=()
    )
