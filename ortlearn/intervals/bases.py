"""Bases of intervals: what the outputs of trained members say about quantiles and scale, as graphs.

A base writes two tensors: values of shape (n, levels), which calibration shifts, and the scale of shape
(n, 1) that it multiplies shifts by, or an empty name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import numpy_helper
from onnx.helper import np_dtype_to_tensor_dtype

from ..graphs import GraphBuilder
from ..losses.quantile import quantiles_of_scores
from ..models.trees.nodes import FusedTrees, Nodes

__all__ = [
    "Base",
    "Centre",
    "Copies",
    "Folds",
    "Increments",
    "Laplace",
    "Leaves",
    "Separate",
    "named",
    "spread",
]

#: Smallest difference of two values of a distribution function; smaller ones would magnify rounding.
TINY = 1e-3


def named(op: GraphBuilder, name: str, value: np.ndarray, dtype: np.dtype | None = None) -> str:
    """Add a constant under a given name, with a number if a tensor of a given file has it."""
    name = name if op.claim(name) else op.unique(name)
    array = np.asarray(value, dtype=dtype or op.float_dtype)
    op.initializers.append(numpy_helper.from_array(array, name))
    return name


def spread(op: GraphBuilder, values: str, levels: np.ndarray) -> str:
    """Write a column once per level."""
    return op.Add(values, np.zeros((1, len(levels)), dtype=op.float_dtype))


@dataclass(frozen=True)
class Base:
    """A base of intervals."""

    def write(self, op: GraphBuilder, outputs: Sequence[str], levels: np.ndarray) -> tuple[str, str]:
        """Write values and scale from the outputs of the members, of shape (n, k) each."""
        raise NotImplementedError


@dataclass(frozen=True)
class Increments(Base):
    """Quantiles of one model with several outputs, for labels ``(y - centre) / spread``."""

    centre: float
    spread: float
    is_shift: bool = False  # whether they are added to the prediction of the first member

    def write(self, op: GraphBuilder, outputs: Sequence[str], levels: np.ndarray) -> tuple[str, str]:
        """Write the quantiles of the scores."""
        found = quantiles_of_scores(op, outputs[-1], levels)
        found = op.Mul(found, named(op, "quantiles.spread", np.array(self.spread)))
        found = op.Add(found, named(op, "quantiles.centre", np.array(self.centre)))
        return (op.Add(found, outputs[0]) if self.is_shift else found), ""


@dataclass(frozen=True)
class Separate(Base):
    """Quantiles of one member per level, put in order (Chernozhukov et al. 2010)."""

    def write(self, op: GraphBuilder, outputs: Sequence[str], levels: np.ndarray) -> tuple[str, str]:
        """Write the sorted outputs."""
        found = op.Concat(*outputs, axis=1)
        return op.TopK(found, [len(levels)], axis=1, largest=0, sorted=1, n_outputs=2)[0], ""


@dataclass(frozen=True)
class Leaves(Base):
    """Quantiles of distribution functions in the leaves that samples reach, the mean over trees.

    The second member gives the samples that trees compare. The functions are linear between thresholds.
    """

    nodes: Nodes
    table: np.ndarray  # (n_leaves, n_thresholds)
    thresholds: np.ndarray
    is_shift: bool = False  # whether quantiles are added to the prediction of the first member

    def write(self, op: GraphBuilder, outputs: Sequence[str], levels: np.ndarray) -> tuple[str, str]:
        """Write ``t_0 + sum_g (t_{g+1} - t_g) clip((q - F_g) / (F_{g+1} - F_g), 0, 1)``."""
        sums = op.unique("distributions")
        samples = op.Cast(outputs[1], to=np_dtype_to_tensor_dtype(self.nodes.threshold.dtype))
        FusedTrees(samples, "", self.nodes).write_rows(op, sums, self.table)
        shares = op.Cast(sums, to=np_dtype_to_tensor_dtype(op.float_dtype))
        low = op.Unsqueeze(op.Slice(shares, [0], [-1], [1]), [1])
        high = op.Unsqueeze(op.Slice(shares, [1], [np.iinfo(np.int64).max], [1]), [1])
        above = op.Sub(levels.reshape(1, -1, 1).astype(op.float_dtype), low)
        share = op.Div(above, op.Max(op.Sub(high, low), op.constant(TINY)))
        share = op.Clip(share, op.constant(0.0), op.constant(1.0))
        steps = named(op, "quantiles.steps", np.diff(self.thresholds).reshape(-1, 1))
        found = op.Squeeze(op.MatMul(share, steps), [2])
        found = op.Add(found, named(op, "quantiles.lowest", self.thresholds[:1]))
        return (op.Add(found, outputs[0]) if self.is_shift else found), ""


@dataclass(frozen=True)
class Centre(Base):
    """The prediction of the first member for all levels; the scale is that of a second one, if any.

    The second member predicts the logarithm of the absolute residual.
    """

    smallest: float = 0.0  # added to the scale

    def write(self, op: GraphBuilder, outputs: Sequence[str], levels: np.ndarray) -> tuple[str, str]:
        """Write the prediction, and the scale if there is one."""
        values = spread(op, outputs[0], levels)
        if len(outputs) == 1:
            return values, ""
        return values, op.Add(op.Exp(outputs[1]), named(op, "scale.smallest", np.array(self.smallest)))


@dataclass(frozen=True)
class Copies(Base):
    """Mean of copies of a model; the squared scale is their variance plus that of the noise."""

    noise: float
    has_own: bool = False  # whether the first member is a given model, not a copy

    def write(self, op: GraphBuilder, outputs: Sequence[str], levels: np.ndarray) -> tuple[str, str]:
        """Write mean and standard deviation."""
        copies = outputs[1:] if self.has_own else outputs
        joined = op.Concat(*copies, axis=1)
        shares = np.full((len(copies), 1), 1 / len(copies), dtype=op.float_dtype)
        mean = op.MatMul(joined, shares)
        deviation = op.Sub(joined, mean)
        variance = op.MatMul(op.Mul(deviation, deviation), shares)
        noise = named(op, "scale.noise", np.array(self.noise))
        scale = op.Sqrt(op.Add(variance, op.Mul(noise, noise)))
        return spread(op, outputs[0] if self.has_own else mean, levels), scale


@dataclass(frozen=True)
class Laplace(Base):
    """A prediction with the posterior of the last layer (MacKay 1992; Daxberger et al. 2021).

    The second output has the gradients of the prediction of a sample by the weights of the last layer: the
    inputs of the layer; that of the intercept is 1, and is not among them. Their covariance is
    ``factor @ factor.T``.
    """

    factor: np.ndarray
    noise: float

    def write(self, op: GraphBuilder, outputs: Sequence[str], levels: np.ndarray) -> tuple[str, str]:
        """Write the prediction and the standard deviation of the label."""
        factor = named(op, "laplace.factor", self.factor[:-1])
        points = op.Add(op.MatMul(outputs[1], factor), named(op, "laplace.intercept", self.factor[-1]))
        noise = named(op, "scale.noise", np.array(self.noise))
        variance = op.MatMul(op.Mul(points, points), np.ones((self.factor.shape[1], 1), op.float_dtype))
        return spread(op, outputs[0], levels), op.Sqrt(op.Add(variance, op.Mul(noise, noise)))


@dataclass(frozen=True)
class Folds(Base):
    """Predictions of the models of folds, after that of a given model if there is one."""

    has_own: bool = False

    def write(self, op: GraphBuilder, outputs: Sequence[str], levels: np.ndarray) -> tuple[str, str]:
        """Write the predictions, a column per fold."""
        return op.Concat(*outputs[self.has_own :], axis=1), ""
