"""Gradients of elementwise arithmetic, with broadcasting."""

from __future__ import annotations

from functools import reduce

import numpy as np
from onnx import TensorProto

from ..gradient_builder import GradientBuilder
from ..rule_context import Gradients, RuleNode
from ..rule_set import RuleSet

__all__ = ["RULES"]

RULES = RuleSet("arithmetic")


@RULES.rule("Add", "Sum", broadcast=True)
def add(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = a + b + ..., da = db = ... = dy
    return [grad] * node.n_inputs


@RULES.rule("Sub", broadcast=True)
def sub(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = a - b, da = dy, db = -dy
    return grad, op.Neg(grad) if node.needs(1) else None


@RULES.rule("Mul", broadcast=True)
def mul(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = a b, da = b dy, db = a dy
    a, b = node.I(0), node.I(1)
    return op.Mul(grad, b) if node.needs(0) else None, op.Mul(grad, a) if node.needs(1) else None


@RULES.rule("Div", broadcast=True)
def div(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = a / b, da = dy / b, db = -y dy / b
    scaled = op.Div(grad, node.I(1))
    return scaled, op.Neg(op.Mul(scaled, node.O(0))) if node.needs(1) else None


@RULES.rule("Neg")
def neg(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = -x, dx = -dy
    return op.Neg(grad)


@RULES.rule("Abs")
def abs_(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = |x|, dx = sign(x) dy
    return op.Mul(grad, op.Sign(node.I(0)))


@RULES.rule("Exp")
def exp(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = exp(x), dx = y dy
    return op.Mul(grad, node.O(0))


@RULES.rule("Log")
def log(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = log(x), dx = dy / x
    return op.Div(grad, node.I(0))


@RULES.rule("Sqrt")
def sqrt(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = sqrt(x), dx = dy / (2 y)
    return op.Div(grad, op.Add(node.O(0), node.O(0)))


@RULES.rule("Reciprocal")
def reciprocal(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = 1 / x, dx = -y^2 dy
    return op.Neg(op.Mul(grad, op.square(node.O(0))))


@RULES.rule("Pow", broadcast=True)
def power(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = a^b, da = b a^(b-1) dy, db = log(a) y dy
    return (
        _power_base(op, node, grad) if node.needs(0) else None,
        _power_exponent(op, node, grad) if node.needs(1) else None,
    )


def _power_base(op: GradientBuilder, node: RuleNode, grad: str) -> str:
    base = node.I(0)
    known = node.constant(node.I(1))
    if known is not None and known.size == 1:
        value = float(known.reshape(()))
        if value == 0:
            return op.Mul(grad, 0.0)
        if value == 1:
            return grad
        if value == 2:
            return op.Mul(grad, op.Add(base, base))
        slope = op.square(base) if value == 3 else op.Pow(base, _like(op, base, value - 1))
        return op.Mul(grad, op.Mul(slope, _like(op, base, value)))
    exponent = op.cast_like(node.I(1), base)
    # With exponent zero the derivative is zero, even for base zero.
    lowered = op.Sub(exponent, op.mask(op.Not(op.Equal(exponent, _like(op, base, 0.0))), base))
    return op.Mul(grad, op.Mul(exponent, op.Pow(base, lowered)))


def _power_exponent(op: GradientBuilder, node: RuleNode, grad: str) -> str:
    base = node.I(0)
    # For base zero the derivative is zero: log(1) replaces log(0).
    safe = op.Where(op.Equal(base, _like(op, base, 0.0)), _like(op, base, 1.0), base)
    return op.cast_like(op.Mul(grad, op.Mul(node.O(0), op.Log(safe))), node.I(1))


def _like(op: GradientBuilder, name: str, value: float) -> str:
    return op.constant(np.array(value, dtype=op.dtype(name) or op.float_dtype))


@RULES.rule("Mean", broadcast=True)
def mean(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = (a + b + ...) / n, da = db = ... = dy / n
    return [op.Div(grad, float(node.n_inputs))] * node.n_inputs


@RULES.rule("Max", "Min", broadcast=True)
def extremum(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = max(a, b, ...), da = dy / n where a is one of the n that equal y, else 0
    if node.n_inputs == 1:
        return [grad]
    chosen = [op.mask(op.Equal(node.I(index), node.O(0)), grad) for index in range(node.n_inputs)]
    share = op.Div(grad, reduce(op.Add, chosen))
    return [op.Mul(share, mask) if node.needs(index) else None for index, mask in enumerate(chosen)]


@RULES.rule("Clip")
def clip(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = min(max(x, low), high), dx = dy where y = x, dlow = sum of dy where x < low, dhigh where x > high
    x, low, high = node.I(0), node.I(1), node.I(2)
    inside = op.Equal(x, node.O(0))
    outside = [op.Less(x, low) if node.needs(1) else None, op.Greater(x, high) if node.needs(2) else None]
    if low and high and not _ordered(node, low, high):
        # y = high if low > high
        crossed = op.Greater(low, high)
        inside = op.And(inside, op.Not(crossed))
        if node.needs(1):
            outside[0] = op.And(outside[0], op.Not(crossed))
        if node.needs(2):
            outside[1] = op.Or(outside[1], crossed)
    bounds = [
        op.unbroadcast(op.with_type(op.Mul(grad, op.mask(where, grad)), x), node.I(index)) if where else None
        for index, where in enumerate(outside, start=1)
    ]
    return [op.Mul(grad, op.mask(inside, grad)), *bounds][: node.n_inputs]


def _ordered(node: RuleNode, low: str, high: str) -> bool:
    """Return whether two bounds are constants in ascending order."""
    values = node.constant(low), node.constant(high)
    return all(value is not None and value.size == 1 for value in values) and bool(values[0] <= values[1])


@RULES.rule("Where", broadcast=True)
def where(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = c ? a : b, da = c ? dy : 0, db = c ? 0 : dy
    condition = node.I(0)
    return (
        None,
        op.Where(condition, grad, 0.0) if node.needs(1) else None,
        op.Where(condition, 0.0, grad) if node.needs(2) else None,
    )


@RULES.rule("Mod", broadcast=True)
def mod(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = a - b trunc(a / b), da = dy, db = -trunc(a / b) dy; from opset 28 on floor without fmod
    if not node.needs(1):
        return grad, None
    quotient = op.Div(node.I(0), node.I(1))
    if not node.attribute("fmod", 0):
        return grad, op.Neg(op.Mul(grad, op.Floor(quotient)))
    truncated = op.Mul(op.Sign(quotient), op.Floor(op.Abs(quotient)))
    return grad, op.Neg(op.Mul(grad, truncated))


@RULES.rule("Identity")
def identity(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x, dx = dy
    return grad


@RULES.rule("Cast", "CastLike")
def cast(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x in another type, dx = dy in the type of x
    return [op.cast_like(grad, node.I(0)), None][: node.n_inputs]


#: Ranges of the quantised types.
_RANGES = {
    **{getattr(TensorProto, f"INT{bits}"): (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (4, 8, 16)},
    **{getattr(TensorProto, f"UINT{bits}"): (0, 2**bits - 1) for bits in (4, 8, 16)},
    TensorProto.FLOAT8E4M3FN: (-448, 448),
    TensorProto.FLOAT8E4M3FNUZ: (-240, 240),
    TensorProto.FLOAT8E5M2: (-57344, 57344),
    TensorProto.FLOAT8E5M2FNUZ: (-57344, 57344),
}


@RULES.rule("QuantizeLinear")
def quantize_linear(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x / s + z, rounded and clipped: within the range dx = dy / s, ds = -x dy / s^2, dz = dy
    x = node.I(0)
    scale, zero = _along_axis(op, node)
    ratio = op.Div(x, scale)
    low, high = _RANGES[op.elem_type(node.proto.output[0]) or TensorProto.UINT8]
    level = op.Add(op.Round(ratio), zero) if zero else op.Round(ratio)
    inside = op.Not(op.Or(op.Less(level, float(low)), op.Greater(level, float(high))))
    grad = op.with_gradient_type(op.Mul(grad, op.mask(inside, grad)), node.proto.output[0])
    dx = op.Div(grad, scale)
    ds = op.Neg(op.Mul(dx, ratio)) if node.needs(1) else None
    return [dx, *_quantisation_gradients(op, node, ds, grad)][: node.n_inputs]


@RULES.rule("DequantizeLinear")
def dequantize_linear(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = (x - z) s, dx = s dy, ds = sum of (x - z) dy, dz = -s dy
    x = _floats(op, node.I(0), grad)
    scale, zero = _along_axis(op, node)
    dx = op.with_gradient_type(op.Mul(grad, scale), node.proto.output[0])
    ds = op.Mul(op.Sub(x, op.cast_like(zero, grad)) if zero else x, grad) if node.needs(1) else None
    return [dx, *_quantisation_gradients(op, node, ds, op.Neg(dx))][: node.n_inputs]


def _along_axis(op: GradientBuilder, node: RuleNode) -> list[str] | None:
    """Return scale and zero point in shapes that broadcast to that of the tensor."""
    if node.attribute("block_size", 0):
        raise node.error("block_size has no gradient rule")
    after = node.rank(node.I(0)) - 1 - node.attribute("axis", 1) % max(node.rank(node.I(0)), 1)
    zero = _floats(op, node.I(2), node.I(1)) if node.I(2) else ""
    return [
        op.unsqueeze(name, list(range(1, 1 + after))) if name and op.rank(name) != 0 else name
        for name in (node.I(1), zero)
    ]


def _floats(op: GradientBuilder, name: str, like: str) -> str:
    """Return a tensor in the type of another one."""
    if op.elem_type(name) not in (TensorProto.INT4, TensorProto.UINT4):
        return op.cast_like(name, like)
    # onnxruntime 1.19 has no Cast of these types.
    return op.cast_like(op.with_type(op.DequantizeLinear(name, 1.0), like, op.shape(name)), like)


def _quantisation_gradients(op: GradientBuilder, node: RuleNode, ds: str | None, dz: str) -> list[str | None]:
    """Return the gradients of scale and zero point from those in the shape of the tensor."""
    wide = _along_axis(op, node)
    return [
        op.reshape_like(op.unbroadcast(op.with_gradient_type(grad, node.input_name(0)), like), node.I(index))
        if node.needs(index)
        else None
        for index, grad, like in ((1, ds, wide[0]), (2, dz, wide[1]))
    ]
