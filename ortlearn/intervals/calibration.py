"""Calibration constants, which are named weights of the file, and the graphs that apply them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper

from ..graphs import GraphBuilder, TensorType, make_inputs_of, make_value_info
from .bases import Base, named

__all__ = ["Calibration", "FoldCalibration", "SplitCalibration", "interval_graph"]

ASCENDING = {"axis": 1, "sorted": 1, "n_outputs": 2}


class Calibration:
    """Constants, and how they make intervals of a base."""

    def arrays(self, dtype: np.dtype) -> dict[str, np.ndarray]:
        """Return the constants by the names of their weights."""
        raise NotImplementedError

    def write(
        self, op: GraphBuilder, base: Base, outputs: Sequence[str], levels: np.ndarray, row: str
    ) -> dict[str, str]:
        """Write ends, prediction and quantiles; ``row`` has the row of the constants for each sample."""
        raise NotImplementedError

    def named(self, op: GraphBuilder) -> list[str]:
        """Add the constants, and return their names."""
        return [named(op, name, array, array.dtype) for name, array in self.arrays(op.float_dtype).items()]


@dataclass(frozen=True)
class SplitCalibration(Calibration):
    """Constants of split calibration: a row for each group, the last one for samples of any other group."""

    ends: np.ndarray  # weights of the levels at both ends of an interval, of shape (levels, 2)
    interval: np.ndarray  # width added to both sides, of shape (groups + 1, 1)
    shifts: np.ndarray  # shifts of the quantiles, of shape (groups + 1, levels)

    def arrays(self, dtype: np.dtype) -> dict[str, np.ndarray]:
        """Return the constants by the names of their weights."""
        return {
            "calibration.ends": self.ends.astype(dtype),
            "calibration.interval": self.interval.astype(dtype),
            "calibration.quantiles": self.shifts.astype(dtype),
        }

    def write(
        self, op: GraphBuilder, base: Base, outputs: Sequence[str], levels: np.ndarray, row: str
    ) -> dict[str, str]:
        """Move the ends outwards, and the quantiles by their shifts."""
        (values, scale), (weights, interval, shifts) = base.write(op, outputs, levels), self.named(op)
        if row:
            interval, shifts = op.Gather(interval, row), op.Gather(shifts, row)
        if scale:
            interval, shifts = op.Mul(interval, scale), op.Mul(shifts, scale)
        sides = op.Mul(interval, np.array([[-1.0, 1.0]], dtype=op.float_dtype))
        ends = op.Add(op.MatMul(values, weights), sides)
        low, high = op.Gather(ends, [0], axis=1), op.Gather(ends, [1], axis=1)
        # Ends that have crossed meet in the middle; the middle of infinite ends is not read.
        middle, fine = op.MatMul(ends, np.full((2, 1), 0.5, op.float_dtype)), op.LessOrEqual(low, high)
        ordered = op.TopK(op.Add(values, shifts), [len(levels)], largest=0, **ASCENDING)[0]
        found = {"lower": op.Where(fine, low, middle), "upper": op.Where(fine, high, middle)}
        return {**_with_median(op, found, ordered, levels), "values": values, "scale": scale}


@dataclass(frozen=True)
class FoldCalibration(Calibration):
    """Constants of CV+ (Barber et al. 2021): fold and residual of each training sample, and ranks."""

    folds: np.ndarray  # (n,)
    residuals: np.ndarray  # (n,)
    ends: int  # rank of an end from outside
    ranks: np.ndarray  # ranks of the quantiles, from 0

    def arrays(self, dtype: np.dtype) -> dict[str, np.ndarray]:
        """Return the constants by the names of their weights."""
        return {
            "calibration.folds": self.folds.astype(np.int64),
            "calibration.residuals": self.residuals.astype(dtype),
            "calibration.interval": np.array([self.ends], dtype=np.int64),
            "calibration.quantiles": self.ranks.astype(np.int64),
        }

    def write(
        self, op: GraphBuilder, base: Base, outputs: Sequence[str], levels: np.ndarray, row: str
    ) -> dict[str, str]:
        """Write order statistics of the predictions of folds with the residuals of their samples."""
        (values, _), (folds, residuals, ends, ranks) = base.write(op, outputs, levels), self.named(op)
        centres, width, last = op.Gather(values, folds, axis=1), op.Abs(residuals), op.Sub(ends, [1])
        lows = op.TopK(op.Sub(centres, width), ends, largest=0, **ASCENDING)[0]
        highs = op.TopK(op.Add(centres, width), ends, largest=1, **ASCENDING)[0]
        found = {"lower": op.Gather(lows, last, axis=1), "upper": op.Gather(highs, last, axis=1)}
        signed = op.TopK(op.Add(centres, residuals), op.Shape(residuals), largest=0, **ASCENDING)[0]
        return {**_with_median(op, found, op.Gather(signed, ranks, axis=1), levels), "values": values}


def _with_median(
    op: GraphBuilder, found: dict[str, str], quantiles: str, levels: np.ndarray
) -> dict[str, str]:
    """Return outputs of shape (n,), the median among them, and the quantiles."""
    median = op.Gather(quantiles, [int(np.argmin(np.abs(levels - 0.5)))], axis=1)
    columns = {"prediction": median, **found}
    return {**{name: op.Reshape(part, [-1]) for name, part in columns.items()}, "quantiles": quantiles}


def interval_graph(
    base: Base, kinds: Sequence[tuple[int, np.dtype]], levels: np.ndarray, constants: Calibration, dtype: Any
) -> ModelProto:
    """Return the graph from the outputs of members to intervals.

    Its inputs are ``output_0``, ... of members, of these widths and types, the row of each sample, and the
    calibration constants.
    """
    kind = helper.np_dtype_to_tensor_dtype(dtype)
    op, names = GraphBuilder(dtype=dtype), [f"output_{number}" for number in range(len(kinds))]
    types = [TensorType(helper.np_dtype_to_tensor_dtype(own), ("N", width)) for width, own in kinds]
    types.append(TensorType(TensorProto.INT64, ("N",)))
    inputs = [make_value_info(*pair) for pair in zip([*names, "row"], types, strict=True)]
    for value in inputs:
        op.claim(value.name)
    found = constants.write(op, base, names, levels, "row")
    outputs = []
    for name, tensor in found.items():
        if tensor:
            op.node("Identity", tensor, outputs=[name])
            outputs.append(
                make_value_info(name, TensorType(TensorProto.BOOL if name == "set" else kind, None))
            )
    graph = helper.make_graph(op.nodes, "intervals", inputs, outputs, op.initializers)
    opsets = [helper.make_opsetid(domain, version) for domain, version in op.opsets.items()]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    free = make_inputs_of(model, list(constants.arrays(dtype)))
    for value in free.graph.input:  # the number of calibration samples may change
        if value.name.startswith("calibration."):
            value.type.tensor_type.shape.dim[0].dim_param = value.name
    return free
