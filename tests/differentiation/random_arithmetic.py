"""Generators of random nodes: elementwise functions, reductions and products."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from tests.differentiation.random_models import SINCE, Misfit

__all__ = [
    "axes_of", "binary", "casts", "clip", "cumulative", "einsum", "gemm", "int_casts", "matmul",
    "narrow_domain", "reduction", "top_k", "unary", "where",
]  # fmt: skip

SMOOTH = "Tanh Sigmoid Softplus Sin Cos Erf Atan Neg Softsign Asinh Identity Exp Sinh Cosh".split()
KINKED = "Relu Abs LeakyRelu Elu Selu Celu HardSigmoid HardSwish ThresholdedRelu Shrink Mish Gelu".split()
STEPS = "Floor Ceil Round Sign".split()


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
    """Integers used as indices: gradients through them are zero."""
    x = g.pick(lambda v: v.ndim >= 1 and v.size)
    axis = int(g.rng.integers(len(g.shape(x))))
    scaled = g.node("Mul", g.node("Abs", g.node("Tanh", partner_of(g, x))), g.constant(np.array(0.9)))
    index = g.node("Cast", scaled, to=g.choice([TensorProto.INT64, TensorProto.INT32]))
    return g.node(g.choice(["Gather", "GatherElements"]), x, index, axis=axis)


def partner_of(g, x):
    shape = g.shape(x)

    def fits(v):
        return v.ndim == len(shape) and all(a <= b for a, b in zip(v.shape, shape, strict=True))

    return g.pick(fits, fresh=shape)


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
    """Random equations: repeated labels, broadcast axes of length one, ellipses, with and without result."""
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
