"""Weights of the members of an ensemble for each sample: zero for members that were fitted on it."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import helper

from ...graphs import GraphBuilder, TensorType, graph_names, make_value_info, opset_versions
from ...graphs.editing import renamed_node, with_fields
from .names import MEMBERS
from .task import TrainingTask

__all__ = ["with_member_weights"]


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
    model = with_fields(
        source,
        node=nodes,
        input=[*source.graph.input, make_value_info(MEMBERS, known)],
        initializer=[*source.graph.initializer, *op.initializers],
        value_info=[],
    )
    return task.changed(model=model, features={**task.graph.features, MEMBERS: known}, n_members=n_members)
