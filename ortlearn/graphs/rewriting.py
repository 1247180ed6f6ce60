"""Replace nodes of a graph by others that compute the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from onnx import ModelProto, NodeProto

from .builder import GraphBuilder
from .editing import copy_model
from .queries import graph_names, opset_versions, value_types

__all__ = ["NodeRule", "replace_nodes"]

#: Writes the replacement of a node with a builder, under the names of its outputs; False to keep it.
NodeRule = Callable[[NodeProto, GraphBuilder], bool]


def replace_nodes(model: ModelProto, rules: Mapping[tuple[str, str], NodeRule]) -> ModelProto:
    """Return the model with some nodes of its main graph replaced.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.
    rules : mapping of (str, str) to callable
        By domain and operator ("" is the default domain), ``rule(node, op) -> bool``: it writes the
        replacement with the builder ``op``, which knows the types of the graph's tensors, and says
        whether it did.

    Returns
    -------
    onnx.ModelProto
        New model; the one given where nothing was replaced.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.graphs import replace_nodes
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N] x) => (float[N] y) { a = Neg (x) y = Softsign (a) }''')
    >>> def softsign(node, op):
    ...     op.Div(node.input[0], op.Add(op.Abs(node.input[0]), 1.0), outputs=[node.output[0]])
    ...     return True
    >>> [node.op_type for node in replace_nodes(model, {("", "Softsign"): softsign}).graph.node]
    ['Neg', 'Abs', 'Add', 'Div']
    """
    if not any(_key(node) in rules for node in model.graph.node):
        return model
    versions = opset_versions(model)
    op = GraphBuilder(
        versions.get("", 18),
        dtype=np.float32,
        existing_names=graph_names(model.graph),
        types=value_types(model),
    )
    changed = False
    for node in model.graph.node:
        rule = rules.get(_key(node))
        start = len(op.nodes)
        if rule is not None and rule(node, op):
            changed = True
        else:
            del op.nodes[start:]  # what a rule began and gave up
            op.nodes.append(node)
    return _with_nodes(model, op) if changed else model


def _key(node: NodeProto) -> tuple[str, str]:
    return ("" if node.domain == "ai.onnx" else node.domain), node.op_type


def _with_nodes(model: ModelProto, op: GraphBuilder) -> ModelProto:
    result = copy_model(model)
    del result.graph.node[:]
    result.graph.node.extend(op.nodes)
    result.graph.initializer.extend(op.initializers)
    versions = opset_versions(model)
    for domain, version in op.opsets.items():
        if domain not in versions:
            result.opset_import.add(domain=domain, version=version)
    return result
