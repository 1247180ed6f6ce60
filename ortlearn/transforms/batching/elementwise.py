"""Elementwise operators."""

from __future__ import annotations

from onnx import NodeProto

from ...graphs.nodes import copy_node
from .scope import BatchScope

__all__ = ["RULES"]

OPERATORS = (
    "Abs Acos Acosh Add And Asin Asinh Atan Atanh Cast Ceil Celu Cos Cosh Div Elu Equal Erf Exp Floor "
    "Greater GreaterOrEqual HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Less LessOrEqual Log "
    "Max Mean Min Mod Mul Neg Not Or PRelu Pow Reciprocal Relu Round Selu Sigmoid Sign Sin Sinh "
    "Softplus Softsign Sqrt Sub Sum Tan Tanh ThresholdedRelu Where Xor"
).split()


def elementwise(scope: BatchScope, node: NodeProto) -> None:
    """Write an elementwise node; operands of lower rank are broadcast after the leading axis."""
    rank = max(scope.rank(name) for name in node.input)
    scope.op.nodes.append(copy_node(node, [scope.aligned(name, rank) for name in node.input]))


def clip(scope: BatchScope, node: NodeProto) -> None:
    """Write Clip, as Max and Min if the bounds are batched, since Clip does not broadcast."""
    rank, bounds = scope.rank(node.input[0]), list(node.input[1:])
    if not any(scope.is_batched(name) for name in bounds if name):
        scope.op.nodes.append(copy_node(node))
        return
    value = scope.aligned(node.input[0], rank)
    steps = [(kind, name) for kind, name in zip(("Max", "Min"), bounds, strict=False) if name]
    for number, (kind, name) in enumerate(steps):
        outputs = node.output if number == len(steps) - 1 else None
        value = scope.op.node(kind, value, scope.aligned(name, rank), outputs=outputs)


RULES = {**{("", name): elementwise for name in OPERATORS}, ("", "Clip"): clip}
