"""Subgraphs of control flow operators, with their types and gradients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from onnx import GraphProto, NodeProto, helper

from ..graphs import TensorType, make_value_info, node_inputs, value_types
from ..graphs.editing import renamed_node
from ..graphs.nodes import needed_nodes
from .cleanup import simplify
from .gradient_builder import GradientBuilder
from .types.inference import infer_body

__all__ = ["Body"]


class Body:
    """A subgraph that a gradient graph computes again, with the gradients of its outputs."""

    def __init__(
        self,
        op: GradientBuilder,
        graph: GraphProto,
        input_types: Mapping[str, TensorType | None] | None = None,
    ) -> None:
        typed = infer_body(graph, input_types or {}, op.type, op.opsets, op.value)
        self.graph = graph
        self.nodes = list(typed.node)
        self.op = op.child(value_types(helper.make_model(typed), infer=False))
        self.op.add_constants(graph.initializer)
        for node in self.nodes:
            if node.op_type == "Constant":
                self.op.add_constant_node(node)
        self._first: list[NodeProto] = []

    def start(self) -> None:
        """Mark the nodes written so far as those that compute the inputs of the subgraph."""
        self._first = list(self.op.nodes)
        self.op.nodes.clear()

    def gradients(
        self, backpropagate: Any, seeds: Iterable[tuple[str, str]], wrt: Sequence[str]
    ) -> list[str]:
        """Write the gradients of some tensors, or zeros if no output depends on a tensor."""
        summed: dict[str, str] = {}
        for name, grad in seeds:
            summed[name] = self.op.Add(summed[name], grad) if name in summed else grad
            self.op.with_gradient_type(summed[name], name)
        grads = backpropagate(self.op, self.nodes, summed, wrt)
        return [grads[name] if name in grads else self.op.constant_gradient(name) for name in wrt]

    def build(self, name: str, inputs: Sequence, outputs: Sequence[str], types: Sequence) -> GraphProto:
        """Return the subgraph that computes some tensors."""
        before = [*self._first, *self.nodes]
        backward, alias = simplify(self.op, before, self.op.nodes)
        results = [self.op.unique("output") for _ in outputs]
        last = [
            helper.make_node("Identity", [alias.get(source, source)], [result])
            for source, result in zip(outputs, results, strict=True)
        ]
        nodes = needed_nodes([*before, *backward, *last], results)
        read = set().union(*(node_inputs(node) for node in nodes))
        infos = [make_value_info(result, known) for result, known in zip(results, types, strict=True)]
        constants = [tensor for tensor in self.graph.initializer if tensor.name in read]
        return helper.make_graph(_without_copies(nodes, results), name, inputs, infos, constants)


def _without_copies(nodes: list[NodeProto], outputs: Sequence[str]) -> list[NodeProto]:
    """Rename computed tensors that are copied to an output, and remove the copies."""
    made = {name for node in nodes for name in node.output}
    renamed: dict[str, str] = {}
    kept = []
    for node in nodes:
        source = node.input[0] if node.op_type == "Identity" and node.output[0] in outputs else ""
        if source in made and source not in renamed and source not in outputs:
            renamed[source] = node.output[0]
        else:
            kept.append(node)
    return [renamed_node(node, renamed) for node in kept]
