"""Fitted intervals: members, base, calibration samples, and what is computed from them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from onnx import ModelProto

from ..graphs import GraphBuilder
from ..inference.result_types import as_floats_of
from ..runtime.checked_sessions import open_session
from ..runtime.devices import Device
from ..runtime.forks import PerProcess
from .bases import Base
from .composition import composed
from .conformal import conformal_quantile, level_quantiles, needed
from .graphs import Calibration, interval_graph, write_intervals
from .members import Member

__all__ = ["CalibrationSamples", "FittedIntervals", "too_few"]


@dataclass(frozen=True)
class CalibrationSamples:
    """What the base says about calibration samples, and their labels and groups.

    ``groups`` are the names of groups of sufficient size; ``rows`` their numbers, or that after the last one.
    """

    values: np.ndarray  # (n, levels)
    scale: np.ndarray  # (n, 1)
    y: np.ndarray  # (n, 1)
    rows: np.ndarray  # (n,)
    groups: tuple = ()

    def __len__(self) -> int:
        return len(self.y)


def too_few(n: int, coverage: float) -> ValueError:
    """Return the error for too few calibration samples."""
    return ValueError(
        f"{n} calibration samples are too few for a coverage of {coverage:g}, which takes at least "
        f"{needed(coverage)}: pass more samples, a larger share calibration, or method='cv+', which "
        "calibrates by cross-validation."
    )


@dataclass(frozen=True, eq=False)
class FittedIntervals:
    """Members, base and calibration of an interval estimator."""

    members: tuple[Member, ...]
    base: Base
    levels: np.ndarray
    coverage: float
    center: str  # "median", or "model" for the prediction of the first member
    samples: CalibrationSamples | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields(self)}

    @property
    def dtype(self) -> np.dtype:
        """Floating-point type of the graphs."""
        return self.members[0].estimator._model().problem.dtype

    @property
    def calibrated(self) -> CalibrationSamples:
        """Calibration samples, which exist after ``fit``."""
        assert self.samples is not None
        return self.samples

    def outputs(self, X: Any) -> list[np.ndarray]:
        """Return the outputs of the members, of shape (n, k)."""
        found: list[np.ndarray] = []
        for member in self.members:
            predicted = member.estimator.predict(member.features(X, found[0] if found else None))
            found.append(np.asarray(predicted, self.dtype).reshape(len(predicted), -1))
        return found

    @cached_property
    def _sessions(self) -> PerProcess:
        return PerProcess()

    def evaluate(self, X: Any, constants: Calibration, rows: np.ndarray | None = None) -> dict[str, Any]:
        """Return the outputs of the graph of intervals, with calibration constants."""
        outputs = self.outputs(X)
        sessions, widths = self._sessions.values, tuple(part.shape[1] for part in outputs)
        if widths not in sessions:
            model = interval_graph(self.base, widths, self.levels, constants, self.dtype)
            sessions[widths] = open_session(model, Device("cpu"), 1)
        session, n = sessions[widths], len(outputs[0])
        last = len(constants.interval) - 1
        feeds = {f"output_{number}": part for number, part in enumerate(outputs)}
        feeds["row"] = np.full(n, last, dtype=np.int64) if rows is None else rows.astype(np.int64)
        feeds |= constants.arrays(self.dtype)
        names = [value.name for value in session.get_outputs()]
        known = {value.name for value in session.get_inputs()}
        results = session.run(names, {name: array for name, array in feeds.items() if name in known})
        found = dict(zip(names, results, strict=True))
        if self.center == "model":
            found["prediction"] = outputs[0].ravel()
        return found

    def predict(self, X: Any, coverage: float, rows: np.ndarray | None = None) -> dict[str, Any]:
        """Return prediction, ends and quantiles, with the floats of X."""
        found = self.evaluate(X, self.constants(coverage), rows)
        return {name: as_floats_of(X, array) for name, array in found.items()}

    def calibrated_on(self, X: Any, y: np.ndarray, rows: np.ndarray, groups: tuple) -> FittedIntervals:
        """Return the intervals with new calibration samples."""
        n = len(self.levels)
        nothing = Calibration(np.array([0, n - 1]), np.zeros((1, 1)), np.zeros((1, n)))
        found = self.evaluate(X, nothing)
        values = found["values"].astype(np.float64)
        scale = found["scale"].astype(np.float64) if "scale" in found else np.ones((len(values), 1))
        samples = CalibrationSamples(values, scale, y.reshape(-1, 1), rows, groups)
        return replace(self, samples=samples)

    def constants(self, coverage: float) -> Calibration:
        """Return the calibration constants for a coverage."""
        samples, levels = self.calibrated, self.levels
        ends = np.array([(1 - coverage) / 2, (1 + coverage) / 2])
        columns = np.abs(levels[None, :] - ends[:, None]).argmin(axis=1)
        low, high = samples.values[:, columns[0]], samples.values[:, columns[1]]
        y, scale = samples.y[:, 0], samples.scale[:, 0]
        scores = np.maximum(low - y, y - high) / scale
        residuals = (samples.y - samples.values) / samples.scale
        # A label at an end of its interval stays inside when the graph rounds.
        rounding = 2 * float(np.finfo(self.dtype).eps) * np.median(np.abs(samples.values) / samples.scale)
        intervals, shifts = [], []
        for row in range(len(samples.groups) + 1):
            own = samples.rows == row if row < len(samples.groups) else np.ones(len(y), bool)
            if own.sum() < needed(coverage):
                own = np.ones(len(y), bool)
            width = conformal_quantile(scores[own], coverage)
            if not np.isfinite(width):
                raise too_few(len(y), coverage)
            intervals.append(width + rounding + 2 * float(np.finfo(self.dtype).eps) * abs(width))
            shifts.append(level_quantiles(residuals[own], levels))
        return Calibration(columns, np.array(intervals)[:, None], np.array(shifts))

    def onnx(self) -> ModelProto:
        """Return one file of all members, with intervals as outputs."""
        constants, groups = self.constants(self.coverage), self.calibrated.groups

        def write(op: GraphBuilder, outputs: list[str], row: str) -> dict[str, str]:
            found = write_intervals(op, self.base, outputs, self.levels, constants, row)
            if self.center == "model":
                found["prediction"] = op.Reshape(outputs[0], [-1])
            kept = ("prediction", "lower", "upper", "quantiles")
            return {name: found[name] for name in kept}

        about = {"coverage": self.coverage, "levels": self.levels.tolist()}
        return composed(self.members, write, about, groups, self.base.keeps_own)
