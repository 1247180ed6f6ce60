"""Operators without a CPU kernel in onnxruntime, for the reference evaluator."""

from __future__ import annotations

import numpy as np
from onnx.reference.op_run import OpRun
from scipy.special import erf, softmax

__all__ = ["Attention", "BiasAdd", "BiasSoftmax", "BiasSplitGelu", "GemmFastGelu", "GroupNorm"]


class Fused(OpRun):
    op_domain = "com.microsoft"


class BiasAdd(Fused):
    def _run(self, x, bias, skip):
        return (x + bias + skip,)


class BiasSplitGelu(Fused):
    def _run(self, x, bias):
        a, b = np.split(x + bias, 2, axis=-1)
        return ((a * b * (1 + erf(b / np.sqrt(2))) / 2).astype(x.dtype),)


class BiasSoftmax(Fused):
    def _run(self, x, bias, axis=1, is_inner_broadcast=1):
        return (softmax(x + bias, axis=-1).astype(x.dtype),)


class GemmFastGelu(Fused):
    def _run(self, x, w, bias=0):
        y = x @ w + bias
        return ((y / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y**3)))).astype(x.dtype),)


class GroupNorm(Fused):
    def _run(self, x, scale, shift, activation=0, channels_last=1, epsilon=1e-5, groups=1):
        parts = x.reshape(len(x), -1, groups, x.shape[-1] // groups)
        z = parts - parts.mean(axis=(1, 3), keepdims=True)
        z = (z / np.sqrt((z**2).mean(axis=(1, 3), keepdims=True) + epsilon)).reshape(x.shape)
        y = z * scale + shift
        return ((y / (1 + np.exp(-y)) if activation else y).astype(x.dtype),)


class Attention(Fused):
    """Attention of projected samples with past keys and values, as documented by onnxruntime.

    The evaluator also passes the attributes of ONNX's operator Attention.
    """

    def _run(self, x, weights, bias=None, mask=None, past=None, num_heads=1, unidirectional=0, **others):
        projected = x @ weights + (0 if bias is None else bias)
        heads = projected.reshape(*x.shape[:2], 3, num_heads, -1)
        query, key, value = (heads[:, :, part].swapaxes(1, 2) for part in range(3))
        if past is not None:
            key, value = (np.concatenate(both, axis=2) for both in zip(past, (key, value), strict=True))
        scores = query @ key.swapaxes(2, 3) * query.shape[-1] ** -0.5
        if unidirectional:
            later = np.triu(np.ones(scores.shape[2:], dtype=bool), 1 + scores.shape[3] - scores.shape[2])
            scores = np.where(later, -np.inf, scores)
        result = (softmax(scores, axis=-1) @ value).swapaxes(1, 2).reshape(*x.shape[:2], -1)
        return result.astype(x.dtype), np.stack([key, value])
