"""The tensors that a gradient reaches, and the operators that stop it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import ModelProto, NodeProto, defs

from ..exceptions import GradientError
from ..graphs import node_inputs, subgraphs
from .registry import NO_GRADIENT, load_rules
from .rounding import INTEGER_INPUTS
from .rule_set import normalize_domain

__all__ = ["gradient_reach", "require_gradients"]


def gradient_reach(model: ModelProto, loss: str) -> tuple[set[str], list[NodeProto]]:
    """Return the tensors that a gradient reaches, and the nodes that block it, in graph order.

    Operators without a known rule count as differentiable.
    """
    table = load_rules()
    made = {name for node in model.graph.node if node.op_type != "Constant" for name in node.output}
    needed = {loss}
    blockers = []
    for node in reversed(model.graph.node):
        if needed.isdisjoint(node.output):
            continue
        if table.find(node.domain, node.op_type) == NO_GRADIENT:
            blockers.append(node)
        else:
            positions = _positions(node)
            if not positions.isdisjoint(made):
                blockers.append(node)
            needed |= node_inputs(node) - positions
    return needed, blockers[::-1]


def _positions(node: NodeProto) -> set[str]:
    """Return the inputs of a node that are integers by its specification, such as indices and labels."""
    domain = normalize_domain(node.domain)
    if node.op_type in INTEGER_INPUTS or not defs.has(node.op_type, domain) or any(subgraphs(node)):
        return set()
    schema = defs.get_schema(node.op_type, domain=domain)
    if node.op_type == "OneHot":  # float indices are rounded
        return set(node.input[:2])
    formal = [schema.inputs[min(i, len(schema.inputs) - 1)] for i in range(len(node.input))]
    whole = [all("int" in kind for kind in parameter.types) for parameter in formal]
    values = {name for name, integer in zip(node.input, whole, strict=True) if not integer}
    return set(node.input) - values


def require_gradients(
    model: ModelProto,
    loss: str,
    wrt: Sequence[str],
    origin: str | None = None,
    names: Mapping[str, str] | None = None,
    score: str | None = None,
) -> None:
    """Raise an error if a loss depends on a tensor only through operators without a gradient.

    Its gradient would be zero everywhere: training would silently not change it.
    """
    needed, blockers = gradient_reach(model, loss)
    missing = [(names or {}).get(name, name) for name in wrt if name not in needed]
    operators = ", ".join(f"{node.op_type} (node {node.name!r})" for node in blockers) or "nothing"
    if score is not None and score not in needed:
        raise GradientError(
            f"The loss has no gradient: it depends on the predictions only through {operators}, declared "
            "without gradient. Write the loss with differentiable operators. ortlearn.testing.check_loss "
            "tests a loss before it is used."
        )
    if not missing:
        return
    where = f" of {origin}" if origin else ""
    raise GradientError(
        f"The weights {missing}{where} have no gradient: the loss depends on them only through {operators}, "
        "declared without gradient. Remove them from weights_to_train."
    )
