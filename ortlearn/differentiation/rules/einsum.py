"""Gradient of Einsum."""

from __future__ import annotations

import string

import numpy as np

from ..rule_set import RuleSet

__all__ = ["RULES"]

RULES = RuleSet("einsum")


@RULES.rule("Einsum")
def einsum(op, node, grad):
    # y = einsum(a, b, ...), da = einsum(dy, b, ...) with the terms of y and a exchanged
    terms, output = _terms(node)
    return [
        _operand_gradient(op, node, grad, terms, output, index) if node.needs(index) else None
        for index in range(node.n_inputs)
    ]


def _terms(node):
    """Return the labels of every operand and of the result; an ellipsis is spelled out."""
    equation = node.attribute("equation").replace(" ", "")
    left, arrow, output = equation.partition("->")
    terms = left.split(",")
    free = [label for label in string.ascii_letters if label not in equation]
    ranks = [
        node.rank(node.I(i)) - len(term.replace("...", "")) for i, term in enumerate(terms) if "..." in term
    ]
    hidden = "".join(free[: max(ranks, default=0)])
    if not arrow:
        labels = "".join(terms).replace("...", "")
        output = "..." + "".join(sorted(label for label in set(labels) if labels.count(label) == 1))
    spelled = [_spell(term, hidden, node.rank(node.I(i))) for i, term in enumerate(terms)]
    return spelled, output.replace("...", hidden)


def _spell(term, hidden, rank):
    if "..." not in term:
        return term
    extra = rank - len(term) + 3
    return term.replace("...", hidden[len(hidden) - extra :])


def _operand_gradient(op, node, grad, terms, output, index):
    own = terms[index]
    others = [(terms[i], node.I(i)) for i in range(node.n_inputs) if i != index]
    scalar = not output
    operands = others if scalar else [(output, grad), *others]
    wanted, diagonals = _without_repeats(op, node, own, index, terms, output)
    operands += diagonals
    present = "".join(term for term, _ in operands)
    for axis, label in enumerate(own):
        if label not in present and label not in "".join(term for term, _ in diagonals):
            # The operand was summed over this axis: its gradient is constant along it.
            operands.append((label, op.fill(op.dim(node.I(index), axis), 1.0)))
            present += label
    equation = ",".join(term for term, _ in operands) + "->" + wanted
    result = op.Einsum(*(name for _, name in operands), equation=equation) if operands else grad
    if scalar and operands:
        result = op.Mul(result, grad)
    return _sum_broadcast(op, node, result, terms, wanted, own, index)


def _without_repeats(op, node, own, index, terms, output):
    """Return labels that are all different, and the identity matrices that tie those that were equal."""
    free = [c for c in string.ascii_letters if c not in "".join(terms) + output]
    wanted, ties = "", []
    for axis, label in enumerate(own):
        if label in wanted:
            fresh = free.pop()
            ties.append((label + fresh, _identity(op, node.I(index), axis)))
            label = fresh
        wanted += label
    return wanted, ties


def _identity(op, name, axis):
    shape = op.shape(name)
    if shape is not None and isinstance(shape[axis], int):
        return op.constant(np.eye(shape[axis], dtype=op.float_dtype))
    size = op.dim(name, axis)
    return op.EyeLike(op.fill(op.Concat(size, size, axis=0), 0.0))


def _sum_broadcast(op, node, result, terms, wanted, own, index):
    """Sum along the axes where the operand had length one and others more."""
    sizes: dict[str, object] = {}
    for i, term in enumerate(terms):
        for label, dim in zip(term, node.shape(node.I(i)) or (None,) * len(term), strict=True):
            if sizes.get(label, 1) == 1:
                sizes[label] = dim
    shape = [sizes[label] for label in own]
    return op.unbroadcast(op.with_type(result, node.I(index), shape), node.I(index))
