"""Nodes on a gradient path that round: quantisation, and casts to integers and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, defs

from ..exceptions import GradientError, limit_address
from ..graphs import node_inputs, opset_versions, subgraphs, value_types
from ..graphs.nodes import attribute, captured_names
from .bodies import Body
from .gradient_builder import GradientBuilder
from .registry import load_rules
from .rule_set import NO_GRADIENT, normalize_domain
from .types.inference import infer_types
from .types.typed_builder import LOW_PRECISION

__all__ = ["INTEGER_INPUTS", "RoundingError", "Tracker", "reject_rounding", "value_positions"]

_QUANTIZE = {"QuantizeLinear", "DynamicQuantizeLinear"}
_CASTS = {"Cast", "CastLike"}
#: Operators on quantised numbers, whose outputs have another type than their inputs.
INTEGER_INPUTS = {"DequantizeLinear", "MatMulInteger", "ConvInteger", "QLinearMatMul", "QLinearConv"}
INTEGER_INPUTS |= {"MatMulIntegerToFloat", "QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearLeakyRelu"}
_TEXT = TensorProto.STRING
_FLOATS = {TensorProto.FLOAT, TensorProto.DOUBLE, *LOW_PRECISION}
_DYNAMIC = (
    " Its scale, and gradients through it, depend on the rounded values: training is more stable with a "
    "QuantizeLinear whose scale is stored, from calibration."
)


class RoundingError(GradientError):
    """A gradient path contains a node that rounds."""

    def __init__(self, node: NodeProto) -> None:
        super().__init__(
            f"Operator {node.op_type!r} (node {node.name!r} -> {', '.join(node.output)}) has no "
            "gradient: it rounds, so its derivative is zero, and weights before it would not be trained. "
            "Remove it from the graph, exclude the weights before it, or pass straight_through=True to "
            "differentiate it as the identity."
            + (_DYNAMIC if node.op_type == "DynamicQuantizeLinear" else "")
            + limit_address("rounding")
        )


def has_rounding(nodes: Iterable[NodeProto]) -> bool:
    """Return whether any node, including those of subgraphs, may round."""
    return any(
        node.op_type in _QUANTIZE | _CASTS or any(has_rounding(graph.node) for graph in subgraphs(node))
        for node in nodes
    )


def reject_rounding(model: ModelProto, outputs: Iterable[str], wrt: Iterable[str]) -> None:
    """Raise an error if a node on the path from some tensors to outputs rounds."""
    if not has_rounding(model.graph.node):
        return
    inferred = infer_types(model)
    op = GradientBuilder(opset_versions(model)[""], types=value_types(inferred, infer=False))
    op.opsets.update(opset_versions(model))
    tracker = Tracker(op, load_rules(), wrt)
    reads = [(node, tracker.follow(node)) for node in inferred.graph.node]
    needed = set(outputs) & tracker.active
    for node, values in reversed(reads):
        if values and not needed.isdisjoint(node.output):
            needed |= values
            if tracker.rounds(node):
                raise RoundingError(node)


class Tracker:
    """Follow values through a graph: floats, and integers that are rounded floats.

    Tensors that depend on ``wrt`` are ``active``; ``rounded`` has the first rounding node of integer ones.
    """

    def __init__(self, op: GradientBuilder, table: Any, wrt: Iterable[str]) -> None:
        self.op, self.table = op, table
        self.active = set(wrt)
        self.rounded: dict[str, NodeProto] = {}

    def follow(self, node: NodeProto) -> set[str]:
        """Add the outputs of a node, and return the active tensors whose values it passes on."""
        reads = node_inputs(node) & self.active
        if self.rounded and not reads.isdisjoint(self.rounded):
            values = self._value_inputs(node)
            reads = {name for name in reads if name not in self.rounded or name in values}
        if not reads or self.table.find(node.domain, node.op_type) == NO_GRADIENT:
            return set()
        rounding_node = next((self.rounded[name] for name in node_inputs(node) if name in self.rounded), None)
        if self.rounds(node):
            rounding_node = rounding_node or node
        for name in filter(None, node.output):
            if self._is_float(name):
                self.active.add(name)
            elif rounding_node is not None and self._passes_integers(node, name, reads):
                self._add_rounded(name, rounding_node)
        for graph in subgraphs(node):
            body = self.inside(node, graph)
            last = [value.name for value in graph.output][node.op_type == "Loop" :]
            for name, source in zip(node.output, last, strict=False):
                if body is not None and name and source in body.rounded:
                    self._add_rounded(name, body.rounded[source])
        return reads

    def _add_rounded(self, name: str, rounding_node: NodeProto) -> None:
        self.active.add(name)
        self.rounded[name] = rounding_node

    def inside(self, node: NodeProto, graph: GraphProto) -> Tracker | None:
        """Return a tracker of the nodes of a subgraph, or None if nothing is rounded."""
        if not has_rounding(graph.node) and node_inputs(node).isdisjoint(self.rounded):
            return None
        body = Body(self.op, graph)
        inner = Tracker(body.op, self.table, captured_names(node) & self.active)
        inner.rounded = {name: self.rounded[name] for name in inner.active if name in self.rounded}
        pairs = list(zip(node.input, (value.name for value in graph.input), strict=False))
        size, sources = -1, self
        while len(inner.active) != size:
            size = len(inner.active)
            for outer, name in pairs:
                if outer in sources.active:
                    inner.active.add(name)
                    if outer in sources.rounded:
                        inner.rounded[name] = sources.rounded[outer]
            for child in body.nodes:
                inner.follow(child)
            # The states of an iteration are those of the previous one.
            pairs, sources = [(last, first) for first, last in state_names(node, graph)], inner
        return inner

    def rounds(self, node: NodeProto) -> bool:
        """Return whether a node rounds floating-point numbers."""
        if node.op_type in _CASTS:
            target = self._cast_type(node)
            return target is not None and target not in (*_FLOATS, _TEXT) and self._is_float(node.input[0])
        return node.op_type in _QUANTIZE

    def _cast_type(self, node: NodeProto) -> int | None:
        known = self.op.elem_type(node.output[0])
        return known or attribute(node, "to")

    def _is_float(self, name: str) -> bool:
        elem_type = self.op.elem_type(name)
        return elem_type is None or elem_type in _FLOATS

    def _passes_integers(self, node: NodeProto, name: str, reads: set[str]) -> bool:
        """Return whether an integer output contains rounded values, not indices or sizes."""
        if self.rounds(node) or node.op_type in INTEGER_INPUTS:
            return True
        if any(subgraphs(node)):
            return False
        types = _formal_types(node)
        if types is None:
            return True
        sources = {kind for kind, source in zip(types[0], node.input, strict=False) if source in reads}
        return types[1][list(node.output).index(name)] in sources

    def _value_inputs(self, node: NodeProto) -> set[str]:
        """Return the inputs whose values the outputs contain, not indices, labels or sizes."""
        if any(subgraphs(node)):
            return self._values_of_bodies(node)
        if node.op_type in _CASTS:
            return {node.input[0]}
        if node.op_type in _QUANTIZE | INTEGER_INPUTS:
            return set(node.input)
        return {node.input[i] for i in value_positions(node)}

    def _values_of_bodies(self, node: NodeProto) -> set[str]:
        """Return the inputs and captured tensors that floats in the subgraphs of a node depend on."""
        found: set[str] = set()
        for graph in subgraphs(node):
            reached = self.reached(node, graph)
            pairs = zip(node.input, (value.name for value in graph.input), strict=False)
            found |= reached | {outer for outer, inner in pairs if inner in reached}
        return found

    def reached(self, node: NodeProto, graph: GraphProto) -> set[str]:
        """Return the tensors on whose values the floating-point outputs of a subgraph depend."""
        reached = {v.name for v in graph.output if v.type.tensor_type.elem_type in (0, *_FLOATS)}
        size = -1
        while len(reached) != size:
            size = len(reached)
            reached |= {last for first, last in state_names(node, graph) if first in reached}
            for inner in reversed(graph.node):
                known = self.table.find(inner.domain, inner.op_type)
                if not reached.isdisjoint(inner.output) and known != NO_GRADIENT:
                    reached |= self._value_inputs(inner)
        return reached

    def carried(self, node: NodeProto, graph: GraphProto) -> NodeProto | None:
        """Return the node that rounded an integer state of a loop, or None."""
        body = self.inside(node, graph)
        if body is None or node.op_type == "If":
            return None
        reached, pairs = self.reached(node, graph), state_names(node, graph)
        found = [last for first, last in pairs if first in reached and last in body.rounded]
        return body.rounded[found[0]] if found else None


def state_names(node: NodeProto, graph: GraphProto) -> list[tuple[str, str]]:
    """Return the names of the states of a Loop or Scan in its body, before and after an iteration."""
    inputs, outputs = [v.name for v in graph.input], [v.name for v in graph.output]
    if node.op_type == "Loop":
        return list(zip(inputs[2:], outputs[1:], strict=False))
    scanned = attribute(node, "num_scan_inputs", 0)
    return list(zip(inputs[: len(inputs) - scanned], outputs, strict=False))


def value_positions(node: NodeProto) -> list[int]:
    """Return the positions of the inputs that have the type of an output by specification.

    Without a specification these are all inputs.
    """
    types = _formal_types(node)
    if types is None:
        return list(range(len(node.input)))
    return [i for i, kind in enumerate(types[0]) if kind in types[1]]


def _formal_types(node: NodeProto) -> tuple[list[str], list[str]] | None:
    domain = normalize_domain(node.domain)
    if not defs.has(node.op_type, domain):
        return None
    schema = defs.get_schema(node.op_type, domain=domain)
    inputs, outputs = (
        [formal[min(i, len(formal) - 1)].type_str for i in range(len(actual))] if formal else []
        for formal, actual in ((schema.inputs, node.input), (schema.outputs, node.output))
    )
    return inputs, outputs
