"""What several batches of an iteration compute together: the nodes that depend on their samples only."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import ModelProto, NodeProto

from ..graphs import GraphBuilder
from ..graphs.editing import renamed_node, with_fields
from ..graphs.nodes import attributes_of, node_inputs
from ..graphs.view import GraphView

__all__ = ["with_joined_rows"]

#: Bytes of the samples of an iteration up to which they stay in the cache of a core until they are read.
MAX_BYTES = 2**16


def with_joined_rows(
    op: GraphBuilder, batch: ModelProto, wholes: Mapping[str, str], n_batches: int
) -> tuple[ModelProto, dict[str, str]]:
    """Compute what depends on the samples only for all batches of an iteration at once.

    Parameters
    ----------
    op : GraphBuilder
        Receives the nodes.
    batch : onnx.ModelProto
        The step of a batch.
    wholes : mapping of str to str
        What a batch reads of its samples, each with a tensor of the samples of all batches.
    n_batches : int
        Batches of an iteration.

    Returns
    -------
    batch : onnx.ModelProto
        The step without these nodes.
    wholes : dict of str to str
        What it reads now, as before.
    """
    graph, found, nodes = GraphView(batch), dict(wholes), []
    for node in graph.nodes:
        if _goes_by_rows(graph, node, found) and _nbytes(graph, node.output[0]) * n_batches <= MAX_BYTES:
            (name,) = node.output
            found[name] = op.unique(f"joined_{name}")
            op.nodes.append(renamed_node(node, found))
        else:
            nodes.append(node)
    read = set().union(*map(node_inputs, nodes))
    return with_fields(batch, node=nodes), {name: whole for name, whole in found.items() if name in read}


def _goes_by_rows(graph: GraphView, node: NodeProto, wholes: Mapping[str, str]) -> bool:
    """Return whether a node makes rows of rows, one by one, and reads nothing else that changes."""
    if node.domain != "" or len(node.output) != 1 or graph.keeps_name(node.output[0]):
        return False
    if node.op_type == "Gather":
        data, rows = node.input
        is_first = attributes_of(node).get("axis", 0) == 0
        return is_first and rows in wholes and data not in wholes and data not in graph.producers
    if node.op_type == "Pad":
        pads, *others = (graph.value(name) for name in node.input[1:])
        if pads is None or any(other is None for other in others):
            return False
        return node.input[0] in wholes and not pads[0] and not pads[len(pads) // 2]
    return node.op_type == "Neg" and node.input[0] in wholes


def _nbytes(graph: GraphView, name: str) -> float:
    """Return the bytes of a tensor, infinity where they are not known."""
    sizes, dtype = graph.sizes(name), graph.op.dtype(name)
    return np.inf if sizes is None or dtype is None else float(np.prod(sizes)) * dtype.itemsize
