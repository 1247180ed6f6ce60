"""Generators of random nodes: normalizations, losses, convolutions and pooling."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from tests.differentiation.random_arithmetic import axes_of
from tests.differentiation.random_models import SINCE, Misfit

__all__ = ["conv", "losses", "normalization", "others", "pool", "rounded"]


def normalization(g):
    kinds = """Softmax LogSoftmax LpNormalization LayerNormalization BatchNormalization Hardmax
        InstanceNormalization GroupNormalization MeanVarianceNormalization"""
    kind = g.choice(kinds.split())
    if g.opset < SINCE.get(kind, 13):
        raise Misfit
    if kind in ("Softmax", "LogSoftmax", "LpNormalization", "Hardmax"):
        x = g.pick(lambda v: v.ndim >= 1)
        options = {"axis": g.choice([None, *axes_of(g, len(g.shape(x)), 1)])}
        return g.node(kind, x, **options, **({"p": g.choice([1, 2])} if kind == "LpNormalization" else {}))
    x = g.pick(lambda v: v.ndim >= 2 and v.shape[1] > 0, fresh=g.dims(g.choice([2, 3, 4])))
    shape = g.shape(x)
    if kind == "MeanVarianceNormalization":
        return g.node(kind, x, axes=sorted(a % len(shape) for a in axes_of(g, len(shape))) or None)
    if kind == "LayerNormalization":
        axis = int(g.rng.integers(-len(shape), len(shape)))
        tail = shape[axis:]
        bias = [g.of_shape(tail)] if g.chance(0.6) else []
        return g.node(kind, x, g.of_shape(tail), *bias, axis=axis, epsilon=g.choice([None, 0.1]))
    channels = (shape[1],)
    if kind == "BatchNormalization":
        variance = g.node("Add", g.node("Abs", g.of_shape(channels)), g.constant(np.array(0.5)))
        return g.node(kind, x, *(g.of_shape(channels) for _ in "sbm"), variance)
    if kind == "GroupNormalization":
        x = g.of_shape((2, 4, 3))
        return g.node(kind, x, g.of_shape((4,)), g.of_shape((4,)), num_groups=g.choice([1, 2, 4]))
    if len(shape) < 3:
        raise Misfit
    return g.node(kind, x, g.of_shape(channels), g.of_shape(channels), epsilon=0.1)


def losses(g):
    n, classes = g.choice([1, 2, 3]), g.choice([2, 3])
    space = g.dims(g.choice([0, 0, 1, 2]))
    x = g.of_shape((n, classes, *space))
    labels = g.rng.integers(0, classes, size=(n, *space)).astype(g.choice([np.int64, np.int32]))
    options = {"reduction": g.choice([None, "mean", "sum", "none"])}
    if g.chance(0.4):
        options["ignore_index"] = g.choice([0, -1])
        labels.reshape(-1)[:1] = options["ignore_index"]
    weights = [g.node("Add", g.node("Abs", g.of_shape((classes,))), g.constant(np.array(0.2)))]
    weights = weights if g.chance(0.6) else []
    if g.chance(0.5):
        return g.node("NegativeLogLikelihoodLoss", x, g.given(labels), *weights, **options)
    if g.chance(0.4):
        return g.choice(
            g.node("SoftmaxCrossEntropyLoss", x, g.given(labels), *weights, n_outputs=2, **options)
        )
    return g.node("SoftmaxCrossEntropyLoss", x, g.given(labels), *weights, **options)


def window(g, space, pooling=False):
    options = {"kernel_shape": [g.choice([1, 2, 3]) for _ in range(space)]}
    if g.chance(0.6):
        options["strides"] = [g.choice([1, 2, 3]) for _ in range(space)]
    if g.chance(0.3):
        options["dilations"] = [g.choice([1, 2]) for _ in range(space)]
    how = g.choice(["none", "pads", "pads", "auto"])
    if how == "pads":
        limits = [min(2, k - 1) for k in options["kernel_shape"]] * 2
        options["pads"] = [int(g.rng.integers(limit + 1)) for limit in limits]
    elif how == "auto":
        options["auto_pad"] = g.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
    return options


def conv(g):
    space, group = g.choice([1, 2, 2, 3]), g.choice([1, 1, 2])
    channels = group * g.choice([1, 2])
    x = g.of_shape(
        (g.choice([1, 2, *([0] if g.empty else [])]), channels, *(g.choice([3, 4, 5]) for _ in range(space)))
    )
    options = window(g, space)
    kernel = options["kernel_shape"]
    if g.chance(0.4):
        del options["kernel_shape"]
    kind = g.choice(["Conv", "ConvTranspose"])
    filters = group * g.choice([1, 2])
    if kind == "Conv":
        w, bias = g.add_input(g.normal((filters, channels // group, *kernel)) * 0.5), filters
    else:
        w, bias = g.add_input(g.normal((channels, filters // group, *kernel)) * 0.5), filters
        if "auto_pad" not in options and g.chance(0.3):
            steps = options.get("strides", [1] * space)
            options["output_padding"] = [int(g.rng.integers(step)) for step in steps]
    b = [g.of_shape((bias,))] if g.chance(0.5) else []
    return g.node(kind, x, w, *b, group=group, **options)


def pool(g):
    space = g.choice([1, 2, 2, 3])
    x = g.of_shape(
        (g.choice([1, 2, *([0] if g.empty else [])]), 2, *(g.choice([3, 4, 5, 6]) for _ in range(space)))
    )
    kind = g.choice(["AveragePool", "MaxPool", "GlobalAveragePool", "GlobalMaxPool"])
    if kind.startswith("Global"):
        return g.node(kind, x)
    options = window(g, space, True)
    if kind == "AveragePool" and g.opset < 19:
        options.pop("dilations", None)
    if g.chance(0.3) and "auto_pad" not in options:
        options["ceil_mode"] = 1
    if kind == "AveragePool":
        return g.node(kind, x, count_include_pad=g.choice([None, 0, 1]), **options)
    return g.node(kind, x, storage_order=g.choice([None, None, 1]), **options)


def others(g):
    kind = g.choice(["Dropout", "Gelu", "CDist", "ArrayFeatureExtractor", "Normalizer", "Scaler"])
    x = g.pick()
    if kind == "Dropout":
        return g.node(kind, x)
    if kind == "Gelu":
        return g.node(kind, x, domain="com.microsoft")
    x = g.pick(lambda v: v.ndim == 2, fresh=g.dims(2))
    rows, columns = g.shape(x)
    if kind == "CDist":
        # other points than those of x: distances of equal points have a kink
        y = g.add_input(g.rng.normal(size=(g.choice([1, 2, 3]), columns)))
        return g.node(kind, x, y, domain="com.microsoft", metric=g.choice(["sqeuclidean", "euclidean"]))
    if kind == "ArrayFeatureExtractor":
        index = g.rng.integers(0, max(columns, 1), size=g.choice([1, 2]))
        return g.node(kind, x, g.given(index), domain="ai.onnx.ml")
    if kind == "Normalizer":
        return g.node(kind, x, domain="ai.onnx.ml", norm=g.choice(["MAX", "L1", "L2"]))
    return g.node(kind, x, domain="ai.onnx.ml", offset=[0.5], scale=[2.0])


def rounded(g):
    """Casts to integers and back, and quantisation, which are rejected."""
    x = g.pick(lambda v: v.size)
    if g.chance(0.5):
        k = g.node("Cast", x, to=g.choice([TensorProto.INT64, TensorProto.INT32]))
        return g.node("Cast", k, to=TensorProto.DOUBLE)
    h = g.node("Cast", x, to=TensorProto.FLOAT)
    scale = g.constant(np.array(0.1, np.float32))
    found = g.node("DequantizeLinear", g.node("QuantizeLinear", h, scale), scale)
    return g.node("Cast", found, to=TensorProto.DOUBLE)
