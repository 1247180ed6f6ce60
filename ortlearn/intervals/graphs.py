"""Graphs of intervals: calibration, and one file of all members with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, TensorProto, helper

from ..graphs import GraphBuilder, TensorType, make_inputs_of, make_value_info
from .bases import Base, named

__all__ = ["Calibration", "interval_graph", "write_intervals"]


@dataclass(frozen=True)
class Calibration:
    """Constants of calibration: a row for each group, the last one for samples of any other group."""

    columns: np.ndarray  # columns of the levels at which an interval begins and ends, int64 of shape (2,)
    interval: np.ndarray  # width added to both sides, of shape (groups + 1, 1)
    shifts: np.ndarray  # shifts of the quantiles, of shape (groups + 1, levels)

    def arrays(self, dtype: np.dtype) -> dict[str, np.ndarray]:
        """Return the constants by the names of their weights."""
        return {
            "calibration.columns": self.columns.astype(np.int64),
            "calibration.interval": self.interval.astype(dtype),
            "calibration.quantiles": self.shifts.astype(dtype),
        }


def write_intervals(
    op: GraphBuilder, base: Base, outputs: Sequence[str], levels: np.ndarray, constants: Calibration, row: str
) -> dict[str, str]:
    """Write the outputs of intervals; ``row`` has the row of the constants for each sample, or is empty."""
    values, scale = base.write(op, outputs, levels)
    columns, interval, shifts = (
        named(op, name, array, array.dtype) for name, array in constants.arrays(op.float_dtype).items()
    )
    if row:
        interval, shifts = op.Gather(interval, row), op.Gather(shifts, row)
    if scale:
        interval, shifts = op.Mul(interval, scale), op.Mul(shifts, scale)
    sides = op.Mul(interval, np.array([[-1.0, 1.0]], dtype=op.float_dtype))
    ends = op.Add(op.Gather(values, columns, axis=1), sides)
    # Ends that have crossed meet in the middle.
    middle = op.MatMul(ends, np.full((2, 1), 0.5, dtype=op.float_dtype))
    low, high = op.Gather(ends, [0], axis=1), op.Gather(ends, [1], axis=1)
    count, median = [len(levels)], [int(np.argmin(np.abs(levels - 0.5)))]
    ordered = op.TopK(op.Add(values, shifts), count, axis=1, largest=0, sorted=1, n_outputs=2)[0]
    flat = {
        "prediction": op.Gather(ordered, median, axis=1),
        "lower": op.Min(low, middle),
        "upper": op.Max(high, middle),
    }
    found = {name: op.Reshape(tensor, [-1]) for name, tensor in flat.items()}
    return {**found, "quantiles": ordered, "values": values, "scale": scale}


def interval_graph(
    base: Base, widths: Sequence[int], levels: np.ndarray, constants: Calibration, dtype: np.dtype
) -> ModelProto:
    """Return the graph from the outputs of members to intervals.

    Its inputs are ``output_0``, ... of the members, the row of each sample, and the calibration constants.
    """
    kind = helper.np_dtype_to_tensor_dtype(dtype)
    op, names = GraphBuilder(dtype=dtype), [f"output_{number}" for number in range(len(widths))]
    types = [TensorType(kind, ("N", width)) for width in widths] + [TensorType(TensorProto.INT64, ("N",))]
    inputs = [make_value_info(*pair) for pair in zip([*names, "row"], types, strict=True)]
    for value in inputs:
        op.claim(value.name)
    found = write_intervals(op, base, names, levels, constants, "row")
    outputs = []
    for name, tensor in found.items():
        if tensor:
            op.node("Identity", tensor, outputs=[name])
            outputs.append(make_value_info(name, TensorType(kind, None)))
    graph = helper.make_graph(op.nodes, "intervals", inputs, outputs, op.initializers)
    opsets = [helper.make_opsetid(domain, version) for domain, version in op.opsets.items()]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return make_inputs_of(model, list(constants.arrays(dtype)))
