"""Gradients of normalizations, and of Dropout."""

from __future__ import annotations

from ..decomposition import by_decomposition
from ..gradient_builder import GradientBuilder
from ..rule_context import Gradients, RuleNode
from ..rule_set import RuleSet

__all__ = ["RULES", "by_batch_statistics"]

RULES = RuleSet("normalization")


@RULES.rule("Dropout")
def dropout(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x m / (1 - r) with m random, zero or one, dx = dy m / (1 - r); y = x in inference mode
    training = node.constant(node.I(2))
    nothing = [None] * (node.n_inputs - 1)
    if not node.I(2) or (training is not None and not training.any()):
        return [grad, *nothing]
    ratio = op.cast_like(node.I(1) or op.constant(0.5), grad)
    kept = op.mask(node.require_output(1), grad)
    scaled = op.Div(op.Mul(grad, kept), op.Sub(1.0, ratio))
    return [scaled if training is not None else op.Where(node.I(2), scaled, grad), *nothing]


@RULES.rule("BatchNormalization")
def batch_normalization(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = s z + b with z = (x - m) / sqrt(v + e): dx = s dy / sqrt(v + e), ds = sum(z dy), db = sum(dy),
    # dm = -s db / sqrt(v + e), dv = -s ds / (2 (v + e))
    if node.attribute("training_mode", 0):
        return _training_gradient(op, node, grad)
    if any(node.proto.output[1:]):
        raise node.error("the training form of opset 9 has no gradient rule; convert it to opset 15")
    x, scale, mean, variance = (node.I(index) for index in (0, 1, 3, 4))
    axes = [axis for axis in range(node.rank(x)) if axis != 1]
    wide = list(range(1, len(axes)))
    shifted = op.Add(variance, node.attribute("epsilon", 1e-5))
    factor = op.Div(scale, op.Sqrt(shifted))
    dx = op.Mul(grad, op.unsqueeze(factor, wide)) if node.needs(0) else None
    total = op.reduce("ReduceSum", grad, axes, keepdims=0)
    ds = dm = dv = None
    if node.needs(1) or node.needs(4):
        centred = op.Mul(grad, op.Sub(x, op.unsqueeze(mean, wide)))
        centred = op.reduce("ReduceSum", op.with_type(centred, x), axes, keepdims=0)
        ds = op.Div(centred, op.Sqrt(shifted))
        dv = op.Mul(op.Div(op.Mul(ds, scale), shifted), -0.5)
    if node.needs(3):
        dm = op.Neg(op.Mul(factor, total))
    return dx, ds, total, dm, dv


def by_batch_statistics(op: GradientBuilder, node: RuleNode) -> list[str]:
    """Write a batch normalization in training mode with simpler operators."""
    # y = s (x - m) / sqrt(v + e) + b with m and v those of x; the running ones are r m0 + (1 - r) m.
    # Builds of onnxruntime without training have no kernel for this.
    x, scale, shift = (node.input_name(i) for i in range(3))
    axes = [axis for axis in range(node.rank(x)) if axis != 1]
    wide, momentum = list(range(1, len(axes))), node.attribute("momentum", 0.9)
    mean = op.reduce("ReduceMean", x, axes)
    centred = op.Sub(x, mean)
    variance = op.reduce("ReduceMean", op.square(centred), axes)
    divisor = op.Sqrt(op.Add(variance, node.attribute("epsilon", 1e-5)))
    z = op.Div(centred, divisor)
    y = op.Add(op.Mul(z, op.unsqueeze(scale, wide)), op.unsqueeze(shift, wide))
    running = [
        op.Add(
            op.Mul(node.input_name(i), momentum),
            op.cast_like(op.Mul(op.Squeeze(new, axes), 1 - momentum), node.input_name(i)),
        )
        for i, new in ((3, mean), (4, variance))
    ]
    return [y, *running][: node.n_outputs]


_training_gradient = by_decomposition(by_batch_statistics)


def _normalized(op: GradientBuilder, x: str, axes: list[int], epsilon: float) -> tuple[str, str]:
    """Return (x - mean) / sqrt(variance + epsilon), and the divisor."""
    centred = op.Sub(x, op.reduce("ReduceMean", x, axes))
    variance = op.reduce("ReduceMean", op.square(op.with_type(centred, x)), axes)
    divisor = op.Sqrt(op.Add(variance, epsilon))
    return op.Div(centred, divisor), divisor


def _normalization_gradient(op: GradientBuilder, z: str, divisor: str, grad: str, axes: list[int]) -> str:
    """Return the gradient of x from that of z, its normalized value along axes."""
    # dx = (dz - mean(dz) - z mean(z dz)) / divisor
    mean = op.reduce("ReduceMean", grad, axes)
    slope = op.reduce("ReduceMean", op.with_type(op.Mul(z, grad), grad), axes)
    return op.Div(op.Sub(op.Sub(grad, mean), op.Mul(z, slope)), divisor)


@RULES.rule("LayerNormalization")
def layer_normalization(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = s z + b with z = (x - mean(x)) / sqrt(var(x) + e)
    x, scale = node.I(0), node.I(1)
    rank = node.rank(x)
    axes = list(range(node.attribute("axis", -1) % rank, rank))
    z, divisor = _normalized(op, x, axes, node.attribute("epsilon", 1e-5))
    op.with_type(z, x)
    dx = _statistics_gradient(op, node, z, divisor, axes)
    ds = db = None
    if grad is not None:
        inner = op.with_type(op.Mul(grad, scale), x)
        own = _normalization_gradient(op, z, divisor, inner, axes) if node.needs(0) else None
        dx = own if dx is None or own is None else op.Add(own, dx)
        ds = op.unbroadcast(op.with_type(op.Mul(grad, z), x), scale) if node.needs(1) else None
        db = op.unbroadcast(grad, node.I(2)) if node.needs(2) else None
    return [dx, ds, db][: node.n_inputs]


def _statistics_gradient(
    op: GradientBuilder, node: RuleNode, z: str, divisor: str, axes: list[int]
) -> str | None:
    """Return the part of the gradient from the outputs Mean and InvStdDev, or None."""
    x, total = node.I(0), None
    mean, inverse = node.GO(1), node.GO(2)
    if mean is None and inverse is None:
        return None
    count = op.size_along(x, axes, op.float_dtype)
    if mean is not None:
        # dx = dm / n
        total = op.expand_like(op.Div(op.cast_like(mean, x), count), x)
    if inverse is not None:
        # i = 1 / divisor, dx = -z di / (n divisor^2)
        part = op.Div(op.cast_like(inverse, x), op.Mul(op.square(divisor), count))
        part = op.Neg(op.Mul(z, part))
        total = part if total is None else op.Add(total, part)
    return total


@RULES.rule("InstanceNormalization")
def instance_normalization(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = s z + b with z = (x - mean(x)) / sqrt(var(x) + e), mean and variance over space
    x, scale = node.I(0), node.I(1)
    rank = node.rank(x)
    space, batch = list(range(2, rank)), [0, *range(2, rank)]
    z, divisor = _normalized(op, x, space, node.attribute("epsilon", 1e-5))
    dx = ds = None
    if node.needs(0):
        inner = op.with_type(op.Mul(grad, op.unsqueeze(scale, list(range(1, rank - 1)))), x)
        dx = _normalization_gradient(op, z, divisor, inner, space)
    if node.needs(1):
        ds = op.reduce("ReduceSum", op.with_type(op.Mul(grad, z), x), batch, keepdims=0)
    return dx, ds, op.reduce("ReduceSum", grad, batch, keepdims=0) if node.needs(2) else None


@RULES.rule("LpNormalization")
def lp_normalization(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = x / n with n the norm of x, dx = (dy - n' sum(y dy)) / n with n' = sign(x), or y for the second norm
    axis, order = node.attribute("axis", -1), node.attribute("p", 2)
    return norm_gradient(op, node, grad, [axis], "ReduceL1" if order == 1 else "ReduceL2")


def norm_gradient(op: GradientBuilder, node: RuleNode, grad: str, axes: list[int], norm: str) -> str:
    """Return the gradient of x / norm(x), with the norm a reduction; rows of zeros have gradient zero."""
    x, y = node.I(0), op.cast_like(node.O(0), grad)
    size = op.reduce(norm, x, axes)
    nothing = op.Equal(size, 0.0)
    weighted = op.reduce("ReduceSum", op.with_type(op.Mul(y, grad), x), axes)
    slope = op.Sign(x) if norm == "ReduceL1" else y
    quotient = op.Div(op.Sub(grad, op.Mul(slope, weighted)), op.Where(nothing, 1.0, size))
    return op.Where(nothing, 0.0, quotient)


@RULES.rule("LRN")
@by_decomposition
def lrn(op: GradientBuilder, node: RuleNode) -> str:
    # y = x / (k + alpha / n (sum of x^2 over n channels around))^beta
    x, size, rank = node.input_name(0), node.attribute("size"), node.rank(node.input_name(0))
    pads = [0] * (2 * rank)
    pads[1], pads[rank + 1] = (size - 1) // 2, size // 2
    squares = op.Pad(op.square(x), pads)
    channels = op.dim(x, 1)
    parts = [op.Slice(squares, [i], op.Add(channels, i), [1]) for i in range(size)]
    total = op.Mul(op.Sum(*parts), node.attribute("alpha", 1e-4) / size)
    return op.Div(x, op.Pow(op.Add(total, node.attribute("bias", 1.0)), node.attribute("beta", 0.75)))
