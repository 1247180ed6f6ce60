"""Attention and rotary embeddings of onnxruntime's domain, decomposed into standard operators."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from ...decomposition import by_decomposition
from ...gradient_builder import GradientBuilder
from ...rule_context import RuleNode
from ...rule_set import RuleSet

__all__ = ["RULES"]

RULES = RuleSet("attention")

_MS = "com.microsoft"


class _Heads:
    """Reshape between (batch, steps, heads * size) and (batch, heads, steps, size)."""

    def __init__(self, op: GradientBuilder, node: RuleNode, count: int, size: int = -1) -> None:
        self.op, self.node, self.count, self.size = op, node, count, size

    def split(self, name: str) -> str:
        """Return a tensor of rank 3 with its heads on a separate axis."""
        apart = self.op.Reshape(name, [0, 0, self.count, self.size])
        return self.op.Transpose(apart, perm=[0, 2, 1, 3])

    def add(self, name: str, bias: str) -> str:
        """Add a vector for all heads to a tensor of rank 3 or 4."""
        if self.node.rank(name) == 4:
            bias = self.op.Transpose(self.op.Reshape(bias, [1, 1, self.count, -1]), perm=[0, 2, 1, 3])
        return self.op.Add(name, bias)

    def join(self, name: str) -> str:
        """Return a tensor of rank 4 with its heads joined."""
        return self.op.Reshape(self.op.Transpose(name, perm=[0, 2, 1, 3]), [0, 0, -1])


def _attend(
    op: GradientBuilder, node: RuleNode, q: str, k: str, v: str, masks: list[str], size: int | None
) -> str:
    """Write softmax(q k' scale + masks) v for each head."""
    scale = node.attribute("scale", 0.0) or None
    if scale is None and isinstance(size, int):
        scale = 1 / math.sqrt(size)
    if scale is None:
        width = op.Cast(op.Gather(op.Shape(q), np.array(3)), to=_elem(op))
        scale = op.Reciprocal(op.Sqrt(width))
    scores = op.MatMul(op.Mul(q, scale), op.Transpose(k, perm=[0, 1, 3, 2]))
    for mask in filter(None, masks):
        scores = op.Add(scores, mask)
    return op.MatMul(op.Softmax(scores, axis=-1), v)


def _elem(op: GradientBuilder) -> int:
    return TensorProto.DOUBLE if op.float_dtype == np.float64 else TensorProto.FLOAT


def _length(op: GradientBuilder, name: str, axis: int) -> str:
    return op.Gather(op.Shape(name), np.array(axis), axis=0)


def _numbers(op: GradientBuilder, end: str, start: str | None = None) -> str:
    return op.Range(np.array(0, np.int64) if start is None else start, end, np.array(1, np.int64))


def _from_keep(op: GradientBuilder, keep: str, value: float) -> str:
    """Return a term of the scores: zero for keys to keep, a large negative number for others."""
    return op.Where(keep, 0.0, value)


def _causal(op: GradientBuilder, node: RuleNode, q: str, k: str, value: float) -> str:
    """Return a term of the scores that masks keys after a query, or ""; the last query and key coincide."""
    if not node.attribute("unidirectional", 0):
        return ""
    keys, queries = _length(op, k, 2), _length(op, q, 2)
    times = op.unsqueeze(_numbers(op, keys, op.Sub(keys, queries)), [1])
    return _from_keep(op, op.LessOrEqual(op.unsqueeze(_numbers(op, keys), [0]), times), value)


def _key_mask(op: GradientBuilder, node: RuleNode, mask: str, k: str, value: float) -> str:
    """Return a term of the scores for a mask of keys (ones and zeros, or numbers of keys), or ""."""
    if not mask:
        return ""
    rank = node.rank(mask)
    if rank == 1:
        keys, batch = _length(op, k, 2), op.Slice(op.Shape(k), [0], [1])
        sizes = {dim for name in (mask, k) if isinstance(dim := (op.shape(name) or (None,))[0], int)}
        if len(sizes) > 1:
            raise node.error("a mask of starts and ends, or of cumulative lengths, has no gradient rule")
        lengths = op.Reshape(op.Cast(mask, to=TensorProto.INT64), op.Concat(batch, [1, 1, 1], axis=0))
        return _from_keep(op, op.Less(_numbers(op, keys), lengths), value)
    keep = op.Cast(mask, to=TensorProto.BOOL)
    axes = {2: [1, 2], 3: [1], 4: []}[rank]
    return _from_keep(op, op.unsqueeze(keep, axes), value)


@RULES.rule("Attention", domain=_MS)
@by_decomposition
def attention(op: GradientBuilder, node: RuleNode) -> tuple[str, str]:
    # q, k, v = x W + b, y = softmax(q k' / sqrt(d) + masks) v, by heads
    x, weights, bias, mask, past, added = (node.input_name(i) for i in range(6))
    if node.attribute("do_rotary", 0) or node.attribute("past_present_share_buffer", 0):
        raise node.error("do_rotary and past_present_share_buffer have no gradient rule")
    heads = _Heads(op, node, node.attribute("num_heads"))
    projected = op.MatMul(x, weights)
    projected = op.Add(projected, bias) if bias else projected
    sizes = node.attribute("qkv_hidden_sizes") or [_known(node, weights, 1) // 3] * 3
    parts = op.Split(projected, sizes, axis=2, n_outputs=3)
    q, k, v = (heads.split(part) for part in parts)
    present = ""
    if past:
        k, v = (
            op.Concat(op.Gather(past, np.array(i), axis=0), name, axis=2) for i, name in enumerate((k, v))
        )
    if node.output_name(1):
        present = op.Concat(op.Unsqueeze(k, [0]), op.Unsqueeze(v, [0]), axis=0)
    op.set_type(k, _elem(op), (_dim(node, x, 0), None, None, None))
    value = node.attribute("mask_filter_value", -10000.0)
    masks = [_key_mask(op, node, mask, k, value), _causal(op, node, q, k, value), added]
    return heads.join(_attend(op, node, q, k, v, masks, sizes[0] // heads.count)), present


def _known(node: RuleNode, name: str, axis: int) -> int:
    size = _dim(node, name, axis)
    if not isinstance(size, int):
        raise node.error(f"dimension {axis} of {name!r} must be known")
    return size


def _dim(node: RuleNode, name: str, axis: int) -> int | str | None:
    return (node.shape(name) or (None,) * 5)[axis]


@RULES.rule("MultiHeadAttention", domain=_MS)
@by_decomposition
def multi_head_attention(op: GradientBuilder, node: RuleNode) -> list[str]:
    # y = softmax(q k' / sqrt(d) + masks) v, by heads
    query, key, value, bias, padding, added, past_k, past_v = (node.input_name(i) for i in range(8))
    heads = _Heads(op, node, node.attribute("num_heads"))
    if not key or node.rank(key) == 5:
        raise node.error("packed queries, keys and values (rank 5) have no gradient rule")
    names = [query, key, value]
    if bias:
        width = op.dim(query, 2)
        ends = [np.array([0]), width, op.Add(width, width), np.array([np.iinfo(np.int64).max])]
        parts = [op.Slice(bias, start, end) for start, end in zip(ends, ends[1:], strict=False)]
        names = [heads.add(name, part) for name, part in zip(names, parts, strict=True)]
    q, k, v = (
        heads.split(name) if node.rank(given) == 3 else name
        for name, given in zip(names, (query, key, value), strict=True)
    )
    if past_k:
        k, v = op.Concat(past_k, k, axis=2), op.Concat(past_v, v, axis=2)
    op.set_type(k, _elem(op), (_dim(node, query, 0), None, None, None))
    known = _dim(node, query, 2)
    number = node.attribute("mask_filter_value", -10000.0)
    masks = [_key_mask(op, node, padding, k, number), _causal(op, node, q, k, number), added]
    size = known // heads.count if isinstance(known, int) else None
    outputs = [heads.join(_attend(op, node, q, k, v, masks, size)), k, v]
    return outputs[: max(1, node.n_outputs)]


@RULES.rule("GroupQueryAttention", domain=_MS)
@by_decomposition
def group_query_attention(op: GradientBuilder, node: RuleNode) -> tuple[str, str, str]:
    # y = softmax(q k' / sqrt(d) + causal mask) v, one head of keys for several heads of queries
    query, key, value, past_k, past_v, _, _, cos, sin = (node.input_name(i) for i in range(9))
    others = [
        name for name in ("local_window_size", "smooth_softmax", "softcap") if node.attribute(name, 0) > 0
    ]
    if past_k or past_v or others or node.input_name(9):
        # Versions of onnxruntime differ in the length of a window.
        raise node.error(f"past keys, positions and attributes such as {others} have no gradient rule")
    count, kv = node.attribute("num_heads"), node.attribute("kv_num_heads")
    q_heads, kv_heads = _Heads(op, node, count), _Heads(op, node, kv)
    if not key:
        size = _known(node, query, 2) // (count + 2 * kv)
        query, key, value = op.Split(query, [count * size, kv * size, kv * size], axis=2, n_outputs=3)
    else:
        columns = _dim(node, query, 2)
        size = columns // count if isinstance(columns, int) else None
    q, k, v = q_heads.split(query), kv_heads.split(key), kv_heads.split(value)
    if node.attribute("do_rotary", 0):
        interleaved, steps = node.attribute("rotary_interleaved", 0), _length(op, q, 2)
        tables = [op.Slice(t, [0], op.unsqueeze(steps, [0]), [0]) for t in (cos, sin)]
        width = 2 * _known(node, cos, 1)
        q, k = (_rotate(op, name, tables, width, interleaved) for name in (q, k))
    every_k, every_v = (_repeat(op, name, count // kv) for name in (k, v))
    times = _numbers(op, _length(op, q, 2))
    column, row = op.unsqueeze(times, [1]), op.unsqueeze(times, [0])
    keep = op.LessOrEqual(row, column)
    masks = [_from_keep(op, keep, float(np.finfo(np.float32).min))]
    return q_heads.join(_attend(op, node, q, every_k, every_v, masks, size)), k, v


def _repeat(op: GradientBuilder, name: str, times: int) -> str:
    """Repeat every head."""
    if times == 1:
        return name
    shape = op.Shape(name)
    batch, heads, rest = (op.Slice(shape, [a], [b]) for a, b in ((0, 1), (1, 2), (2, 4)))
    wide = op.Expand(op.Unsqueeze(name, [2]), op.Concat(batch, heads, [times], rest, axis=0))
    return op.Reshape(wide, op.Concat(batch, op.Mul(heads, times), rest, axis=0))


def _rotate(op: GradientBuilder, x: str, tables: list[str], width: int, interleaved: int) -> str:
    """Rotate pairs of the first columns of heads (batch, heads, steps, size) by angles (steps, width / 2)."""
    first = op.Slice(x, [0], [width], [3])
    rest = op.Slice(x, [width], [np.iinfo(np.int64).max], [3])
    if interleaved:
        pairs = op.Reshape(first, [0, 0, 0, width // 2, 2])
        a, b = (op.Gather(pairs, np.array(i), axis=4) for i in (0, 1))
    else:
        a, b = op.Split(first, [width // 2, width // 2], axis=3, n_outputs=2)
    cos, sin = tables
    real = op.Sub(op.Mul(a, cos), op.Mul(b, sin))
    imaginary = op.Add(op.Mul(a, sin), op.Mul(b, cos))
    if interleaved:
        both = op.Concat(op.Unsqueeze(real, [4]), op.Unsqueeze(imaginary, [4]), axis=4)
        rotated = op.Reshape(both, [0, 0, 0, width])
    else:
        rotated = op.Concat(real, imaginary, axis=3)
    return op.Concat(rotated, rest, axis=3)


@RULES.rule("RotaryEmbedding", domain=_MS)
@by_decomposition
def rotary_embedding(op: GradientBuilder, node: RuleNode) -> str:
    # (a, b) -> (a cos - b sin, a sin + b cos) for pairs of columns of every head
    x, positions, cos, sin = (node.input_name(i) for i in range(4))
    if node.attribute("is_packed_batching", 0):
        raise node.error("is_packed_batching has no gradient rule")
    width = node.attribute("rotary_embedding_dim", 0) or 2 * _known(node, cos, 1)
    wide, count = node.rank(x) == 4, node.attribute("num_heads", 0)
    heads = _Heads(op, node, count) if count else _Heads(op, node, -1, width)
    apart = x if wide else heads.split(x)
    if node.rank(positions) == 1:  # of the first step
        positions = op.unsqueeze(op.Add(positions, _numbers(op, _length(op, apart, 2))), [0])
    tables = [op.Unsqueeze(op.Gather(table, positions, axis=0), [1]) for table in (cos, sin)]
    rotated = _rotate(op, apart, tables, width, node.attribute("interleaved", 0))
    return rotated if wide else heads.join(rotated)
