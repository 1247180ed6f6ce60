"""Forward and backward graphs as two models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from onnx import ModelProto, NodeProto

from ..graphs import make_value_info, node_inputs, value_types
from ..graphs.nodes import needed_nodes
from .differentiated_model import DifferentiatedModel, differentiate, make_model_of

__all__ = ["SplitModels", "split_gradient_model"]

#: Operators that are cheaper to compute again than to save.
_CHEAP = set(
    "Abs Add And Cast CastLike Concat Constant ConstantOfShape Div Equal Expand Flatten Gather Greater "
    "GreaterOrEqual Identity Less LessOrEqual Max Min Mul Neg Not Or Reciprocal Relu Reshape Shape Sign Size "
    "Slice Sqrt Squeeze Sub Transpose Unsqueeze Where".split()
)


class SplitModels(NamedTuple):
    """A model and its gradient, which run one after the other.

    ``forward`` computes the tensors ``saved`` after its own outputs. ``backward`` reads the required inputs,
    these tensors and ``o_grad`` of each output o, and computes ``w_grad`` of each differentiated tensor w.
    """

    forward: ModelProto
    backward: ModelProto
    saved: list[str]


def split_gradient_model(
    model: ModelProto,
    wrt: Sequence[str],
    *,
    origin: Mapping[str, str] | None = None,
    straight_through: bool = False,
) -> SplitModels:
    """Return a model whose outputs include the tensors saved for its gradient, and the gradient model.

    Tensors that are cheap to compute from others are computed again; inputs and initializers are not saved.
    Initializers that the gradient reads are in both models.
    """
    found = differentiate(model, None, wrt, origin=origin, straight_through=straight_through)
    names, backward = found.name_gradients()
    early, late = _split_nodes(found, backward)
    saved, recomputed = _choose_saved(found, early, late, list(names.values()))
    late = needed_nodes([*recomputed, *late], list(names.values()))
    outputs = [value.name for value in model.graph.output]
    extra = [name for name in saved if name not in outputs]
    first = needed_nodes(early, [*outputs, *extra])
    infos = [make_value_info(name, found.op.type(name)) for name in extra]
    forward = make_model_of(model, found.op, first, model.graph.input, [*model.graph.output, *infos])
    read = set().union(*(node_inputs(node) for node in late)) | set(names.values())
    inputs = [value for value in model.graph.input if value.name in read]
    types = value_types(forward)  # onnxruntime needs at least the element types of saved tensors
    inputs += [make_value_info(name, found.op.type(name) or types.get(name)) for name in saved]
    inputs += found.grad_input_infos()
    results = [make_value_info(name, found.op.type(weight)) for weight, name in names.items()]
    return SplitModels(forward, make_model_of(model, found.op, late, inputs, results), saved)


def _split_nodes(
    found: DifferentiatedModel, backward: list[NodeProto]
) -> tuple[list[NodeProto], list[NodeProto]]:
    """Return the nodes that can run before the gradients of the outputs are known, and the others."""
    waiting = set(found.seed_inputs)
    early, late = list(found.forward), []
    for node in backward:
        if waiting.isdisjoint(node_inputs(node)):
            early.append(node)
        else:
            waiting.update(node.output)
            late.append(node)
    return early, late


def _choose_saved(
    found: DifferentiatedModel, early: list[NodeProto], late: list[NodeProto], outputs: list[str]
) -> Any:
    """Return the tensors to save, and the nodes to compute again."""
    producers = {name: node for node in early for name in node.output if name}
    # Outputs of the model are available anyway.
    free = {value.name for value in found.model.graph.output}
    read = set().union(*(node_inputs(node) for node in late)) | set(outputs)
    wanted = [name for name in producers if name in read]
    # Nodes of the gradient run once in either model.
    costly = {id(node) for node in found.forward if node.op_type not in _CHEAP or node.domain}
    saved = {name for name in wanted if id(producers[name]) in costly}
    for name in wanted:
        if not _reachable(name, producers, costly, saved | free):
            saved.add(name)
    needed, recomputed = set(wanted), []
    for node in reversed(early):
        remade = needed.intersection(node.output) - saved - free
        if remade:
            recomputed.append(node)
            needed |= node_inputs(node)
    order = {name: index for index, name in enumerate(producers)}
    return sorted(needed & (saved | free), key=order.__getitem__), recomputed[::-1]


def _reachable(name: str, producers: Mapping[str, NodeProto], costly: set[int], saved: set[str]) -> bool:
    """Return whether a tensor can be computed from saved ones without costly nodes."""
    pending, visited = [name], set()
    while pending:
        current = pending.pop()
        if current in saved or current not in producers or current in visited:
            continue
        visited.add(current)
        if id(producers[current]) in costly:
            return False
        pending.extend(node_inputs(producers[current]))
    return True
