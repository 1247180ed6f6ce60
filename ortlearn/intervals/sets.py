"""Prediction sets and calibrated probabilities, as graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.isotonic import IsotonicRegression

from ..graphs import GraphBuilder
from .bases import Base, named
from .calibration import ASCENDING, Calibration

__all__ = ["FITS", "Isotonic", "Probabilities", "Scaled", "SetCalibration", "SetScores"]

#: Smallest probability whose logarithm is scaled.
SMALLEST = 1e-7
#: Smallest distance of two knots of a step of isotonic regression.
STEP = 1e-6


@dataclass(frozen=True)
class Probabilities:
    """Probabilities as the model gives them."""

    def write(self, op: GraphBuilder, shares: str) -> str:
        """Write calibrated probabilities."""
        return shares


@dataclass(frozen=True)
class Scaled(Probabilities):
    """Temperature or vector scaling: softmax of ``scale * log(p) + shift`` (Guo et al. 2017)."""

    scale: np.ndarray  # (1,) or (n_classes,)
    shift: np.ndarray

    def write(self, op: GraphBuilder, shares: str) -> str:
        """Write calibrated probabilities."""
        logs = op.Log(op.Max(shares, op.constant(SMALLEST)))
        scaled = op.Mul(logs, named(op, "probabilities.scale", self.scale))
        return op.Softmax(op.Add(scaled, named(op, "probabilities.shift", self.shift)), axis=1)


@dataclass(frozen=True)
class Isotonic(Probabilities):
    """Isotonic regression of each class against the others, normalised (Zadrozny and Elkan 2002).

    Functions are linear between knots of shape (n_classes, n_knots); steps have a width of ``STEP``.
    """

    knots: np.ndarray
    values: np.ndarray

    def write(self, op: GraphBuilder, shares: str) -> str:
        """Write ``v_0 + sum_i (v_{i+1} - v_i) clip((p - x_i) / (x_{i+1} - x_i), 0, 1)``."""
        knots, values = self.knots.astype(op.float_dtype), self.values.astype(op.float_dtype)
        widths = np.maximum(np.diff(knots, axis=1), op.float_dtype.type(STEP))
        above = op.Sub(op.Unsqueeze(shares, [2]), named(op, "probabilities.knots", knots[:, :-1]))
        parts = op.Clip(op.Div(above, widths), op.constant(0.0), op.constant(1.0))
        rises = op.Mul(parts, named(op, "probabilities.rises", np.diff(values, axis=1)))
        sums = op.Squeeze(op.MatMul(rises, np.ones((widths.shape[1], 1), op.float_dtype)), [2])
        found = op.Add(op.Add(sums, named(op, "probabilities.lowest", values[:, 0])), op.constant(SMALLEST))
        return op.Div(found, op.MatMul(found, np.ones((len(knots), len(knots)), op.float_dtype)))


@dataclass(frozen=True)
class SetScores(Base):
    """Nonconformity of each class: ``1 - p`` (LAC), or the probability of all likelier classes (APS).

    Sadinle, Lei and Wasserman 2019; Romano, Sesia and Candes 2020, without randomisation: the likeliest class
    has a score of zero and is in every set.
    """

    adaptive: bool
    probabilities: Probabilities

    def write(self, op: GraphBuilder, outputs: Sequence[str], levels: np.ndarray) -> tuple[str, str]:
        """Write the scores and the calibrated probabilities."""
        shares = self.probabilities.write(op, outputs[0])
        if not self.adaptive:
            return op.Sub(op.constant(1.0), shares), shares
        count = op.Slice(op.Shape(shares), [1], [2])
        ordered, places = op.TopK(shares, count, largest=1, **ASCENDING)
        sums = op.CumSum(ordered, np.array(1), exclusive=1)
        return op.ScatterElements(op.Mul(shares, op.constant(0.0)), places, sums, axis=1), shares


@dataclass(frozen=True)
class SetCalibration(Calibration):
    """Largest score of a class of the set: a row for each group, the last one for any other."""

    largest: np.ndarray  # (groups + 1, 1)

    def arrays(self, dtype: np.dtype) -> dict[str, np.ndarray]:
        """Return the constants by the names of their weights."""
        return {"calibration.interval": self.largest.astype(dtype)}

    def write(
        self, op: GraphBuilder, base: Base, outputs: Sequence[str], levels: np.ndarray, row: str
    ) -> dict[str, str]:
        """Write sets."""
        (scores, shares), (largest,) = base.write(op, outputs, levels), self.named(op)
        found = op.LessOrEqual(scores, op.Gather(largest, row) if row else largest)
        return {"set": found, "values": scores, "probabilities": shares}


def fit_scaling(shares: np.ndarray, y: np.ndarray, is_vector: bool) -> Scaled:
    """Minimise the log loss of scaled probabilities, with the identity as prior (a normal distribution)."""
    logs, count = np.log(np.maximum(shares, SMALLEST)), shares.shape[1]
    expected, size = np.eye(count)[y], count if is_vector else 1

    def objective(point: np.ndarray) -> tuple[float, np.ndarray]:
        scores = logs * point[:size] + (point[size:] if is_vector else 0.0)
        slopes = (softmax(scores, axis=1) - expected) / len(y)
        rises = (slopes * logs).sum(axis=0)
        gradient = np.r_[rises, slopes.sum(axis=0)] if is_vector else rises.sum(keepdims=True)
        loss = -float((expected * log_softmax(scores, axis=1)).sum() / len(y))
        change = point - start
        return loss + float(change @ change) / (2 * len(y)), gradient + change / len(y)

    start = np.r_[np.ones(size), np.zeros(count if is_vector else 0)]
    bounds = [(1e-3, 1e3)] * size + [(-20.0, 20.0)] * (len(start) - size)
    found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return Scaled(found[:size], found[size:] if is_vector else np.zeros(1))


def fit_isotonic(shares: np.ndarray, y: np.ndarray) -> Isotonic:
    """Fit an isotonic regression per class, between ``1 / (n + 2)`` and ``1 - 1 / (n + 2)``.

    Functions with fewer knots repeat the last one.
    """
    parts, lowest = [], 1 / (len(y) + 2)
    for number in range(shares.shape[1]):
        model = IsotonicRegression(out_of_bounds="clip", y_min=lowest, y_max=1 - lowest)
        model.fit(shares[:, number].astype(np.float64), y == number)
        parts.append((model.X_thresholds_, model.y_thresholds_))
    length = max(2, *(len(knots) for knots, _ in parts))
    padded = [[np.pad(part, (0, length - len(part)), mode="edge") for part in pair] for pair in parts]
    return Isotonic(np.array([pair[0] for pair in padded]), np.array([pair[1] for pair in padded]))


FITS = {
    "temperature": lambda shares, y: fit_scaling(shares, y, False),
    "vector": lambda shares, y: fit_scaling(shares, y, True),
    "isotonic": fit_isotonic,
}
