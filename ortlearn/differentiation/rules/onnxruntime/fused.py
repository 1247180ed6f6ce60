"""Fused operators of onnxruntime, decomposed: variants of Gelu, normalizations, activations."""

from __future__ import annotations

import math
from typing import Any

from ...decomposition import by_decomposition
from ...gradient_builder import GradientBuilder
from ...rule_context import RuleNode
from ...rule_set import RuleSet

__all__ = ["RULES"]

RULES = RuleSet("fused")

_MS = "com.microsoft"


def _gelu(op: GradientBuilder, x: str) -> str:
    # x (1 + erf(x / sqrt(2))) / 2
    return op.Mul(op.Mul(x, 0.5), op.Add(op.Erf(op.Mul(x, math.sqrt(0.5))), 1.0))


def _fast_gelu(op: GradientBuilder, x: str) -> str:
    # x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
    cube = op.Mul(op.Mul(op.Mul(x, x), x), 0.044715)
    return op.Mul(op.Mul(x, 0.5), op.Add(op.Tanh(op.Mul(op.Add(x, cube), math.sqrt(2 / math.pi))), 1.0))


@RULES.rule("BiasGelu", domain=_MS)
@by_decomposition
def bias_gelu(op: GradientBuilder, node: RuleNode) -> str:
    # y = gelu(x + b)
    return _gelu(op, op.Add(node.input_name(0), node.input_name(1)))


@RULES.rule("FastGelu", domain=_MS)
@by_decomposition
def fast_gelu(op: GradientBuilder, node: RuleNode) -> str:
    # y = gelu(x + b), by tanh
    x, bias = node.input_name(0), node.input_name(1)
    return _fast_gelu(op, op.Add(x, bias) if bias else x)


@RULES.rule("QuickGelu", domain=_MS)
@by_decomposition
def quick_gelu(op: GradientBuilder, node: RuleNode) -> str:
    # y = x sigmoid(alpha x)
    x = node.input_name(0)
    return op.Mul(x, op.Sigmoid(op.Mul(x, node.attribute("alpha", 1.702))))


@RULES.rule("BiasSplitGelu", domain=_MS)
@by_decomposition
def bias_split_gelu(op: GradientBuilder, node: RuleNode) -> str:
    # a, b = x + bias, y = a gelu(b)
    total = op.Add(node.input_name(0), node.input_name(1))
    shape = node.shape(node.input_name(1))
    if not shape or not isinstance(shape[0], int):
        raise node.error("the number of columns must be known")
    a, b = op.Split(total, [shape[0] // 2] * 2, axis=-1, n_outputs=2)
    return op.Mul(a, _gelu(op, b))


@RULES.rule("BiasAdd", domain=_MS)
@by_decomposition
def bias_add(op: GradientBuilder, node: RuleNode) -> str:
    # y = x + b + s
    return op.Add(op.Add(node.input_name(0), node.input_name(1)), node.input_name(2))


@RULES.rule("BiasSoftmax", domain=_MS)
@by_decomposition
def bias_softmax(op: GradientBuilder, node: RuleNode) -> str:
    # y = softmax(x + b) over the axes from axis on
    x, bias = node.input_name(0), node.input_name(1)
    rank = node.rank(x)
    axis = node.attribute("axis", 1) % rank
    if axis != rank - 1 or not node.attribute("is_inner_broadcast", 1):
        raise node.error("only is_inner_broadcast=1 with the last axis has a gradient rule")
    return op.Softmax(op.Add(x, bias), axis=-1)


def _rms(op: GradientBuilder, x: str, scale: float | str, epsilon: float, axes: list[int]) -> tuple[str, str]:
    """Write x / sqrt(mean(x^2) + e) s, and the inverse of the root."""
    inverse = op.Reciprocal(op.Sqrt(op.Add(op.reduce("ReduceMean", op.Mul(x, x), axes), epsilon)))
    return op.Mul(op.Mul(x, inverse), scale), inverse


def _layer_norm(op: GradientBuilder, x: str, scale: str, shift: str, epsilon: float) -> str:
    """Write (x - mean(x)) / sqrt(var(x) + e) s + b over the last axis."""
    centred = op.Sub(x, op.reduce("ReduceMean", x, [-1]))
    y, _ = _rms(op, centred, scale, epsilon, [-1])
    return op.Add(y, shift) if shift else y


def _skip(op: GradientBuilder, node: RuleNode, bias: int) -> str:
    total = op.Add(node.input_name(0), node.input_name(1))
    return op.Add(total, node.input_name(bias)) if node.input_name(bias) else total


@RULES.rule("SkipLayerNormalization", domain=_MS)
@by_decomposition
def skip_layer_normalization(op: GradientBuilder, node: RuleNode) -> tuple[str, str, str, str]:
    # t = x + skip + b, y = LayerNormalization(t)
    total = _skip(op, node, 4)
    scale, shift = node.input_name(2), node.input_name(3)
    return _layer_norm(op, total, scale, shift, node.attribute("epsilon", 1e-12)), "", "", total


@RULES.rule("SkipSimplifiedLayerNormalization", domain=_MS)
@by_decomposition
def skip_simplified_layer_normalization(op: GradientBuilder, node: RuleNode) -> tuple[str, str, str, str]:
    # t = x + skip + b, y = t / sqrt(mean(t^2) + e) s
    total = _skip(op, node, 3)
    return _rms(op, total, node.input_name(2), node.attribute("epsilon", 1e-12), [-1])[0], "", "", total


@RULES.rule("SimplifiedLayerNormalization")
@by_decomposition
def simplified_layer_normalization(op: GradientBuilder, node: RuleNode) -> tuple[str, str]:
    # y = x / sqrt(mean(x^2) + e) s; onnxruntime has it in the default domain
    x = node.input_name(0)
    rank = node.rank(x)
    axes = list(range(node.attribute("axis", -1) % rank, rank))
    return _rms(op, x, node.input_name(1), node.attribute("epsilon", 1e-5), axes)


@RULES.rule("EmbedLayerNormalization", domain=_MS)
@by_decomposition
def embed_layer_normalization(op: GradientBuilder, node: RuleNode) -> list[str]:
    # t = word + position + segment, rows of three tables; y = LayerNormalization(t)
    words, segments, word_table, position_table, segment_table = (node.input_name(i) for i in range(5))
    positions = node.input_name(8)
    rows = op.Gather(word_table, words, axis=0)
    if positions:
        total = op.Add(rows, op.Gather(position_table, positions, axis=0))
    else:
        steps = op.Slice(op.Shape(words), [1], [2])
        total = op.Add(rows, op.Slice(position_table, [0], steps, [0]))
    if segments:
        total = op.Add(total, op.Gather(segment_table, segments, axis=0))
    y = _layer_norm(op, total, node.input_name(5), node.input_name(6), node.attribute("epsilon", 1e-12))
    return [y, "", total][: max(1, node.n_outputs)]


_CONV = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
_ACTIVATIONS = {
    "Relu": lambda op, x, p: op.Relu(x),
    "Tanh": lambda op, x, p: op.Tanh(x),
    "Sigmoid": lambda op, x, p: op.Sigmoid(x),
    "LeakyRelu": lambda op, x, p: op.LeakyRelu(x, alpha=p[0] if p else None),
    "Clip": lambda op, x, p: op.Clip(x, *p),
    "HardSigmoid": lambda op, x, p: op.HardSigmoid(x, alpha=p[0], beta=p[1]),
    "Gelu": lambda op, x, p: _gelu(op, x),
}


def _activate(op: GradientBuilder, node: RuleNode, x: str, name: str, parameters: list[Any] | None) -> str:
    if not name:
        return x
    if name not in _ACTIVATIONS:
        raise node.error(f"its activation {name!r} has no gradient rule")
    return _ACTIVATIONS[name](op, x, list(parameters or ()))


@RULES.rule("FusedConv", domain=_MS)
@by_decomposition
def fused_conv(op: GradientBuilder, node: RuleNode) -> str:
    # y = activation(Conv(x, w, b) + z)
    x, weight, bias, added = (node.input_name(i) for i in range(4))
    y = op.Conv(x, weight, bias, **{name: node.attribute(name) for name in _CONV})
    y = op.Add(y, added) if added else y
    return _activate(op, node, y, node.attribute("activation", ""), node.attribute("activation_params"))


@RULES.rule("FusedGemm", domain=_MS)
@by_decomposition
def fused_gemm(op: GradientBuilder, node: RuleNode) -> str:
    # y = activation(alpha A @ B + beta c)
    options = {name: node.attribute(name) for name in ("alpha", "beta", "transA", "transB")}
    y = op.Gemm(*(node.input_name(i) for i in range(3)), **options)
    names = [f"activation_{name}" for name in ("alpha", "beta", "gamma")]
    parameters = [value for name in names if (value := node.attribute(name)) is not None]
    return _activate(op, node, y, node.attribute("activation", ""), parameters)


@RULES.rule("GemmFastGelu", domain=_MS)
@by_decomposition
def gemm_fast_gelu(op: GradientBuilder, node: RuleNode) -> str:
    # y = gelu(x @ w + b), by tanh
    y = op.MatMul(node.input_name(0), node.input_name(1))
    return _fast_gelu(op, op.Add(y, node.input_name(2)) if node.input_name(2) else y)


@RULES.rule("GroupNorm", domain=_MS)
@by_decomposition
def group_norm(op: GradientBuilder, node: RuleNode) -> str:
    # y = activation(z s + b) with z normalized over groups of channels
    x, scale, shift = (node.input_name(i) for i in range(3))
    rank, groups = node.rank(x), node.attribute("groups")
    last = bool(node.attribute("channels_last", 1))
    first = op.Transpose(x, perm=[0, rank - 1, *range(1, rank - 1)]) if last else x
    flat = op.Reshape(first, [0, groups, -1])
    centred = op.Sub(flat, op.reduce("ReduceMean", flat, [2]))
    z, _ = _rms(op, centred, 1.0, node.attribute("epsilon", 1e-5), [2])
    z = op.Reshape(z, op.Shape(first))
    wide = list(range(1, rank - 1))
    y = op.Add(op.Mul(z, op.Unsqueeze(scale, wide)), op.Unsqueeze(shift, wide))
    y = op.Mul(y, op.Sigmoid(y)) if node.attribute("activation", 0) else y
    return op.Transpose(y, perm=[0, *range(2, rank), 1]) if last else y


@RULES.rule("Trilu", domain=_MS)
@by_decomposition
def trilu(op: GradientBuilder, node: RuleNode) -> str:
    # y = x with a triangle set to zero
    return op.Trilu(node.input_name(0), node.input_name(1), upper=node.attribute("upper", 1))


@RULES.rule("Pad", domain=_MS)
@by_decomposition
def pad(op: GradientBuilder, node: RuleNode) -> str:
    # y = x with a border
    return op.Pad(*(node.input_name(i) for i in range(3)), mode=node.attribute("mode"))
