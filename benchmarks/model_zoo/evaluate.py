"""Run a float64 graph in onnxruntime or in onnx's reference evaluator."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from scipy.special import erf

from ortlearn.graphs import subgraphs
from ortlearn.runtime.devices import Device
from ortlearn.runtime.sessions import make_session

__all__ = ["runner"]

#: onnxruntime computes these in float32 whatever their type.
_IMPRECISE = {"ReduceL2", "Shrink"}


class Erf(OpRun):
    """The error function; that of onnx always has float32 precision."""

    op_domain = ""

    def _run(self, x):
        return (np.asarray(erf(x)),)


def runner(model: ModelProto) -> Callable[[dict[str, np.ndarray]], list]:
    """Return a function that runs a graph in onnxruntime, or in onnx's evaluator if kernels are missing."""
    if _IMPRECISE.isdisjoint(_operators(model.graph)):
        try:
            session = make_session(model, Device("cpu"))
            return lambda feeds: session.run(None, feeds)
        except Exception:  # onnxruntime raises errors of every kind: one has no float64 kernel
            pass
    evaluator = ReferenceEvaluator(model, new_ops=[Erf])
    return lambda feeds: list(evaluator.run(None, feeds))


def _operators(graph) -> set[str]:
    return {node.op_type for node in graph.node}.union(
        *(_operators(inner) for node in graph.node for inner in subgraphs(node))
    )
