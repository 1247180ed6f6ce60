"""Generators of random nodes, repeated according to their frequency."""

from __future__ import annotations

from tests.differentiation import random_arithmetic as arithmetic
from tests.differentiation import random_control as control
from tests.differentiation import random_layers as layers
from tests.differentiation import random_shapes as shapes

__all__ = ["CONTROL", "MAKERS", "ROUNDING"]

CONTROL = [control.if_, control.loop, control.loop, control.scan, control.scan]
ROUNDING = [layers.rounded]
MAKERS = [
    arithmetic.unary,
    arithmetic.unary,
    arithmetic.narrow_domain,
    arithmetic.binary,
    arithmetic.binary,
    arithmetic.clip,
    arithmetic.where,
    arithmetic.casts,
    arithmetic.int_casts,
    arithmetic.reduction,
    arithmetic.reduction,
    arithmetic.cumulative,
    arithmetic.top_k,
    arithmetic.matmul,
    arithmetic.gemm,
    arithmetic.einsum,
    arithmetic.einsum,
    shapes.reshape,
    shapes.expand,
    shapes.tile,
    shapes.concat,
    shapes.split,
    shapes.slice_,
    shapes.pad,
    shapes.transpose,
    shapes.trilu,
    shapes.depth,
    shapes.gather,
    shapes.gather,
    shapes.scatter,
    shapes.scatter,
    shapes.one_hot,
    layers.normalization,
    layers.normalization,
    layers.losses,
    layers.conv,
    layers.conv,
    layers.pool,
    layers.pool,
    layers.others,
]
