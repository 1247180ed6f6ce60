"""Gradient of Einsum."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..gradient_builder import GradientBuilder
from ..rule_context import Gradients, RuleNode
from ..rule_set import RuleSet
from ..types.dimensions import broadcast_shapes
from ..types.einsum_terms import operand_labels

__all__ = ["RULES"]

RULES = RuleSet("einsum")


@RULES.rule("Einsum")
def einsum(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = einsum(a, b, ...), da = einsum(dy, b, ...) with the terms of y and a exchanged
    ranks = [node.rank(node.I(index)) for index in range(node.n_inputs)]
    terms, output = operand_labels(node.attribute("equation"), ranks)
    return [
        _operand_gradient(op, node, grad, terms, output, index) if node.needs(index) else None
        for index in range(node.n_inputs)
    ]


def _operand_gradient(
    op: GradientBuilder, node: RuleNode, grad: str, terms: list[str], output: str, index: int
) -> str:
    own = terms[index]
    shapes = [node.shape(node.I(i)) or (None,) * len(term) for i, term in enumerate(terms)]
    others = [i for i in range(node.n_inputs) if i != index]
    operands = [(terms[i], node.I(i)) for i in others]
    dims: list[tuple[str, Sequence[Any]]] = [(terms[i], shapes[i]) for i in others]
    if output:
        whole = list(zip(terms, shapes, strict=True))
        operands.insert(0, (output, grad))
        dims.append((output, [_size(whole, label) for label in output]))
    wanted, ties = _without_repeats(op, node, own, index, terms, output)
    operands += ties
    dims += [(term, [shapes[index][own.index(term[0])]] * 2) for term, _ in ties]
    for axis, label in enumerate(own):
        if not any(label in term for term, _ in operands):
            # The operand is summed over this axis: its gradient is constant along it.
            operands.append((label, op.fill(op.dim(node.I(index), axis), 1.0)))
            dims.append((label, [shapes[index][axis]]))
    sizes = [_size(dims, label) for label in wanted]

    def write(builder: GradientBuilder) -> str:
        equation = ",".join(term for term, _ in operands) + "->" + wanted
        result = builder.Einsum(*(name for _, name in operands), equation=equation) if operands else grad
        if not output and operands:
            result = builder.Mul(result, grad)
        return _like_operand(builder, node.I(index), result, shapes[index], sizes)

    read = {label: dim for term, shape in dims for label, dim in zip(term, shape, strict=True)}
    if all(isinstance(dim, int) and dim > 0 for dim in read.values()):
        return write(op)
    # Einsum of empty operands terminates the process.
    return op.unless_empty([name for _, name in operands] or [grad], node.I(index), write)


def _size(dims: Sequence[tuple[str, Sequence[Any]]], label: str) -> int | str | None:
    """Return the length to which the axes of a label broadcast, or None if it is unknown."""
    found = [(dim,) for term, shape in dims for other, dim in zip(term, shape, strict=True) if other == label]
    (size,) = broadcast_shapes(found) or (None,)
    return size


def _like_operand(
    op: GradientBuilder, operand: str, result: str, own: Sequence[Any], shape: Sequence[Any]
) -> str:
    """Broadcast a gradient along axes in which the operand is longer, and sum it if it is shorter."""
    if any(dim != 1 and _may_be_shorter(size, dim) for dim, size in zip(own, shape, strict=True)):
        result = op.Expand(result, op.shape_of(operand))
        shape = broadcast_shapes([tuple(own), tuple(shape)])
    return op.unbroadcast(op.with_type(result, operand, shape), operand)


def _without_repeats(
    op: GradientBuilder, node: RuleNode, own: str, index: int, terms: list[str], output: str
) -> tuple[str, list[tuple[str, str]]]:
    """Return unique labels, and identity matrices that replace repeated labels."""
    free = [c for c in string.ascii_letters if c not in "".join(terms) + output]
    wanted, ties = "", []
    for axis, label in enumerate(own):
        if label in wanted:
            fresh = free.pop()
            ties.append((label + fresh, _identity(op, node.I(index), axis)))
            label = fresh
        wanted += label
    return wanted, ties


def _identity(op: GradientBuilder, name: str, axis: int) -> str:
    length = (op.shape(name) or {axis: None})[axis]
    if isinstance(length, int):
        return op.constant(np.eye(length, dtype=op.float_dtype))
    size = op.dim(name, axis)
    return op.EyeLike(op.fill(op.Concat(size, size, axis=0), 0.0))


def _may_be_shorter(size: int | str | None, dim: int | str | None) -> bool:
    return size in (1, None) or (isinstance(size, str) and size != dim)
