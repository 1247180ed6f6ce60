"""Rewrite nodes that onnxruntime-training's C++ builder does not differentiate correctly.

Only nodes on a gradient path are rewritten, and only for that builder. There is one file per kind of
operator; ``rule(node, op, path)`` writes the replacement with the builder ``op`` and returns True, or
returns False. :func:`..ort_limits.check_supported` checks the remaining nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from onnx import ModelProto, NodeProto

from ...graphs import GraphBuilder, node_inputs, replace_nodes, value_types
from ...graphs.view import GraphView
from . import activations, convolutions, forms, normalizations, powers, reductions, slices
from .dimension_names import drop_dimension_names
from .gradient_path import GradientPath, gradient_nodes
from .scalars import keep_scalars
from .shared_tensors import copy_repeated_inputs, separate_slices

__all__ = ["REWRITES", "rewrite_for_ort"]

Rule = Callable[[NodeProto, GraphBuilder, GradientPath], bool]

PARTS = (activations, convolutions, forms, normalizations, powers, reductions, slices)
#: Rewrites by domain and operator.
REWRITES: dict[tuple[str, str], Rule] = {
    **{("", name): rule for part in PARTS for name, rule in part.RULES.items()},
    **{("com.microsoft", name): rule for name, rule in forms.MICROSOFT_RULES.items()},
}
#: Rewrites applied after them.
LAST_REWRITES: dict[tuple[str, str], Rule] = {
    ("", name): rule
    for part in (activations, convolutions, reductions)
    for name, rule in part.LAST_RULES.items()
}


def rewrite_for_ort(model: ModelProto, outputs: Sequence[str], wrt: Sequence[str]) -> ModelProto:
    """Return the model in forms that onnxruntime-training differentiates correctly."""
    for rules in (REWRITES, LAST_REWRITES):
        model = _rewritten(model, outputs, wrt, rules)
    for finish in (separate_slices, keep_scalars, drop_dimension_names):
        model = finish(model, outputs, wrt)
    return copy_repeated_inputs(model, wrt)


def _rewritten(
    model: ModelProto, outputs: Sequence[str], wrt: Sequence[str], rules: Mapping[tuple[str, str], Rule]
) -> ModelProto:
    if not any((node.domain, node.op_type) in rules for node in model.graph.node):
        return model
    nodes = gradient_nodes(model, outputs, wrt, value_types(model))
    path = GradientPath(
        reached=set(wrt).union(*(node.output for node in nodes)),
        read=set(outputs).union(*(node_inputs(node) for node in nodes)),
        value=GraphView(model).value,
    )
    targets = {name for node in nodes for name in node.output if name}
    return replace_nodes(model, {key: _on_path(rule, path, targets) for key, rule in rules.items()})


def _on_path(rule: Rule, path: GradientPath, targets: set[str]) -> Callable[[NodeProto, GraphBuilder], bool]:
    def replace(node: NodeProto, op: GraphBuilder) -> bool:
        return not targets.isdisjoint(node.output) and rule(node, op, path)

    return replace
