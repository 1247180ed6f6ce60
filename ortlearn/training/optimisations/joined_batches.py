"""Joint computation for the batches of an iteration: nodes that depend only on samples, and losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, NodeProto

from ...differentiation.stable_softplus import stable_softplus
from ...graphs import GraphBuilder
from ...graphs.editing import renamed_node, with_fields
from ...graphs.nodes import attributes_of, node_inputs
from ...graphs.view import GraphView
from ..graphs.names import OBJECTIVE

__all__ = ["JoinedLosses", "joined_losses", "with_joined_samples"]

#: Maximum bytes of the samples of an iteration, so that they stay in the cache of a core.
MAX_BYTES = 2**16
#: Maximum samples of a batch whose losses are joined as columns, since this copies single elements.
MAX_SAMPLES = 64
#: Larger batches of a multiple of this number, the elements of the longest vector instruction, are joined as
#: rows: each has bitwise the results that it has alone.
ALIGNED = 16
REDUCTIONS = {"ReduceMean", "ReduceSum", "ReduceSumSquare"}
#: Operators with bitwise the same results for any shape; others may round the last elements differently.
ELEMENTWISE = set("Abs Add Clip Div Max Min Mul Neg Relu Sqrt Sub".split())
#: Operators that are bitwise the same for aligned batches.
VECTORIZED = ELEMENTWISE | set("Erf Exp Log Pow Sigmoid Softplus Tanh".split())


def with_joined_samples(
    op: GraphBuilder, batch: ModelProto, joined: Mapping[str, str], n_batches: int
) -> tuple[ModelProto, dict[str, str]]:
    """Move nodes that depend only on samples out of the batches, and write them once for all of them."""
    graph, found, nodes = GraphView(batch), dict(joined), []
    for node in graph.nodes:
        if _is_samplewise(graph, node, found) and _nbytes(graph, node.output[0]) * n_batches <= MAX_BYTES:
            (name,) = node.output
            found[name] = op.unique(f"joined_{name}")
            op.nodes.append(renamed_node(node, found))
        else:
            nodes.append(node)
    read = set().union(*map(node_inputs, nodes))
    return with_fields(batch, node=nodes), {name: tensor for name, tensor in found.items() if name in read}


def _is_samplewise(graph: GraphView, node: NodeProto, joined: Mapping[str, str]) -> bool:
    """Return whether a node computes each sample independently, and depends only on samples and constants."""
    if node.domain != "" or len(node.output) != 1 or graph.keeps_name(node.output[0]):
        return False
    if node.op_type == "Gather":
        data, rows = node.input
        is_first = attributes_of(node).get("axis", 0) == 0
        return is_first and rows in joined and data not in joined and data not in graph.producers
    if node.op_type == "Pad":
        pads, *others = (graph.value(name) for name in node.input[1:])
        if pads is None or any(other is None for other in others):
            return False
        return node.input[0] in joined and not pads[0] and not pads[len(pads) // 2]
    return node.op_type == "Neg" and node.input[0] in joined


def _nbytes(graph: GraphView, name: str) -> float:
    """Return the bytes of a tensor, infinity if unknown."""
    sizes, dtype = graph.sizes(name), graph.op.dtype(name)
    return np.inf if sizes is None or dtype is None else float(np.prod(sizes)) * dtype.itemsize


@dataclass(frozen=True)
class JoinedLosses:
    """The nodes of a batch that only its objective depends on, and the columns that they read."""

    nodes: list[NodeProto]
    sources: list[str]
    n_samples: int

    def without(self, batch: ModelProto) -> ModelProto:
        """Return a batch without these nodes."""
        made = {node.output[0] for node in self.nodes}
        return with_fields(batch, node=[n for n in batch.graph.node if not made & set(n.output)])

    def write(self, op: GraphBuilder, copies: Sequence[Mapping[str, str]]) -> str:
        """Append the objectives of some batches, and return the name of the result.

        Batches are columns of a matrix, or rows if they are large, so that their sums are bitwise independent
        of the other batches. For a single column, onnxruntime sums in another order.
        """
        names, by_row = {}, self.n_samples > MAX_SAMPLES
        for source in self.sources:
            parts = [copy.get(source, source) for copy in copies]
            names[source] = op.Concat(*parts, axis=0 if by_row else 1)
        *before, last = self.nodes
        for node in before:
            if by_row and node.op_type == "Softplus":
                names[node.output[0]] = stable_softplus(op, names[node.input[0]])
                continue
            names[node.output[0]] = op.unique(f"joined_{node.output[0]}")
            op.nodes.append(renamed_node(node, names))
        values, kind = names.get(last.input[0], last.input[0]), last.op_type
        if kind == "ReduceSumSquare":
            values, kind = op.Mul(values, values), "ReduceSum"
        if by_row:
            values = op.Reshape(values, np.array([-1, self.n_samples]))
        return op.node(kind, values, np.array([1 if by_row else 0]), keepdims=0)


def joined_losses(batch: ModelProto) -> JoinedLosses | None:
    """Return the nodes that only the objective depends on, or None if they cannot be joined.

    The objective must be a sum or mean over a column of few samples, or of a multiple of 16.
    """
    graph = GraphView(batch)
    last = graph.producer(OBJECTIVE)
    if last is None or last.op_type not in REDUCTIONS or len(last.input) != 1 or graph.op.opset < 18:
        return None
    sizes = graph.sizes(last.input[0])
    if attributes_of(last).get("keepdims", 1) or sizes is None or len(sizes) != 2 or sizes[1] != 1:
        return None
    if sizes[0] > MAX_SAMPLES and sizes[0] % ALIGNED:
        return None
    joined = ELEMENTWISE if sizes[0] <= MAX_SAMPLES else VECTORIZED
    nodes, made = [last], {OBJECTIVE}
    for node in reversed(graph.nodes):
        name = node.output[0]
        readers = graph.readers.get(name, ())
        if node.op_type not in joined or node.domain != "" or graph.keeps_name(name) or not readers:
            continue
        if not all(reader.output[0] in made for reader in readers):
            continue
        if all(graph.sizes(read) == sizes or _is_scalar(graph, read) for read in node.input):
            nodes.append(node)
            made.add(name)
    read = dict.fromkeys(name for node in reversed(nodes) for name in node.input)
    sources = [name for name in read if name not in made and graph.value(name) is None]
    return JoinedLosses(nodes[::-1], sources, sizes[0])


def _is_scalar(graph: GraphView, name: str) -> bool:
    value = graph.value(name)
    return name == "" or (value is not None and value.size == 1)
