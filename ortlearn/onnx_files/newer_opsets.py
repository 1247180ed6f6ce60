"""Files of opsets newer than every supported onnxruntime reads, written at one that it reads."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, NodeProto, defs

from ..differentiation.expand import expand_node
from ..differentiation.gradient_builder import GradientBuilder
from ..exceptions import ConversionError
from ..graphs import copy_model, graph_names, opset_versions, value_types
from ..graphs.editing import with_fields
from ..graphs.nodes import all_nodes

#: Function bodies in function bodies.
MAX_DEPTH = 8


def with_older_opset(model: ModelProto, opset: int) -> ModelProto:
    """Return a model of a newer opset at an older one that computes the same.

    Operators that the older opset does not have are written as the bodies in their specification. The others
    keep their nodes: what a newer version adds to them are types of elements, and attributes.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.
    opset : int
        Version that it is to have.

    Returns
    -------
    onnx.ModelProto
        Model of that version.

    Raises
    ------
    ConversionError
        If an operator has no body, or a node sets an attribute that the older version does not have.
    """
    for _ in range(MAX_DEPTH):
        if all(_exists(node, opset) for node in model.graph.node):
            break
        model = _expanded(model, opset)
    faults = sorted(set(_faults(model, opset)))
    if faults:
        raise ConversionError(
            f"The model has opset {opset_versions(model)['']}, and training reads up to {opset}, which lacks "
            f"{', '.join(faults)}. Export the model again with opset {opset}."
        )
    result = copy_model(model)
    for item in result.opset_import:
        item.version = opset if item.domain == "" else item.version
    return result


def _expanded(model: ModelProto, opset: int) -> ModelProto:
    """Return a model with the bodies of the operators that an opset does not have."""
    op = GradientBuilder(
        opset_versions(model)[""], existing_names=graph_names(model.graph), types=value_types(model)
    )
    nodes: list[NodeProto] = []
    for node in model.graph.node:
        body = None if _exists(node, opset) else expand_node(op, node)
        nodes.extend([node] if body is None else body)
    return with_fields(model, node=nodes, initializer=[*model.graph.initializer, *op.initializers])


def _exists(node: NodeProto, opset: int) -> bool:
    """Return whether an opset has an operator; operators of other domains count as such."""
    return node.domain not in ("", "ai.onnx") or defs.has(node.op_type, max_inclusive_version=opset)


def _faults(model: ModelProto, opset: int) -> Iterator[str]:
    """Yield the operators and attributes that an opset does not have."""
    for node in all_nodes(model.graph):
        if not _exists(node, opset):
            yield node.op_type
        elif node.domain in ("", "ai.onnx"):
            known = defs.get_schema(node.op_type, opset).attributes
            yield from (f"{node.op_type}({a.name}=...)" for a in node.attribute if a.name not in known)
