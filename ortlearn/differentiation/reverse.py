"""Reverse-mode differentiation of a list of nodes with gradient rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnx import NodeProto

from ..exceptions import GradientError, OrtlearnError, limit_address
from ..graphs import subgraphs
from ..graphs.nodes import captured_names
from .expand import expand_node
from .gradient_builder import GradientBuilder
from .registry import Rule, RuleTable, load_rules
from .rounding import RoundingError, Tracker
from .rule_context import RuleNode

__all__ = ["Differentiator", "gradient_graph"]


@dataclass
class _Step:
    """A node on a path from a differentiated tensor to an output."""

    index: int
    rule: Rule | None
    reads: set[str]


class Differentiator:
    """Differentiate lists of nodes: the main graph, and bodies of control flow operators in it."""

    def __init__(
        self, table: RuleTable, origin: Mapping[str, str] | None = None, straight_through: bool = False
    ) -> None:
        self.table = table
        self.origin = dict(origin or {})
        self.straight_through = straight_through

    def backpropagate(
        self,
        op: GradientBuilder,
        nodes: list[NodeProto],
        seeds: Mapping[str, str],
        wrt: Iterable[str],
    ) -> dict[str, str]:
        """Write nodes that propagate gradients from outputs back to other tensors."""
        wrt = list(dict.fromkeys(wrt))  # in order, so that equal models give equal graphs in every process
        needed, steps = self._plan(op, nodes, seeds, wrt)
        contributions = {name: [grad] for name, grad in seeds.items() if name in needed}
        for step in reversed(steps):
            self._pull_back(op, nodes, step, needed, contributions)
        return {name: _total(op, contributions, name) for name in wrt if name in contributions}

    def _plan(self, op: Any, nodes: Any, seeds: Any, wrt: Any) -> tuple[set[str], list[_Step]]:
        """Return the tensors with gradients, and the nodes between them in topological order."""
        while True:
            tracker = Tracker(op, self.table, wrt)
            candidates = self._forward(tracker, nodes)
            needed = {name for name in seeds if name in tracker.active}
            steps = []
            for step in reversed(candidates):
                if not needed.isdisjoint(nodes[step.index].output):
                    needed |= step.reads
                    steps.append(step)
            self._check_rounding(tracker, [nodes[step.index] for step in reversed(steps)], needed)
            unknown = [step for step in steps if step.rule is None]
            if not unknown:
                return needed, steps[::-1]
            for step in unknown:  # backwards, so that indices of the others remain valid
                nodes[step.index : step.index + 1] = self._expand(op, nodes[step.index])

    def _forward(self, tracker: Tracker, nodes: Any) -> list[_Step]:
        """Return the nodes with an output that depends on a differentiated tensor."""
        candidates = []
        for index, node in enumerate(nodes):
            reads = tracker.follow(node)
            if reads:
                rule = self.table.find(node.domain, node.op_type)
                assert not isinstance(rule, str)
                candidates.append(_Step(index, rule, reads))
        return candidates

    def _check_rounding(self, tracker: Tracker, nodes: list[NodeProto], needed: set[str]) -> None:
        """Raise an error if a node on the path rounds, unless straight-through gradients are enabled."""
        for node in nodes:
            if tracker.rounds(node) and not self.straight_through:
                raise RoundingError(node)
            for graph in subgraphs(node):
                values = {*tracker.follow(node), *node.output} & needed & set(tracker.rounded)
                rounding_node = tracker.rounded[min(values)] if values else tracker.carried(node, graph)
                if rounding_node is not None and not self.straight_through:
                    raise RoundingError(rounding_node)
                if rounding_node is not None:
                    raise GradientError(
                        f"Cannot differentiate operator {node.op_type!r} (node {node.name!r}): integers "
                        f"rounded by {rounding_node.op_type!r} (node {rounding_node.name!r}) are inputs, "
                        "outputs or states of its body. Cast them to floats first."
                    )

    def _expand(self, op: GradientBuilder, node: NodeProto) -> list[NodeProto]:
        body = expand_node(op, node)
        if body is None:
            raise GradientError(self._explain_unknown(node))
        return body

    def _explain_unknown(self, node: NodeProto) -> str:
        where = f", which comes from {self.origin[node.name]}" if node.name in self.origin else ""
        domain = f", domain={node.domain!r}" if node.domain else ""
        broken = "".join(f"\nNot loaded: {failure}" for failure in self.table.failures)
        return (
            f"Operator {node.op_type!r} (domain {node.domain or 'ai.onnx'!r}) has no gradient rule; "
            f"node {node.name!r} -> {', '.join(node.output)}{where}. Register a rule:\n"
            "    from ortlearn.differentiation import gradient_rule\n"
            f'    @gradient_rule("{node.op_type}"{domain})\n'
            f"    def rule(op, node, grad): ...  # one name or None for each of {len(node.input)} inputs"
            f"{broken}\n{limit_address('no-rule').strip()}"
        )

    def _pull_back(self, op: Any, nodes: Any, step: _Step, needed: Any, contributions: Any) -> None:
        node = nodes[step.index]
        grads = {name: _total(op, contributions, name) for name in node.output if name in contributions}
        if not grads:
            return
        captured = sorted(captured_names(node) & needed)
        context = RuleNode(node, op, grads, needed, captured, self.backpropagate)
        first = next(iter(grads))
        op.float_dtype = op.dtype(grads[first]) or op.float_dtype
        assert step.rule is not None
        try:
            results = _as_sequence(step.rule.function(op, context, context.GO(0)), context)
        except OrtlearnError:
            raise
        except Exception as error:  # of a plugin, or of unknown or inconsistent shapes
            raise _explained(op, context, error) from error
        # Backwards, so that indices of the remaining nodes are valid.
        nodes[step.index : step.index + 1] = context.decomposition or [context.replacement or node]
        for name, grad in zip(node.input, results, strict=True):
            if grad is not None and name in needed:
                if step.rule.broadcast:
                    grad = op.unbroadcast(_typed(op, grad, first), name)
                contributions.setdefault(name, []).append(_typed(op, grad, name))
        for name, grad in context.outer_gradients.items():
            contributions.setdefault(name, []).append(_typed(op, grad, name))


def _explained(op: GradientBuilder, node: RuleNode, error: Exception) -> GradientError:
    """Return the error of a rule that failed, with the shapes that it could not handle."""
    names = [name for name in (*node.proto.input, *node.proto.output) if name]
    unknown = [name for name in names if op.shape(name) is None]
    if unknown:
        return node.unknown_shape(unknown)
    shapes = [op.shape(name) for name in node.proto.input]
    sized = all(isinstance(size, int) for shape in shapes for size in shape or ())
    if isinstance(error, IndexError | ValueError) or (isinstance(error, TypeError) and not sized):
        return node.error(f"its rule does not support inputs of the shapes {shapes} ({error})")
    return node.error(f"its rule raised {type(error).__name__}: {error}")


def _typed(op: GradientBuilder, grad: str, like: str) -> str:
    # A gradient has the type of its tensor, which is more precise if its shape is known.
    known = op.shape(like) is not None or op.type(grad) is None
    return op.with_gradient_type(grad, like) if known else grad


def _total(op: GradientBuilder, contributions: dict[str, list[str]], name: str) -> str:
    grads = contributions[name]
    if len(grads) > 1:
        total = op.Add(*grads) if len(grads) == 2 else op.Sum(*grads)
        contributions[name] = [_typed(op, total, name)]
    return contributions[name][0]


def _as_sequence(result: Any, node: RuleNode) -> list[str | None]:
    """Return the result of a rule as one gradient or None per input."""
    if result is None or isinstance(result, str):
        others = [index for index in range(1, node.n_inputs) if node.needs(index)]
        if others:
            raise node.error(
                f"its rule returned a single gradient, but input {others[0]} needs one too; "
                f"return one name or None for each of the {node.n_inputs} inputs"
            )
        return [result, *[None] * (node.n_inputs - 1)][: node.n_inputs]
    result = list(result)
    wrong = [value for value in result if value is not None and not isinstance(value, str)]
    if wrong or len(result) != node.n_inputs:
        raise node.error(
            f"its rule must return one name or None for each of the {node.n_inputs} inputs, "
            f"got {len(result)}: {result!r}"
        )
    return result


def gradient_graph(
    op: GradientBuilder,
    nodes: list[NodeProto],
    seeds: Mapping[str, str],
    wrt: Sequence[str],
    *,
    origin: Mapping[str, str] | None = None,
    straight_through: bool = False,
) -> dict[str, str]:
    """Write the gradients of tensors of a graph, or zeros if no output depends on a tensor."""
    grads = Differentiator(load_rules(), origin, straight_through).backpropagate(op, nodes, seeds, wrt)
    return {name: grads[name] if name in grads else op.constant_gradient(name) for name in wrt}
