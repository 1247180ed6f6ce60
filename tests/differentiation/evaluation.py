"""Run models by onnxruntime or, without kernels, by the reference evaluator of onnx."""

from __future__ import annotations

import itertools

import numpy as np
import onnxruntime
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument, InvalidGraph, NotImplemented
from scipy.special import erf

from tests.differentiation.fused_operators import (
    Attention,
    BiasAdd,
    BiasSoftmax,
    BiasSplitGelu,
    GemmFastGelu,
    GroupNorm,
)
from tests.differentiation.recurrent_layers import GRU, LSTM, RNN

__all__ = ["run", "run_at_level", "run_onnxruntime", "run_reference"]

_SESSIONS: dict[bytes, object] = {}

#: Operators that onnxruntime only computes in float32.
_IMPRECISE = {"ReduceL2", "Shrink", "RNN", "GRU", "LSTM"}


def run_onnxruntime(model: ModelProto, feeds: dict[str, np.ndarray]) -> list:
    """Return the outputs of a model by onnxruntime."""
    return _cached(model, _load_onnxruntime).run(None, feeds)


def run(model: ModelProto, feeds: dict[str, np.ndarray]) -> list:
    """Return the outputs of a model by onnxruntime or the reference evaluator, in its types."""
    return _cached(model, _load).run(None, feeds)


def run_reference(model: ModelProto, feeds: dict[str, np.ndarray]) -> list:
    """Return the outputs of a model by onnx's reference evaluator."""
    return _cached(model, _load_reference).run(None, feeds)


def run_at_level(model: ModelProto, feeds: dict[str, np.ndarray], level: str) -> list:
    """Return the outputs of a model by onnxruntime with some graph optimizations, such as "DISABLE_ALL"."""
    return _load_onnxruntime(model, level).run(None, feeds)


def _cached(model, load):
    key = load.__name__.encode() + model.SerializeToString()
    if key not in _SESSIONS:
        if len(_SESSIONS) > 8:
            _SESSIONS.clear()
        _SESSIONS[key] = load(model)
    return _SESSIONS[key]


def _load(model):
    if not _IMPRECISE.isdisjoint(node.op_type for node in model.graph.node):
        return _load_reference(model)
    try:
        return _load_onnxruntime(model)
    except (Fail, InvalidArgument, InvalidGraph, NotImplemented):  # InvalidArgument: newer than the runtime
        return _load_reference(model)


def _load_reference(model):
    return ReferenceEvaluator(model, new_ops=NEW_OPS)


def _load_onnxruntime(model, level="ENABLE_ALL"):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_{level}")
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    providers = ["CPUExecutionProvider"]
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=providers)


# Operators that the reference evaluator lacks, computes in float32, or computes wrongly.


class CDist(OpRun):
    op_domain = "com.microsoft"

    def _run(self, a, b, metric="sqeuclidean"):
        squared = ((a[:, None] - b[None]) ** 2).sum(axis=2)
        return (squared if metric == "sqeuclidean" else np.sqrt(squared),)


class FusedMatMul(OpRun):
    op_domain = "com.microsoft"

    def _run(self, a, b, alpha=1.0, transA=0, transB=0, transBatchA=0, transBatchB=0):
        a = np.swapaxes(a, -1, -2) if transA else a
        b = np.swapaxes(b, -1, -2) if transB else b
        return (np.asarray(alpha, dtype=a.dtype) * (a @ b),)


class Erf(OpRun):
    op_domain = ""

    def _run(self, x):
        return (np.asarray(erf(x)),)


class Gelu(OpRun):
    op_domain = ""

    def _run(self, x, approximate="none"):
        if approximate == "tanh":
            inner = np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))
            return ((0.5 * x * (1 + inner)).astype(x.dtype),)
        return ((0.5 * x * (1 + erf(x / np.sqrt(2)))).astype(x.dtype),)


class GlobalMaxPool(OpRun):
    op_domain = ""

    def _run(self, x):
        return (x.max(axis=tuple(range(2, x.ndim)), keepdims=True),)


class LpNormalization(OpRun):
    op_domain = ""

    def _run(self, x, axis=-1, p=2):
        return (x / np.linalg.norm(x, p, axis=axis, keepdims=True),)


class ConvTranspose(OpRun):
    op_domain = ""

    def _run(self, x, w, b=None, auto_pad=None, dilations=None, group=1, kernel_shape=None,
             output_padding=None, output_shape=None, pads=None, strides=None):  # fmt: skip
        space = x.ndim - 2
        strides, dilations = strides or [1] * space, dilations or [1] * space
        pads, extra = pads or [0] * 2 * space, output_padding or [0] * space
        kernel = w.shape[2:]
        full = [
            (x.shape[2 + i] - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 + extra[i]
            for i in range(space)
        ]
        per_group = w.shape[1]
        result = np.zeros((x.shape[0], per_group * group, *full), dtype=x.dtype)
        inputs = x.shape[1] // group
        for g, place in itertools.product(range(group), itertools.product(*map(range, kernel))):
            part = np.einsum(
                "nc...,co->no...",
                x[:, g * inputs : (g + 1) * inputs],
                w[(slice(g * inputs, (g + 1) * inputs), slice(None), *place)],
            )
            where = tuple(
                slice(
                    place[i] * dilations[i],
                    place[i] * dilations[i] + (x.shape[2 + i] - 1) * strides[i] + 1,
                    strides[i],
                )
                for i in range(space)
            )
            result[(slice(None), slice(g * per_group, (g + 1) * per_group), *where)] += part
        crop = tuple(slice(pads[i], full[i] - pads[space + i]) for i in range(space))
        result = result[(slice(None), slice(None), *crop)]
        return (result if b is None else result + b.reshape(-1, *[1] * space),)


class Scan(OpRun):
    """Scan with directions, along first axes."""

    op_domain = ""

    def need_context(self):
        return True

    def _run(self, *args, context=None, body=None, num_scan_inputs=None, scan_input_axes=None,
             scan_input_directions=None, scan_output_axes=None, scan_output_directions=None, bindings=None,
             attributes=None):  # fmt: skip
        assert not any([*(scan_input_axes or ()), *(scan_output_axes or ())])
        count = len(args) - num_scan_inputs
        states, items = list(args[:count]), args[count:]
        ways = scan_input_directions or [0] * num_scan_inputs
        items = [item[::-1] if way else item for item, way in zip(items, ways, strict=True)]
        stacks = [[] for _ in self.body.output_names[count:]]
        for values in zip(*items, strict=True):
            given = dict(zip(self.body.input_names, [*states, *values], strict=True))
            found = self._run_body({**(context or {}), **given}, bindings=bindings)
            states = found[:count]
            for stack, value in zip(stacks, found[count:], strict=True):
                stack.append(value)
        ways = scan_output_directions or [0] * len(stacks)
        stacks = [stack[::-1] if way else stack for stack, way in zip(stacks, ways, strict=True)]
        return (*states, *map(np.stack, stacks))


_MicrosoftGelu = type("Gelu", (Gelu,), {"op_domain": "com.microsoft"})

NEW_OPS = [
    CDist, FusedMatMul, Erf, Gelu, _MicrosoftGelu, GlobalMaxPool, LpNormalization, ConvTranspose, Scan,
    RNN, GRU, LSTM, Attention, BiasAdd, BiasSoftmax, BiasSplitGelu, GemmFastGelu, GroupNorm,
]  # fmt: skip
