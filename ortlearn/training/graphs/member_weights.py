"""Outputs of parts that have not seen a sample, or weights of members that are zero if they have."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto, helper

from ...graphs import GraphBuilder, TensorType, graph_names, make_value_info, opset_versions, value_types
from ...graphs.editing import renamed_node, with_fields
from .names import MEMBERS
from .task import TrainingTask

__all__ = ["with_member_weights", "with_outputs"]


def with_member_weights(
    task: TrainingTask, tensors: Sequence[str], rank: int, n_members: int
) -> TrainingTask:
    """Return the task of scores in which members are multiplied by a feature of shape (n, n_members).

    ``tensors``, of a rank, are one of shape (n, n_members, ...), or one of shape (n, ...) for each member.
    """
    known = TensorType(helper.np_dtype_to_tensor_dtype(task.graph.dtype), (None, n_members))
    source, nodes = task.graph.model, []
    op = GraphBuilder(opset_versions(source)[""], existing_names=graph_names(source.graph), prefix="members_")
    for node in source.graph.node:
        own = [tensor for tensor in tensors if tensor in node.output]
        nodes.append(renamed_node(node, {tensor: f"{tensor}_unweighted" for tensor in own}))
        for tensor in own:
            begin, weights = len(op.nodes), MEMBERS
            if len(tensors) > 1:
                weights = op.Gather(MEMBERS, [tensors.index(tensor)], axis=1)
            if rank > 2:
                weights = op.Unsqueeze(weights, list(range(2, rank)))
            op.node("Mul", f"{tensor}_unweighted", weights, outputs=[tensor])
            nodes += op.nodes[begin:]
    assert len(nodes) > len(source.graph.node), f"no node computes {tensors}"
    return _with_feature(task, nodes, op, known, n_members)


def with_outputs(task: TrainingTask, tensor: str, width: int) -> TrainingTask:
    """Return the task of scores in which a feature of shape (n, width) replaces a tensor."""
    known = TensorType(helper.np_dtype_to_tensor_dtype(task.graph.dtype), (None, width))
    source = task.graph.model
    op = GraphBuilder(opset_versions(source)[""], existing_names=graph_names(source.graph), prefix="members_")
    op.node("Cast", MEMBERS, to=value_types(source)[tensor].elem_type, outputs=[tensor])
    names = {tensor: f"{tensor}_replaced"}
    nodes = [renamed_node(node, names) if tensor in node.output else node for node in source.graph.node]
    return _with_feature(task, [*op.nodes, *nodes], op, known, width)


def _with_feature(
    task: TrainingTask, nodes: Sequence[NodeProto], op: GraphBuilder, known: TensorType, n_members: int
) -> TrainingTask:
    """Return the task with other nodes, which take the feature ``MEMBERS``."""
    source, features = task.graph.model, {**task.graph.features, MEMBERS: known}
    model = with_fields(
        source,
        node=nodes,
        input=[*source.graph.input, make_value_info(MEMBERS, known)],
        initializer=[*source.graph.initializer, *op.initializers],
        value_info=[],
    )
    return task.changed(model=model, features=features, n_members=n_members)
