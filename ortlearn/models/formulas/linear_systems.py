"""Linear systems solved by elimination, and iterations as Loop operators."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from onnx import TensorProto, ValueInfoProto, helper

from ...graphs import GraphBuilder

LARGEST = 256  # maximum number of equations; each one adds seven nodes
Kind = tuple[int, list]  # element type and shape of a tensor


def solve_positive(
    op: GraphBuilder, matrix: str, right: str, size: int, width: int, dtype: Any = None
) -> tuple[str, list[str]]:
    """Return solutions (..., size, width) of linear systems, and pivots, whose product is the determinant."""
    # Gauss-Jordan elimination needs no row exchanges for positive definite matrices, and is forward stable
    # (Higham, "Accuracy and Stability of Numerical Algorithms", 2002, theorem 14.5). Eliminated columns are
    # unit vectors, and are dropped.
    identity = np.eye(size, dtype=dtype or op.float_dtype)
    system, pivots = op.Concat(matrix, right, axis=-1), []
    for i in range(size):
        sizes = np.array([1, size - i - 1 + width])
        column, rest = op.Split(system, sizes, axis=-1, n_outputs=2)
        pivots.append(op.Gather(column, [i], axis=-2))
        row = op.Div(op.Gather(rest, [i], axis=-2), pivots[-1])
        system = op.Sub(rest, op.Mul(op.Sub(column, identity[:, i : i + 1]), row))
    return system, pivots


def elem_type(op: GraphBuilder) -> int:
    """Return the ONNX floating-point type of a builder."""
    return helper.np_dtype_to_tensor_dtype(op.float_dtype)


@contextmanager
def in_double(op: GraphBuilder, *tensors: str) -> Iterator[list[str]]:
    """Yield tensors cast to float64; the builder writes float64 constants within the context."""
    before, op.float_dtype = op.float_dtype, np.dtype(np.float64)
    try:
        yield [op.Cast(name, to=TensorProto.DOUBLE) if before != np.float64 else name for name in tensors]
    finally:
        op.float_dtype = before


def iterate(
    op: GraphBuilder, name: str, max_iter: int, start: Sequence[tuple[str, Kind]], step: Callable[..., Any]
) -> tuple[str, ...]:
    """Append a Loop and return its final state, whose shapes onnx does not infer."""
    # step(body, number, *state) appends an iteration to the body; it returns a boolean scalar (whether to
    # continue) and the new state.
    body = GraphBuilder(op.opset, dtype=op.float_dtype, prefix=op.unique("step") + "_")
    number, before = body.unique("number"), body.unique("before")
    state = [body.unique("state") for _ in start]
    kinds = [kind for _, kind in start]
    proceed, *results = step(body, number, *state)
    scalar: list[Kind] = [(TensorProto.INT64, []), (TensorProto.BOOL, [])]
    inputs = _infos([number, before, *state], [*scalar, *kinds])
    outputs = _infos([proceed, *results], [scalar[1], *kinds])
    graph = helper.make_graph(body.nodes, name, inputs, outputs, initializer=body.initializers)
    first = [tensor for tensor, _ in start]
    final = op.Loop(np.array(max_iter), np.array(True), *first, n_outputs=len(first), body=graph)
    return (final,) if isinstance(final, str) else final


def _infos(names: Sequence[str], kinds: Sequence[Any]) -> list[ValueInfoProto]:
    return [helper.make_tensor_value_info(name, *kind) for name, kind in zip(names, kinds, strict=True)]
