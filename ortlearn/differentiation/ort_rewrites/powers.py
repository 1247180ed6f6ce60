"""Powers, for which the builder only has finite derivatives by the base."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from ...graphs import GraphBuilder
from .forms import is_broadcast, result_shape
from .gradient_path import GradientPath

__all__ = ["RULES"]


def power(node: NodeProto, op: GraphBuilder, path: GradientPath) -> bool:
    # derivative b a^(b-1), which is 0 inf if a = b = 0; the builder ignores gradients of the exponent
    base, exponent = node.input
    if exponent in path.reached:
        return _power_of_exponent(node, op)
    known, dtype, constant = op.type(base), op.dtype(exponent), path.value(exponent)
    whole = known is not None and dtype is not None and dtype.kind in "iu"
    wide = is_broadcast(base, node, op, path)
    zeros = known is not None and (constant is None or not np.all(constant))
    if not (whole or wide or zeros):
        return False
    shape = result_shape(node, op) if wide or zeros else ""
    base = op.Expand(base, shape) if wide or zeros else base
    if whole and known is not None:  # the builder mixes the types of the two
        exponent = op.Cast(exponent, to=known.elem_type)
    if not zeros:
        op.Pow(base, exponent, outputs=[node.output[0]])
        return True
    one = op.constant(np.array(1.0, dtype=op.dtype(node.input[0])))
    nothing = op.Equal(op.Expand(exponent, shape), op.Sub(one, one))
    value = op.Pow(op.Where(nothing, one, base), exponent)
    op.Where(nothing, one, value, outputs=[node.output[0]])
    return True


def _power_of_exponent(node: NodeProto, op: GraphBuilder) -> bool:
    """Write a power whose exponent has a gradient: exp(b log |a|), with the sign of a for odd b.

    The derivative of a power of zero is that of the base for the exponent 1, and zero otherwise. The
    derivative of a negative base by the exponent does not exist, and is NaN.
    """
    base, exponent = node.input
    dtype = op.dtype(base)
    if dtype is None or op.dtype(exponent) != dtype:
        return False
    zero, one, infinity, nan = (op.constant(np.array(v, dtype=dtype)) for v in (0.0, 1.0, np.inf, np.nan))
    shape = result_shape(node, op)
    bases, exponents = (op.Expand(name, shape) for name in node.input)
    nothing, negative = op.Equal(bases, zero), op.Less(bases, zero)
    positive = _exponential(op, op.Where(nothing, one, op.Where(negative, nan, bases)), exponents)
    size = _exponential(op, op.Where(negative, op.Neg(bases), one), exponents)
    rest = op.Abs(op.Mod(exponents, op.Add(one, one), fmod=1))
    below = op.Where(op.Equal(rest, one), op.Neg(size), op.Where(op.Equal(rest, zero), size, nan))
    constant = op.Where(op.Equal(exponents, zero), one, op.Where(op.Less(exponents, zero), infinity, zero))
    at_zero = op.Where(op.Equal(exponents, one), bases, constant)
    op.Where(nothing, at_zero, op.Where(negative, below, positive), outputs=[node.output[0]])
    return True


def _exponential(op: GraphBuilder, base: str, exponent: str) -> str:
    return op.Exp(op.Mul(exponent, op.Log(base)))


#: Rewrites by operator.
RULES = {"Pow": power}
