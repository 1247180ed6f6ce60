"""Fused operators of trained models: what definitions declare beside the nodes that training needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from onnx import AttributeProto, ModelProto, helper, numpy_helper

from ..graphs import GraphBuilder, graph_names, node_inputs, opset_versions
from ..graphs.editing import with_fields
from ..graphs.nodes import needed_nodes
from ..graphs.view import GraphView

#: Domain of the operators, and its version where a graph uses it.
ML, ML_OPSET = "ai.onnx.ml", 3


class FusedForm:
    """A part of a graph that a fused operator computes for inference, declared beside the nodes of the part.

    Tensors keep their names, and parameters are initializers under those of :meth:`ModelWriter.parameter`.
    """

    def apply(self, model: ModelProto) -> ModelProto:
        """Return a model for inference, or a part of one, with the operator; as it is where it cannot be."""
        raise NotImplementedError

    def by_rows(self) -> FusedForm | None:
        """Return the form whose result for a row does not depend on the rows beside it; None without any."""
        return self


def attribute_of(name: str, values: np.ndarray) -> AttributeProto:
    """Return numbers or bytes as an attribute; float64 as a tensor. onnx.helper looks at every number."""
    if values.dtype == np.float64:
        return helper.make_attribute(f"{name}_as_tensor", numpy_helper.from_array(values))
    kinds = {"f": AttributeProto.FLOATS, "S": AttributeProto.STRINGS}
    attribute = AttributeProto(name=name, type=kinds.get(values.dtype.kind, AttributeProto.INTS))
    fields = {"f": attribute.floats, "S": attribute.strings}
    fields.get(values.dtype.kind, attribute.ints).extend(values.tolist())
    return attribute


def computes(model: ModelProto, tensor: str) -> bool:
    """Return whether a node of the main graph gives a tensor."""
    return any(tensor in node.output for node in model.graph.node)


def fuse(model: ModelProto, forms: Iterable[FusedForm]) -> ModelProto:
    """Return a model for inference with the fused operators that definitions declared."""
    for form in reversed(tuple(forms)):  # the last one may take in what was declared before it
        model = form.apply(model)
    return _without_copies(model)


def _without_copies(model: ModelProto) -> ModelProto:
    """Return the model without nodes that only name an output: onnxruntime runs some of them."""
    view, names = GraphView(model), dict[str, str]()
    for node in view.nodes:
        if (node.domain, node.op_type) != ("", "Identity") or node.output[0] not in view.outputs:
            continue
        source = node.input[0]
        if source in view.producers and source not in view.outputs and source not in names:
            names[source] = node.output[0]
    view.rename(names)
    return with_fields(model, node=view.nodes) if names else model


def replace_tensors(
    model: ModelProto, tensors: Sequence[str], write: Callable[[GraphBuilder], None]
) -> ModelProto:
    """Return the model with other nodes for some tensors: ``write`` appends them under the names of these."""
    graph = model.graph
    op = GraphBuilder(opset_versions(model).get("", 18), existing_names=graph_names(graph))
    write(op)
    kept = [node for node in graph.node if set(tensors).isdisjoint(node.output)]
    first = next(i for i, node in enumerate(graph.node) if not set(tensors).isdisjoint(node.output))
    outputs = [value.name for value in graph.output]
    nodes = needed_nodes([*kept[:first], *op.nodes, *kept[first:]], outputs)
    read = set(outputs).union(*map(node_inputs, nodes))
    tensors = [tensor for tensor in (*graph.initializer, *op.initializers) if tensor.name in read]
    return with_fields(model, {ML: ML_OPSET}, node=nodes, initializer=tensors)
