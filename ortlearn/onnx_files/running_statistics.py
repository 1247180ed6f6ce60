"""Running statistics of batch normalizations in training mode."""

from __future__ import annotations

from onnx import ModelProto, NodeProto

from ..differentiation.decomposition import decompose
from ..differentiation.gradient_builder import GradientBuilder
from ..differentiation.rule_context import RuleNode
from ..differentiation.rules.normalization import by_batch_statistics
from ..exceptions import ConversionError
from ..graphs import append_nodes, graph_names, make_value_info, node_inputs, opset_versions, value_types
from ..graphs.editing import with_fields
from ..graphs.nodes import attribute, copy_node

__all__ = ["NEXT", "for_evaluation", "running_statistics", "with_batch_statistics"]

#: Name of the output with an updated running statistic; tensors of the model never have this prefix.
NEXT = "ortlearn_next_{}"
#: Positions of running mean and variance among the inputs of a batch normalization.
STATISTICS = (3, 4)


def _is_training(node: NodeProto) -> bool:
    known = node.op_type == "BatchNormalization" and node.domain in ("", "ai.onnx")
    return known and bool(attribute(node, "training_mode", 0))


def running_statistics(model: ModelProto) -> list[str]:
    """Return the running means and variances of batch normalizations in training mode.

    Nodes in subgraphs of If, Loop and Scan are excluded: their statistics are not updated.
    """
    initializers = {tensor.name for tensor in model.graph.initializer}
    nodes = [node for node in model.graph.node if _is_training(node)]
    read = (node.input[position] for node in nodes for position in STATISTICS)
    return list(dict.fromkeys(name for name in read if name in initializers))


def for_evaluation(model: ModelProto) -> ModelProto:
    """Return a model whose batch normalizations use running statistics instead of batch statistics."""
    if not any(map(_is_training, model.graph.node)):
        return model
    nodes: list[NodeProto] = []
    op = GradientBuilder(opset_versions(model)[""], existing_names=graph_names(model.graph))
    read = {value.name for value in model.graph.output}.union(*map(node_inputs, model.graph.node))
    for node in model.graph.node:
        if not _is_training(node):
            nodes.append(node)
            continue
        frozen = copy_node(node, outputs=node.output[:1])
        next(item for item in frozen.attribute if item.name == "training_mode").i = 0
        nodes.append(frozen)
        for position, name in zip(STATISTICS, node.output[1:], strict=False):
            if name in read:
                op.Identity(node.input[position], outputs=[name])
                nodes.append(op.nodes[-1])
    return with_fields(model, node=nodes)


def with_batch_statistics(model: ModelProto) -> ModelProto:
    """Return a model that normalizes by batch statistics and outputs updated running statistics.

    The output of a statistic ``name`` is ``NEXT.format(name)``. Nodes that share a statistic update it one
    after the other, as in torch. Batch normalizations are decomposed, since only builds of onnxruntime with
    training have a kernel for training mode.
    """
    if not any(map(_is_training, model.graph.node)):
        return model
    statistics, types = running_statistics(model), value_types(model)
    op = GradientBuilder(
        opset_versions(model)[""],
        existing_names=graph_names(model.graph),
        types=types,
        prefix="statistics_",
    )
    nodes: list[NodeProto] = []
    latest = {name: name for name in statistics}
    for node in model.graph.node:
        if not _is_training(node):
            nodes.append(node)
            continue
        known = types.get(node.input[0])
        if known is None or known.shape is None:
            raise ConversionError(
                f"BatchNormalization {node.name!r} in training mode cannot be trained: the rank of its input "
                f"{node.input[0]!r} is unknown. Declare the shapes of the inputs of the model."
            )
        outputs = [*node.output, *[""] * (3 - len(node.output))]
        full = copy_node(node, outputs=[outputs[0], *(name or op.unique("running") for name in outputs[1:])])
        for position, result in zip(STATISTICS, full.output[1:], strict=True):
            name = node.input[position]
            full.input[position] = latest.get(name, name)
            if name in latest:
                latest[name] = result
        nodes += decompose(op, RuleNode(full, op, {}, set()), by_batch_statistics)
    for name in statistics:
        op.Identity(latest[name], outputs=[NEXT.format(name)])
    outputs = [make_value_info(NEXT.format(name), types[name]) for name in statistics]
    return append_nodes(with_fields(model, node=nodes), op, outputs=[*model.graph.output, *outputs])
