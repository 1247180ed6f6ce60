"""Generators of random nodes: operators that change shapes or positions."""

from __future__ import annotations

import numpy as np

from tests.differentiation.random_arithmetic import axes_of
from tests.differentiation.random_models import Misfit

__all__ = [
    "concat", "depth", "expand", "gather", "one_hot", "pad", "reshape", "scatter", "slice_",
    "split", "tile", "transpose", "trilu",
]  # fmt: skip


def reshape(g):
    x = g.pick()
    shape = list(g.shape(x))
    kind = g.choice("flat split Flatten Squeeze Unsqueeze".split())
    if kind == "Flatten":
        return g.node("Flatten", x, axis=int(g.rng.integers(-len(shape), len(shape) + 1)))
    if kind == "Squeeze":
        axes = [i for i, dim in enumerate(shape) if dim == 1 and g.chance(0.8)]
        return g.node("Squeeze", x, *([g.given(np.array(axes))] if axes and g.chance(0.8) else []))
    if kind == "Unsqueeze":
        count = g.choice([1, 2])
        return g.node("Unsqueeze", x, g.given(np.array(axes_of(g, len(shape) + count, count))))
    if kind == "flat":
        return g.node("Reshape", x, g.given(np.array([-1] if g.chance(0.5) else [0, -1])))
    target = shape[::-1] if g.chance(0.5) else [2, -1]
    return g.node("Reshape", x, g.given(np.array(target, dtype=np.int64)))


def expand(g):
    x = g.pick(lambda v: v.ndim <= 3)
    shape = [g.choice([1, 2, 3]) if dim == 1 else (1 if g.chance(0.3) else dim) for dim in g.shape(x)]
    shape = [g.choice([1, 2])] * g.choice([0, 1]) + shape
    return g.node("Expand", x, g.given(np.array(shape, np.int64)))


def tile(g):
    x = g.pick(lambda v: 1 <= v.ndim <= 3)
    return g.node("Tile", x, g.given(np.array([g.choice([1, 1, 2, 3]) for _ in g.shape(x)])))


def concat(g):
    x = g.pick(lambda v: v.ndim >= 1)
    axis = int(g.rng.integers(len(g.shape(x))))

    def same(v):
        return v.ndim == len(g.shape(x)) and v.shape[:axis] + v.shape[axis + 1 :] == (
            g.shape(x)[:axis] + g.shape(x)[axis + 1 :]
        )

    parts = [x] + [g.pick(same, fresh=g.shape(x)) for _ in range(g.choice([0, 1, 2]))]
    return g.node("Concat", *parts, axis=axis - (len(g.shape(x)) if g.chance(0.3) else 0))


def split(g):
    x = g.pick(lambda v: v.ndim >= 1)
    axis = int(g.rng.integers(len(g.shape(x))))
    size, count = g.shape(x)[axis], g.choice([1, 2, 3])
    if g.chance(0.5):
        cuts = sorted(int(g.rng.integers(size + 1)) for _ in range(count - 1))
        lengths = np.diff([0, *cuts, size])
        if not g.empty and (lengths == 0).any():
            raise Misfit
        found = g.node("Split", x, g.given(lengths), n_outputs=count, axis=axis)
    else:
        options = {"num_outputs": count} if g.opset >= 18 else {}
        found = g.node("Split", x, n_outputs=count, axis=axis, **options)
    return found if count == 1 else g.choice(found)


def slice_(g):
    x = g.pick(lambda v: v.ndim >= 1)
    axes = axes_of(g, len(g.shape(x))) or [0]
    steps = [g.choice([1, 1, 2, -1, -2]) for _ in axes]
    starts = [int(g.rng.integers(-4, 4)) for _ in axes]
    ends = [g.choice([2**31, -1, 2, 3]) if s > 0 else g.choice([-(2**31), 0, -9, -2]) for s in steps]
    kind = g.choice([np.int64, np.int32])
    rest = [axes, steps] if g.chance(0.7) or -1 in steps else [axes]
    ends = np.clip(ends, np.iinfo(kind).min, np.iinfo(kind).max)
    return g.node("Slice", x, *(g.given(np.array(v, dtype=kind)) for v in (starts, ends, *rest)))


def pad(g):
    x = g.pick(lambda v: 1 <= v.ndim <= 3)
    rank = len(g.shape(x))
    mode = g.choice([None, "constant", "reflect", "edge", *(["wrap"] if g.opset >= 19 else [])])
    low = -1 if mode in (None, "constant") and g.chance(0.3) else 0
    axes = axes_of(g, rank) if g.opset >= 18 and g.chance(0.3) else None
    pads = g.rng.integers(low, 2, size=2 * (rank if axes is None else len(axes)))
    if (mode not in (None, "constant") or (pads < 0).any()) and min(g.shape(x)) < 3:
        raise Misfit  # onnxruntime reads outside of the tensor
    extra = [] if axes is None else [g.given(np.array(axes, np.int64))]
    value = [g.of_shape(())] if mode in (None, "constant") and g.chance(0.5) else [""] * bool(extra)
    return g.node("Pad", x, g.given(pads), *value, *extra, mode=mode)


def transpose(g):
    x = g.pick()
    rank = len(g.shape(x))
    perm = None if g.chance(0.3) else [int(i) for i in g.rng.permutation(rank)]
    if perm is not None and perm == sorted(perm):
        raise Misfit  # onnxruntime treats it as a swap when it fuses it with Gemm
    return g.node("Transpose", x, perm=perm or None)


def trilu(g):
    x = g.pick(lambda v: v.ndim >= 2)
    if g.opset < 14:
        raise Misfit
    k = [g.given(np.array(g.choice([-1, 0, 1, 2])))] if g.chance(0.5) else []
    return g.node("Trilu", x, *k, upper=g.choice([None, 0, 1]))


def depth(g):
    n, c, h, w = g.dims(4)
    if g.chance(0.5):
        x = g.of_shape((n, 4 * max(c, 1), h, w))
        return g.node("DepthToSpace", x, blocksize=2, mode=g.choice([None, "DCR", "CRD"]))
    return g.node("SpaceToDepth", g.of_shape((n, c, 2 * h, 2 * w)), blocksize=2)


def indices(g, shape, size):
    kind = g.choice([np.int64, np.int64, np.int32])
    if size == 0 and np.prod(shape):
        raise Misfit
    return g.rng.integers(-size, max(size, 1), size=shape).astype(kind)


def gather(g):
    x = g.pick(lambda v: v.ndim >= 1)
    axis = int(g.rng.integers(len(g.shape(x))))
    kind = g.choice(["Gather", "GatherElements", "GatherND"])
    if kind == "Gather":
        index = indices(g, g.dims(g.choice([0, 1, 1, 2])), g.shape(x)[axis])
        return g.node(kind, x, g.given(index), axis=axis)
    if kind == "GatherElements":
        return g.node(kind, x, g.given(elements(g, g.shape(x), axis)), axis=axis)
    batch = g.choice([0, 0, 1]) if len(g.shape(x)) > 1 else 0
    return g.node(kind, x, g.given(nd_indices(g, g.shape(x), batch)), batch_dims=batch)


def elements(g, shape, axis, ranks=None):
    dims = [g.choice([1, 2, 3]) if i == axis else int(g.rng.integers(0 if g.empty else 1, d + 1)) if d else 0
            for i, d in enumerate(shape)]  # fmt: skip
    return indices(g, dims, shape[axis])


def nd_indices(g, shape, batch=0):
    width = 1 + int(g.rng.integers(len(shape) - batch))
    dims = (*shape[:batch], *g.dims(g.choice([0, 1, 1, 2])))
    columns = [indices(g, dims, size).astype(np.int64) for size in shape[batch : batch + width]]
    return np.stack(columns, axis=-1)


def scatter(g):
    x = g.pick(lambda v: v.ndim >= 1)
    reductions = (
        [None, None] + (["add", "mul"] if g.opset >= 16 else []) + (["max", "min"] if g.opset >= 18 else [])
    )
    how = g.choice(reductions)
    if g.chance(0.5):
        axis = int(g.rng.integers(len(g.shape(x))))
        index = elements(g, g.shape(x), axis)
        if how is None:
            index = np.argsort(g.rng.random(index.shape), axis=axis)[tuple(slice(d) for d in index.shape)]
            index = (
                index.astype(np.int64)
                if index.shape[axis] <= g.shape(x)[axis]
                else indices(g, [0] * index.ndim, 1)
            )
        updates = g.normal(index.shape)
        if how == "mul" and g.chance(0.5):
            updates = updates * (g.rng.random(index.shape) < 0.6)
        u = g.add_input(updates) if g.chance(0.7) else g.of_shape(index.shape)
        return g.node("ScatterElements", x, g.given(index), u, axis=axis, reduction=how)
    index = nd_indices(g, g.shape(x))
    if how is None and index.ndim > 1:
        index = index.reshape(-1, index.shape[-1])[:1]
    shape = index.shape[:-1] + g.shape(x)[index.shape[-1] :]
    updates = g.normal(shape) * (g.rng.random(shape) < (0.6 if how == "mul" else 1))
    return g.node("ScatterND", x, g.given(index), g.add_input(updates), reduction=how)


def one_hot(g):
    values = g.of_shape((2,))
    shape = g.dims(g.choice([0, 1, 2]))
    index = g.given(g.rng.integers(-3, 5, size=shape))
    size = g.given(g.choice([np.array(3), np.array([3])]))
    return g.node("OneHot", index, size, values, axis=g.choice([None, -1, 0, *([1] if len(shape) else [])]))
