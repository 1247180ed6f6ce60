"""Makers of random nodes: operators in all their forms."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from tests.differentiation.random_models import Misfit, info

__all__ = ["CONTROL", "MAKERS", "ROUNDING"]

SMOOTH = "Tanh Sigmoid Softplus Sin Cos Erf Atan Neg Softsign Asinh Identity Exp Sinh Cosh".split()
KINKED = "Relu Abs LeakyRelu Elu Selu Celu HardSigmoid HardSwish ThresholdedRelu Shrink Mish Gelu".split()
STEPS = "Floor Ceil Round Sign".split()
SINCE = {"HardSwish": 14, "Mish": 18, "Gelu": 20, "Trilu": 14, "LayerNormalization": 17,
         "GroupNormalization": 21, "CastLike": 15}  # fmt: skip


def unary(g):
    x = g.pick()
    name = g.choice(SMOOTH + KINKED + (STEPS if g.chance(0.1) else []))
    if g.opset < SINCE.get(name, 13):
        raise Misfit
    options = {"alpha": g.choice([None, 0.3, 1.4])} if name in ("LeakyRelu", "Elu", "Celu", "Selu") else {}
    if name == "Gelu":
        options = {"approximate": g.choice([None, "tanh"])}
    return g.node(name, x, **options)


def narrow_domain(g):
    x = g.pick()
    half = g.constant(np.array(0.5))
    if g.chance(0.5):
        positive = g.node("Add", g.node("Mul", x, x), half)
        return g.node(g.choice(["Log", "Sqrt", "Reciprocal"]), positive)
    if g.chance(0.2):
        return g.node("Acosh", g.node("Add", g.node("Mul", x, x), g.constant(np.array(1.2))))
    inside = g.node("Mul", g.node("Tanh", x), g.constant(np.array(0.9)))
    return g.node(g.choice(["Asin", "Acos", "Atanh", "Tan"]), inside)


def partner(g, x, fits=lambda a, b: np.broadcast_shapes(a, b)):
    """Return a tensor that broadcasts with another one."""

    def works(v):
        try:
            fits(g.shape(x), v.shape)
        except ValueError:
            return False
        return True

    shape = tuple(1 if g.chance(0.4) else d for d in g.shape(x))
    return g.pick(works, fresh=shape[int(g.rng.integers(len(shape) + 1)) :])


def binary(g):
    x = g.pick()
    y = partner(g, x)
    name = g.choice("Add Sub Mul Div Max Min Mean Sum Pow Mod PRelu".split())
    if name in ("Sum", "Max", "Min", "Mean") and g.chance(0.5):
        return g.node(name, x, y, *([partner(g, y)] if g.chance(0.5) else []))
    if name == "Pow":
        base = g.node("Add", g.node("Abs", x), g.constant(np.array(0.3)))
        constants = [
            np.array(2.0),
            np.array(3.0),
            np.array([0.5]),
            np.array(2),
            np.array(-1.0),
            np.array(0.0),
        ]
        return g.node("Pow", base, g.constant(g.choice(constants)) if g.chance(0.5) else g.node("Tanh", y))
    if name in ("Div", "Mod"):
        y = g.node("Add", g.node("Mul", y, y), g.constant(np.array(0.7)))
        return g.node(name, x, y, **({"fmod": 1} if name == "Mod" else {}))
    if g.chance(0.3):
        x, y = y, x
    return g.node(name, x, y)


def clip(g):
    x = g.pick()
    bounds = [g.given(np.array(g.choice([-1.0, -0.4, 0.2, 0.9]))) if g.chance(0.8) else "" for _ in "ab"]
    while bounds and not bounds[-1]:
        bounds.pop()
    return g.node("Clip", x, *bounds)


def where(g):
    x = g.pick()
    y = partner(g, x)
    z = partner(g, y)
    condition = g.node(g.choice(["Greater", "Less", "GreaterOrEqual", "LessOrEqual"]), x, z)
    return g.node("Where", condition, x, y) if g.chance(0.7) else g.node("Where", condition, z, x)


def casts(g):
    x = g.pick()
    kind = g.choice([TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16])
    g.precision = max(g.precision, {TensorProto.FLOAT16: 1e-3, TensorProto.BFLOAT16: 8e-3}.get(kind, 1e-7))
    h = g.node("Cast", x, to=kind)
    if kind != TensorProto.BFLOAT16 and g.chance(0.5):
        h = g.node(g.choice(["Tanh", "Neg", "Sigmoid"]), h)
    return g.node("Cast", h, to=TensorProto.DOUBLE)


def int_casts(g):
    """Integers that serve as positions: the gradient with respect to what they follow from is zero."""
    x = g.pick(lambda v: v.ndim >= 1 and v.size)
    axis = int(g.rng.integers(len(g.shape(x))))
    scaled = g.node("Mul", g.node("Abs", g.node("Tanh", partner_of(g, x))), g.constant(np.array(0.9)))
    index = g.node("Cast", scaled, to=g.choice([TensorProto.INT64, TensorProto.INT32]))
    return g.node(g.choice(["Gather", "GatherElements"]), x, index, axis=axis)


def partner_of(g, x):
    return g.pick(lambda v: v.ndim == len(g.shape(x)) and all(a <= b for a, b in zip(v.shape, g.shape(x), strict=True)),
                  fresh=g.shape(x))  # fmt: skip


def axes_of(g, rank, count=None):
    count = int(g.rng.integers(rank + 1)) if count is None else count
    chosen = g.rng.permutation(rank)[:count]
    return [int(a) - (rank if g.chance(0.4) else 0) for a in chosen]


def reduction(g):
    x = g.pick()
    names = "Sum Mean Max Min Prod SumSquare L1 L2 LogSum LogSumExp".split()
    name = f"Reduce{g.choice(names)}"
    if name == "ReduceLogSum":
        x = g.node("Add", g.node("Mul", x, x), g.constant(np.array(0.2)))
    axes = axes_of(g, len(g.shape(x))) or None
    options = {"keepdims": g.choice([0, 1, None])}
    if g.opset >= (13 if name == "ReduceSum" else 18):
        options["noop_with_empty_axes"] = g.choice([None, None, 1])
        return g.node(name, x, *([] if axes is None else [g.given(np.array(axes))]), **options)
    return g.node(name, x, axes=axes, **options)


def cumulative(g):
    x = g.pick(lambda v: v.ndim >= 1)
    axis = g.choice(axes_of(g, len(g.shape(x)), len(g.shape(x))))
    kind = g.choice([np.int64, np.int32])
    return g.node(
        "CumSum", x, g.given(np.array(axis, kind)), exclusive=g.choice([0, 1]), reverse=g.choice([0, 1])
    )


def top_k(g):
    x = g.pick(lambda v: v.ndim >= 1)
    axis = g.choice(axes_of(g, len(g.shape(x)), len(g.shape(x))))
    k = (
        int(g.rng.integers(g.shape(x)[axis] + 1))
        if g.empty
        else 1 + int(g.rng.integers(max(g.shape(x)[axis], 1)))
    )
    options = {"axis": axis, "largest": g.choice([0, 1]), "sorted": g.choice([0, 1])}
    return g.node("TopK", x, g.given(np.array([k])), n_outputs=2, **options)[0]


def matmul(g):
    x = g.pick(lambda v: 1 <= v.ndim <= 3)
    inner, columns = g.shape(x)[-1], g.choice([1, 2, 3])
    shapes = [(inner, columns), (inner,), (2, inner, columns), (1, inner, columns)]
    y = g.pick(lambda v: v.ndim >= 1 and v.shape[-2:][0] == inner, fresh=g.choice(shapes))
    name = g.choice(["MatMul", "MatMul", "FusedMatMul"])
    if name == "FusedMatMul":
        if min(len(g.shape(x)), len(g.shape(y))) < 2:
            raise Misfit
        left, right = g.choice([0, 1]), g.choice([0, 1])
        x = g.node("Transpose", x, perm=swap(len(g.shape(x)))) if left else x
        y = g.node("Transpose", y, perm=swap(len(g.shape(y)))) if right else y
        return g.node(
            name, x, y, domain="com.microsoft", transA=left, transB=right, alpha=g.choice([None, 0.5])
        )
    return g.node(name, x, y)


def swap(rank):
    return [*range(rank - 2), rank - 1, rank - 2]


def gemm(g):
    x = g.pick(lambda v: v.ndim == 2, fresh=g.dims(2))
    ta, tb = g.choice([0, 1]), g.choice([0, 1])
    rows, inner = g.shape(x)[::-1] if ta else g.shape(x)
    columns = g.choice([1, 2, 3])
    y = g.of_shape((columns, inner) if tb else (inner, columns))
    c = [g.of_shape(g.choice([(rows, columns), (columns,), (1, columns), (rows, 1), (), (1,)]))]
    options = {"alpha": g.choice([None, 0.5]), "beta": g.choice([None, -1.5])}
    return g.node("Gemm", x, y, *(c if g.chance(0.7) else []), transA=ta, transB=tb, **options)


def einsum(g):
    """Random labels: repeated ones, axes of length one that others broadcast, ellipses, a result or none."""
    sizes = {label: g.choice([1, 2, 3]) for label in "ijkl"}
    terms, operands, wide = [], [], g.dims(2)
    dots = g.chance(0.3)
    for _ in range(g.choice([1, 2, 2, 3])):
        labels = "".join(g.choice("ijkl") for _ in range(g.choice([0, 1, 2, 2, 3])))
        shape = [1 if labels.count(la) == 1 and g.chance(0.15) else sizes[la] for la in labels]
        if dots and g.chance(0.8):
            place = int(g.rng.integers(len(labels) + 1))
            extra = [1 if g.chance(0.2) else dim for dim in wide][: g.choice([2, 2, 2, 1])]
            shape[place:place] = extra
            labels = labels[:place] + "..." + labels[place:]
        terms.append(labels)
        operands.append(g.of_shape(tuple(shape)))
    present = sorted(set("".join(terms)) - {"."})
    result = "".join(la for la in g.rng.permutation(present) if g.chance(0.5)) if present else ""
    if any("..." in term for term in terms):
        result = g.choice(["..." + result, result + "..."])
    equation = ",".join(terms) + ("->" + result if g.chance(0.8) else "")
    return g.node("Einsum", *operands, equation=equation)


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


def normalization(g):
    kind = g.choice("Softmax LogSoftmax LpNormalization LayerNormalization BatchNormalization "
                    "InstanceNormalization GroupNormalization MeanVarianceNormalization Hardmax".split())  # fmt: skip
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
        y = g.of_shape((g.choice([1, 2, 3]), columns))
        return g.node(kind, x, y, domain="com.microsoft", metric=g.choice(["sqeuclidean", "euclidean"]))
    if kind == "ArrayFeatureExtractor":
        index = g.rng.integers(0, max(columns, 1), size=g.choice([1, 2]))
        return g.node(kind, x, g.given(index), domain="ai.onnx.ml")
    if kind == "Normalizer":
        return g.node(kind, x, domain="ai.onnx.ml", norm=g.choice(["MAX", "L1", "L2"]))
    return g.node(kind, x, domain="ai.onnx.ml", offset=[0.5], scale=[2.0])


def rounded(g):
    """Integers and back, and quantisation: to be refused."""
    x = g.pick(lambda v: v.size)
    if g.chance(0.5):
        k = g.node("Cast", x, to=g.choice([TensorProto.INT64, TensorProto.INT32]))
        return g.node("Cast", k, to=TensorProto.DOUBLE)
    h = g.node("Cast", x, to=TensorProto.FLOAT)
    scale = g.constant(np.array(0.1, np.float32))
    found = g.node("DequantizeLinear", g.node("QuantizeLinear", h, scale), scale)
    return g.node("Cast", found, to=TensorProto.DOUBLE)


# control flow


class Inner:
    """Nodes of a body: simple ones, on its inputs and on tensors from outside."""

    def __init__(self, g, tag):
        self.g, self.tag, self.nodes = g, tag, []

    def node(self, op_type, *inputs, output=None, **attributes):
        name = output or f"{self.tag}_{len(self.nodes)}"
        self.nodes.append(
            helper.make_node(op_type, inputs, [name], name=f"{self.tag}_n{len(self.nodes)}", **attributes)
        )
        return name

    def mix(self, names):
        """Return a tensor of the shape of the others, from some of them."""
        value = self.g.choice(names)
        for _ in range(self.g.choice([1, 2, 3])):
            if self.g.chance(0.5):
                value = self.node(self.g.choice(["Tanh", "Sin", "Sigmoid", "Neg"]), value)
            else:
                value = self.node(self.g.choice(["Add", "Mul", "Sub"]), value, self.g.choice(names))
        return self.node("Tanh", value)


def alike(g, x):
    """Return tensors of one shape, from outside of a body."""
    return g.floats(lambda v: v.shape == g.shape(x))[-4:]


def if_(g):
    x = g.pick()
    condition = g.given(np.array(g.chance(0.5)))
    graphs = {}
    tag = f"b{len(g.values)}"
    outputs = g.choice([1, 2])
    for side in ("then_branch", "else_branch"):
        body = Inner(g, f"{tag}{side[0]}")
        found = [body.mix(alike(g, x)) for _ in range(outputs)]
        infos = [info(n, g.values[x], [None] * g.values[x].ndim) for n in found]
        graphs[side] = helper.make_graph(body.nodes, side, [], infos)
    found = g.node("If", condition, n_outputs=outputs, **graphs)
    return found if outputs == 1 else g.choice(found)


def loop(g):
    x = g.pick()
    count = g.choice([1, 2])
    states = [g.choice(alike(g, x)) for _ in range(count)]
    tag = f"b{len(g.values)}"
    body = Inner(g, tag)
    inner = [f"{tag}_s{i}" for i in range(count)]
    names = [*inner, *alike(g, x)]
    going = body.node("Identity", f"{tag}_go")
    if g.chance(0.3):
        factor = body.node("Cast", f"{tag}_i", to=TensorProto.DOUBLE)
        names.append(body.node("Mul", inner[0], factor))
    ends = [
        body.mix(names) if g.chance(0.9) else body.node("Identity", g.choice(names)) for _ in range(count)
    ]
    kept = [body.mix(names)] if g.chance(0.5) else []
    unknown = [None] * g.values[x].ndim if g.chance(0.3) else None
    scalar = np.array(True)
    inputs = [info(f"{tag}_i", np.array(0)), info(f"{tag}_go", scalar)]
    inputs += [info(n, g.values[x], unknown) for n in inner]
    outputs = [info(going, scalar), *(info(n, g.values[x], unknown) for n in (*ends, *kept))]
    graph = helper.make_graph(body.nodes, "body", inputs, outputs)
    trips = g.given(np.array(g.choice([0, 1, 2, 3]) if g.empty else g.choice([1, 2, 3])))
    total = count + len(kept)
    go = g.given(np.array(True)) if g.chance(0.7) else ""
    found = g.node("Loop", trips, go, *states, n_outputs=total, body=graph)
    return found if total == 1 else g.choice(found)


def scan(g):
    x = g.pick(lambda v: v.ndim <= 2)
    shape = g.shape(x)
    states = [g.choice(alike(g, x)) for _ in range(g.choice([0, 1, 2]))]
    length, items = g.choice([1, 2, 3]), g.choice([1, 2])
    axes = [int(g.rng.integers(len(shape) + 1)) for _ in range(items)]
    sequences = [g.of_shape((*shape[:a], length, *shape[a:])) for a in axes]
    tag = f"b{len(g.values)}"
    body = Inner(g, tag)
    own = [f"{tag}_s{i}" for i in range(len(states))]
    read = [f"{tag}_x{i}" for i in range(items)]
    names = [*own, *read, *alike(g, x)]
    ends = [body.mix(names) for _ in own]
    kept = [body.mix(names) for _ in range(g.choice([0, 1, 2]) if own else 1)]
    infos = [[info(n, g.values[x]) for n in group] for group in ((*own, *read), (*ends, *kept))]
    graph = helper.make_graph(body.nodes, "body", *infos)
    ways = {
        "scan_input_axes": axes,
        "scan_input_directions": [g.choice([0, 1]) for _ in sequences],
        "scan_output_axes": [int(g.rng.integers(len(shape) + 1)) for _ in kept] or None,
        "scan_output_directions": [g.choice([0, 1]) for _ in kept] or None,
    }
    total = len(ends) + len(kept)
    found = g.node("Scan", *states, *sequences, n_outputs=total, body=graph, num_scan_inputs=items, **ways)
    return found if total == 1 else g.choice(found)


CONTROL = [if_, loop, loop, scan, scan]
ROUNDING = [rounded]
MAKERS = [
    unary, unary, narrow_domain, binary, binary, clip, where, casts, int_casts, reduction, reduction, cumulative,
    top_k, matmul, gemm, einsum, einsum, reshape, expand, tile, concat, split, slice_, pad, transpose, trilu,
    depth, gather, gather, scatter, scatter, one_hot, normalization, normalization, losses, conv, conv, pool, pool,
    others,
]  # fmt: skip
