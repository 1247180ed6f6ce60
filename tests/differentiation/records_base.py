"""Test records of operators, and distributions of their inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import defs

from ortlearn.runtime.readable_versions import newest_opset

ML, MS = "ai.onnx.ml", "com.microsoft"
#: The oldest and newest opsets, and one between them.
ALL = (13, 18, newest_opset())
#: For operators that are newer than opset 21.
NEWEST = {"opsets": (defs.onnx_opset_version(),), "kernel": newest_opset() == defs.onnx_opset_version()}


@dataclass(frozen=True, eq=False)
class Record:
    """Test record of an operator.

    Inputs are functions of a random generator, arrays, or None if omitted. ``constants`` are the positions
    of inputs stored in the graph. ``single`` is for operators whose result is always float32. ``second``
    is whether second derivatives are tested, ``empty`` whether empty batches are, ``kernel`` whether
    onnxruntime can run the operator; otherwise tests of float32 use the reference evaluator.
    """

    op_type: str
    inputs: tuple
    attributes: dict[str, Any] = field(default_factory=dict)
    domain: str = ""
    opsets: tuple[int, ...] = ALL
    n_outputs: int = 1
    constants: tuple[int, ...] = ()
    wrt: tuple[int, ...] | None = None
    single: bool = False
    symbolic: bool = True
    second: bool = True
    empty: bool = True
    kernel: bool = True

    def __str__(self):
        details = [f"{name}={value}" for name, value in self.attributes.items() if name != "equation"]
        details += [self.attributes["equation"]] if "equation" in self.attributes else []
        shapes = ["x".join(map(str, np.shape(a))) for a in self.arrays() if a is not None]
        return "-".join([self.op_type, *shapes, *details]).replace(" ", "")

    def arrays(self):
        rng = np.random.default_rng(sum(map(ord, self.op_type)))
        arrays = [value(rng) if callable(value) else value for value in self.inputs]
        arrays = [None if array is None else np.asarray(array) for array in arrays]
        if self.single:
            arrays = [a.astype(np.float32) if a is not None and a.dtype.kind == "f" else a for a in arrays]
        return arrays


def normal(*shape) -> Callable:
    return lambda rng: rng.normal(size=shape)


def within(low, high, *shape) -> Callable:
    return lambda rng: rng.uniform(low, high, size=shape)


def positive(*shape) -> Callable:
    return within(0.5, 2.0, *shape)


def away(*shape, points=(0.0,), scale=2.0) -> Callable:
    """Return values at least 0.05 away from some points."""

    def draw(rng):
        values = rng.normal(size=shape) * scale
        for point in points:
            near = np.abs(values - point) < 0.05
            values = np.where(near, point + 0.3, values)
        return values

    return draw


def distinct(*shape) -> Callable:
    """Return values at least 0.1 apart, in a random order."""
    return lambda rng: (rng.permutation(int(np.prod(shape))) * 0.13 - 1.0).reshape(shape)


def ints(*values) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def ones_like_mask(*shape) -> Callable:
    return lambda rng: rng.integers(0, 2, size=shape).astype(bool)


def unary(names: str, draw: Callable, **options) -> list[Record]:
    return [Record(name, (draw,), **options) for name in names.split()]
