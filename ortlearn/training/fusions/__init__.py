"""Graph passes that make a training step faster without changing its results."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from onnx import ModelProto

from ...graphs import prune
from ...graphs.view import GraphView
from .arithmetic import (
    drop_identities,
    factor_out_scalars,
    merge_reductions,
    replace_sign_of_relu,
    simplify_products,
    sum_of_squares,
)
from .broadcasting import align_scalars
from .gemm import fuse_matmul_add, fuse_matmul_sub, fuse_updates
from .scalar_propagation import propagate_scalars
from .tables import gather_scalars, scatter_into_weights

__all__ = ["PASSES", "fuse_step"]

#: Passes in the order they are applied.
PASSES = (
    propagate_scalars,
    simplify_products,
    factor_out_scalars,
    merge_reductions,
    sum_of_squares,
    fuse_matmul_add,
    fuse_matmul_sub,
    fuse_updates,
    gather_scalars,
    scatter_into_weights,
    replace_sign_of_relu,
    align_scalars,
    drop_identities,
)


def fuse_step(model: ModelProto, passes: Iterable[Callable] = PASSES) -> ModelProto:
    """Return a faster graph of a training step."""
    graph = GraphView(model, prefix="fused_")
    for apply in passes:
        apply(graph)
        graph.drop_unused()
    return prune(graph.to_model())
