"""Simplification of gradient nodes."""

from __future__ import annotations

import numpy as np
import pytest

from ortlearn.differentiation.cleanup import simplify
from ortlearn.differentiation.gradient_builder import GradientBuilder
from ortlearn.graphs import TensorType
from ortlearn.graphs.nodes import needed_nodes

TYPES = {
    "x": TensorType(1, ("N", 3)),
    "w": TensorType(1, (3,)),
    "s": TensorType(1, ()),
    "d": TensorType(11, (3,)),
}


def simplified(write):
    """Return the remaining operators of the nodes that a function writes, and the name of its result."""
    op = GradientBuilder(existing_names=TYPES, types=TYPES)
    result = write(op)
    nodes, alias = simplify(op, [], op.nodes)
    result = alias.get(result, result)
    return [node.op_type for node in needed_nodes(nodes, [result])], result


@pytest.mark.parametrize(
    "write",
    [
        lambda op: op.Identity("x"),
        lambda op: op.Neg(op.Neg("x")),
        lambda op: op.Mul("x", 1.0),
        lambda op: op.Mul(1.0, "x"),
        lambda op: op.Div("x", 1.0),
        lambda op: op.Cast("x", to=1),
        lambda op: op.Transpose(op.Transpose("x", perm=[1, 0]), perm=[1, 0]),
        lambda op: op.with_type(op.Expand("x", op.Shape("x")), "x"),
        lambda op: op.with_type(op.Reshape("x", [-1, 3]), "x"),
        lambda op: op.Mul("x", op.Mul(0.5, 2.0)),
        lambda op: op.Identity(op.Neg(op.Identity(op.Neg("x")))),
    ],
)
def test_removed_nodes(write):
    assert simplified(write) == ([], "x")


@pytest.mark.parametrize(
    "write, expected",
    [
        # Equal nodes are merged.
        (lambda op: op.Div(op.Exp("x"), op.Exp("x")), ["Exp", "Div"]),
        (lambda op: op.Sub(op.Mul("x", "w"), op.Mul("w", "x")), ["Mul", "Sub"]),
        # The order of operands matters for some operators.
        (lambda op: op.Mul(op.Sub("x", "w"), op.Sub("w", "x")), ["Sub", "Sub", "Mul"]),
        # Attributes are compared.
        (lambda op: op.Sub(op.Softmax("x", axis=0), op.Softmax("x", axis=1)), ["Softmax", "Softmax", "Sub"]),
        # Random nodes are not merged.
        (
            lambda op: op.Sub(op.RandomNormalLike("x"), op.RandomNormalLike("x")),
            ["RandomNormalLike"] * 2 + ["Sub"],
        ),
        (lambda op: op.Add("x", op.Neg("w")), ["Sub"]),
        (lambda op: op.Add(op.Neg("w"), "x"), ["Sub"]),
        (lambda op: op.Sub("x", op.Neg("w")), ["Add"]),
        (lambda op: op.Reshape(op.Reshape("x", [-1]), [3, -1]), ["Reshape"]),
        (lambda op: op.Transpose(op.Transpose("x", perm=[1, 0]), perm=[0, 1]), ["Transpose"]),
        # An Expand is skipped if another operand has the shape.
        (lambda op: op.Mul(op.expand_like("s", "x"), "x"), ["Mul"]),
        (lambda op: op.Mul(op.expand_like("s", "x"), "w"), ["Shape", "Expand", "Mul"]),
        # A factor of ones that broadcasts is kept.
        (lambda op: op.Mul("w", np.ones((2, 3), np.float32)), ["Mul"]),
        (lambda op: op.Cast("d", to=1), ["Cast"]),
    ],
)
def test_simplified_nodes(write, expected):
    assert simplified(write)[0] == expected


def test_forward_nodes_are_not_computed_again():
    op = GradientBuilder(existing_names=TYPES, types=TYPES)
    op.Exp("x")
    before = list(op.nodes)
    op.nodes.clear()
    result = op.Mul(op.Exp("x"), "x")
    nodes, _ = simplify(op, before, op.nodes)
    assert [node.op_type for node in nodes] == ["Mul"] and nodes[0].input[0] == before[0].output[0]
    assert result == nodes[0].output[0]


def test_constants_are_folded_once():
    op = GradientBuilder(existing_names=TYPES, types=TYPES)
    result = op.Mul("x", op.Div(op.Neg(1.0), 4.0))
    nodes, _ = simplify(op, [], op.nodes)
    (node,) = needed_nodes(nodes, [result])
    assert op.value(node.input[1]) == np.float32(-0.25)
