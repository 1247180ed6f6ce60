"""Records of fused operators of onnxruntime, most of whose kernels compute in float32."""

from __future__ import annotations

import numpy as np

from tests.differentiation.records_base import MS, Record, ints, normal, positive, within

__all__ = ["ATTENTION", "FUSED", "MICROSOFT"]


def fused(op_type, *inputs, domain=MS, **options):
    """Return a record at one opset."""
    attributes, kernel = options.pop("attributes", {}), options.get("kernel", True)
    chosen = {"opsets": (18,), "single": kernel, "empty": False, "second": False, **options}
    return Record(op_type, inputs, attributes, domain, **chosen)


def int32(*values):
    return np.array(values, np.int32)


FUSED = [
    fused("Inverse", lambda rng: np.eye(3) * 3 + rng.normal(size=(2, 3, 3)) * 0.3, opsets=(13, 18)),
    fused("TransposeMatMul", normal(3, 4), normal(3, 2), attributes={"transA": 1, "alpha": 0.5}),
    fused("BiasGelu", normal(4, 3), normal(3)),
    fused("FastGelu", normal(4, 3)),
    fused("FastGelu", normal(4, 3), normal(3)),
    fused("QuickGelu", normal(4, 3)),
    fused("QuickGelu", normal(4, 3), attributes={"alpha": 0.5}),
    fused("BiasSplitGelu", normal(2, 3, 8), normal(8), kernel=False),
    fused("BiasAdd", normal(2, 3, 4), normal(4), normal(2, 3, 4), kernel=False),
    fused(
        "BiasSoftmax",
        normal(4, 3),
        normal(1, 3),
        attributes={"axis": 1, "is_inner_broadcast": 1},
        kernel=False,
    ),
    fused(
        "SkipLayerNormalization",
        *(normal(2, 3, 4), normal(2, 3, 4), normal(4), normal(4), normal(4)),
        attributes={"epsilon": 0.01},
    ),
    fused("SkipLayerNormalization", normal(2, 3, 4), normal(2, 3, 4), normal(4), normal(4)),
    fused("SkipLayerNormalization", normal(2, 3, 4), normal(1, 3, 4), normal(4)),
    fused("SkipSimplifiedLayerNormalization", normal(2, 3, 4), normal(2, 3, 4), normal(4)),
    fused("SimplifiedLayerNormalization", normal(2, 3, 4), normal(4), attributes={"axis": -1}, domain=""),
    fused(
        "EmbedLayerNormalization",
        *(int32([0, 2, 1], [3, 3, 0]), int32([0, 1, 1], [0, 0, 1])),
        *(normal(4, 5), normal(6, 5), normal(2, 5), positive(5), normal(5)),
        n_outputs=2,
        wrt=(2, 3, 4, 5, 6),
    ),
    fused(
        "EmbedLayerNormalization",
        *(int32([0, 2, 1], [3, 3, 0]), None),
        *(normal(4, 5), normal(6, 5), None, positive(5), normal(5)),
        n_outputs=2,
        wrt=(2, 3, 5, 6),
    ),
    fused(
        "FusedConv",
        *(normal(2, 3, 6, 5), normal(4, 3, 3, 3), normal(4)),
        attributes={"activation": "Tanh", "pads": [1, 1, 1, 1], "strides": [2, 1]},
    ),
    fused("FusedConv", normal(2, 3, 5), normal(4, 3, 3), attributes={"activation": "Sigmoid"}),
    fused("FusedGemm", normal(4, 3), normal(5, 3), normal(5), attributes={"transB": 1, "activation": "Tanh"}),
    fused("GemmFastGelu", normal(2, 4, 3), normal(3, 2), normal(2), kernel=False),
    *(
        fused(
            "GroupNorm",
            *(normal(2, 3, 2, 4), normal(4), normal(4)),
            attributes={"groups": 2, "activation": activation, "epsilon": 0.01},
            kernel=False,
        )
        for activation in (0, 1)
    ),
    fused("Trilu", normal(3, 4), ints(1)[0], attributes={"upper": 0}, constants=(1,)),
    fused("Pad", normal(3, 4), ints(0, 1, 2, 0), constants=(1,)),
]

_PROJECTION = (normal(2, 4, 6), within(-1, 1, 6, 18), normal(18))
_QUERIES = (normal(2, 3, 8), normal(2, 5, 8), normal(2, 5, 8))


def heads(op_type, *inputs, **attributes):
    """Return a record of attention with two heads."""
    options = {"n_outputs": attributes.pop("n_outputs", 1), "kernel": attributes.pop("kernel", True)}
    return fused(op_type, *inputs, attributes={"num_heads": 2, **attributes}, **options)


ATTENTION = [
    heads("Attention", *_PROJECTION),
    heads("Attention", *_PROJECTION, kernel=False),
    heads(
        "Attention", *_PROJECTION, None, normal(2, 2, 2, 3, 3), n_outputs=2, unidirectional=1, kernel=False
    ),
    heads("Attention", *_PROJECTION, unidirectional=1),
    heads("Attention", *_PROJECTION, scale=0.3),
    heads("Attention", *_PROJECTION, int32(4, 2)),
    heads("Attention", *_PROJECTION, int32([1, 1, 1, 1], [0, 1, 1, 0])),
    heads("Attention", *_PROJECTION, np.tril(np.ones((2, 4, 4), np.int32))),
    heads("Attention", normal(2, 4, 6), within(-1, 1, 6, 20), normal(20), qkv_hidden_sizes=[6, 6, 8]),
    heads("Attention", *_PROJECTION, None, normal(2, 2, 2, 3, 3), n_outputs=2, unidirectional=1),
    heads("MultiHeadAttention", *_QUERIES),
    heads("MultiHeadAttention", *_QUERIES, normal(24)),
    # The kernel of onnxruntime 1.19 reads broadcast masks and sums from wrong positions.
    heads("MultiHeadAttention", *[normal(2, 5, 8)] * 3, None, int32([1, 1, 1, 0, 1], [1, 1, 0, 0, 0])),
    heads("MultiHeadAttention", *[normal(2, 5, 8)] * 3, None, int32(5, 3), scale=0.4),
    heads("MultiHeadAttention", *_QUERIES, None, None, normal(2, 2, 3, 5)),
    heads("MultiHeadAttention", *[normal(2, 4, 8)] * 3, unidirectional=1),
    heads("MultiHeadAttention", normal(2, 3, 8), normal(2, 2, 5, 4), normal(2, 2, 5, 4)),
    heads(
        "MultiHeadAttention",
        *[normal(2, 3, 8)] * 3,
        None,
        None,
        None,
        normal(2, 2, 2, 4),
        normal(2, 2, 2, 4),
        n_outputs=3,
    ),  # fmt: skip
    *(
        heads(
            "GroupQueryAttention",
            *(normal(2, 3, 64), normal(2, 3, 32), normal(2, 3, 32), None, None),
            *(int32(2, 2), np.array(3, np.int32), within(-1, 1, 5, 8), within(-1, 1, 5, 8)),
            n_outputs=3,
            num_heads=4,
            kv_num_heads=2,
            do_rotary=1,
            **extra,
        )
        for extra in ({}, {"rotary_interleaved": 1})
    ),
    *(
        fused("RotaryEmbedding", x, positions, within(-1, 1, 6, 4), within(-1, 1, 6, 4), attributes=options)
        for x, positions, options in (
            (normal(2, 3, 16), ints(0), {}),
            (normal(2, 3, 16), ints([0, 1, 2], [3, 5, 1]), {"interleaved": 1}),
            (normal(2, 2, 3, 8), ints(2), {}),
        )
    ),
]

MICROSOFT = [
    Record("Gelu", (normal(4, 3),), domain=MS, opsets=(13, 18)),
    Record(
        "CDist", (normal(4, 3), normal(5, 3)), {"metric": "sqeuclidean"}, MS, opsets=(13, 18), empty=False
    ),
    Record("CDist", (normal(4, 3), normal(5, 3)), {"metric": "euclidean"}, MS, opsets=(13, 18), empty=False),
    *(
        Record(
            "FusedMatMul",
            (normal(*a), normal(*b)),
            {"transA": ta, "transB": tb, "alpha": alpha},
            MS,
            opsets=(13, 18),
        )  # fmt: skip
        for a, b, ta, tb, alpha in (
            ((4, 3), (3, 2), 0, 0, 0.5),
            ((3, 4), (3, 2), 1, 0, 1.0),
            ((4, 3), (2, 3), 0, 1, 1.0),
            ((5, 3, 4), (5, 2, 3), 1, 1, 2.0),
        )
    ),
]
