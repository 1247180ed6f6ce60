"""Inputs, outputs and metadata of an ONNX file, which its trained model shares."""

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper

from ..graphs import GraphBuilder, append_nodes, graph_names, map_names, node_inputs, opset_versions, prune
from ..graphs.editing import renamed_node, with_fields
from ..graphs.nodes import copy_node
from .weight_locations import weight_locations


def holds_weights(file: ModelProto, model: ModelProto, names: Collection[str]) -> bool:
    """Return whether weights of a graph are tensors of its file, not attributes of fused operators."""
    of_file = weight_locations(file)
    of_model = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    read = set().union(*map(node_inputs, file.graph.node))
    inner = {name for name, location in of_file.items() if location.graph is not file.graph}
    return all(
        name in of_file and (name in read or name in inner) and of_file[name].shape == of_model[name]
        for name in names
    )


def without_tensors(file: ModelProto, outputs: Collection[str], inputs: Collection[str]) -> ModelProto:
    """Return a file without given outputs, their unshared nodes, and given inputs that become unused."""
    left = [value for value in file.graph.output if value.name not in outputs]
    rest = prune(with_fields(file, output=left))
    read = {value.name for value in rest.graph.output}.union(*map(node_inputs, rest.graph.node))
    used = [value for value in rest.graph.input if value.name not in inputs or value.name in read]
    return with_fields(rest, input=used)


def with_interface(model: ModelProto, file: ModelProto) -> ModelProto:
    """Return a graph with the inputs, outputs, ``ZipMap`` nodes, domains and metadata of its file."""
    outputs, inputs = ({value.name for value in values} for values in (file.graph.output, file.graph.input))
    maps = [node for node in file.graph.node if node.op_type == "ZipMap" and node.output[0] in outputs]
    unused = inputs.difference(tensor.name for tensor in model.graph.initializer)
    defaults = [tensor for tensor in file.graph.initializer if tensor.name in unused]
    constants = [*model.graph.initializer, *defaults]
    result = with_fields(file, node=_with_maps(model, maps), initializer=constants, value_info=())
    del result.graph.sparse_initializer[:]  # dense in the graph
    result.ir_version = model.ir_version
    del result.functions[:], result.opset_import[:]
    versions = {**opset_versions(file), **opset_versions(model)}
    result.opset_import.extend(helper.make_opsetid(domain, number) for domain, number in versions.items())
    return result


def _with_maps(model: ModelProto, maps: Iterable[NodeProto]) -> list[NodeProto]:
    """Return the nodes of a graph followed by ``ZipMap`` nodes, which take over the names of their inputs."""
    nodes, op = list(model.graph.node), GraphBuilder(existing_names=graph_names(model.graph))
    for node in maps:
        name, last = node.output[0], copy_node(node)
        made = next(other for other in nodes if name in other.output)
        if made.op_type == "Identity" and not any(name in node_inputs(other) for other in nodes):
            last.input[0] = made.input[0]
            nodes.remove(made)
        else:
            last.input[0] = op.unique(name)
            nodes = [renamed_node(other, {name: last.input[0]}) for other in nodes]
        if any(last.name == other.name for other in nodes):
            last.name = op.unique("ZipMap")
        nodes.append(last)
    return nodes


def with_zipmap(model: ModelProto, classes: np.ndarray) -> ModelProto:
    """Return a classifier with a ``ZipMap`` of its probabilities, as skl2onnx writes them."""
    labels, probabilities = model.graph.output
    op = GraphBuilder(existing_names=graph_names(model.graph))
    label, maps = (
        name if op.claim(name) else op.unique(name) for name in ("output_label", "output_probability")
    )
    is_float = probabilities.type.tensor_type.elem_type == TensorProto.FLOAT  # ZipMap accepts float32 only
    matrix = probabilities.name if is_float else op.Cast(probabilities.name, to=TensorProto.FLOAT)
    texts = np.asarray(classes).dtype.kind in "OUS"
    name, kind_of = ("classlabels_strings", str) if texts else ("classlabels_int64s", int)
    keys: dict[str, Any] = {name: list(map(kind_of, classes))}
    op.node("ZipMap", matrix, domain="ai.onnx.ml", outputs=[maps], **keys)
    key = TensorProto.STRING if texts else TensorProto.INT64
    value = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    kind = helper.make_sequence_type_proto(helper.make_map_type_proto(key, value))
    result = map_names(model, {labels.name: label})
    outputs = [result.graph.output[0], helper.make_value_info(maps, kind)]
    return append_nodes(result, op, outputs=outputs)
