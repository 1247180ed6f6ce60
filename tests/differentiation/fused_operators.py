"""Operators of onnxruntime that it has no kernel for on the CPU, for the reference evaluator."""

from __future__ import annotations

import numpy as np
from onnx.reference.op_run import OpRun
from scipy.special import erf, softmax

__all__ = ["BiasAdd", "BiasSoftmax", "BiasSplitGelu", "GemmFastGelu", "GroupNorm"]


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
