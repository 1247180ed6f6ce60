"""Fitted intervals: members, base, calibration samples, and what is computed from them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from onnx import ModelProto

from ..exceptions import SavedFileError
from ..graphs import GraphBuilder
from ..runtime.checked_sessions import open_session
from ..runtime.devices import Device
from ..runtime.forks import PerProcess
from .bases import Base
from .calibration import Calibration, FoldCalibration, SplitCalibration, interval_graph
from .composition import composed
from .conformal import conformal_quantile, level_quantiles, needed, rank
from .members import Member

__all__ = ["CalibrationSamples", "FittedIntervals", "too_few"]

#: Largest number of values in a matrix of samples and calibration samples.
CHUNK = 1 << 22

Fitted = TypeVar("Fitted", bound="FittedIntervals")


@dataclass(frozen=True)
class CalibrationSamples:
    """Outputs of the base for calibration samples, and their labels and groups.

    ``groups`` are the names of groups of sufficient size; ``rows`` the numbers of the groups of samples, or
    for CV+ those of their folds.
    """

    values: np.ndarray  # (n, levels)
    scale: np.ndarray  # (n, 1)
    y: np.ndarray  # (n, 1)
    rows: np.ndarray  # (n,)
    groups: tuple = ()

    def __len__(self) -> int:
        return len(self.y)

    def check(self, widths: set[int], last: int) -> None:
        """Raise a SavedFileError unless parts that were read from a file belong together."""
        n, parts = self.y.size, (self.values, self.scale, self.y)
        shapes = (self.values.shape, self.scale.shape, self.y.shape, self.rows.shape)
        fine = n and shapes in [((n, width), (n, 1), (n, 1), (n,)) for width in widths]
        numbers = fine and np.isin(self.rows, np.arange(last + 1)).all() and np.all(self.scale > 0)
        if not (numbers and all(np.isfinite(part).all() for part in parts)):
            raise SavedFileError("Its calibration samples do not match its model.")

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return how far labels are outside of the ends, in units of the scale; inside it is negative."""
        ends = self.values @ weights
        return np.max((ends - self.y) * [1.0, -1.0], axis=1) / self.scale[:, 0]

    def parts(self, smallest: int) -> list[np.ndarray]:
        """Return which samples belong to each group, and all; groups that are too small share all samples."""
        everything = np.ones(len(self), bool)
        own = [self.rows == row for row in range(len(self.groups))]
        return [part if part.sum() >= smallest else everything for part in (*own, everything)]

    def joined(self, other: CalibrationSamples, last: int) -> CalibrationSamples:
        """Return the ``last`` samples of both."""
        parts: dict[str, Any] = {
            name: np.concatenate([getattr(self, name), getattr(other, name)])[-last:]
            for name in ("values", "scale", "y", "rows")
        }
        return replace(self, **parts)


def too_few(n: int, coverage: float) -> ValueError:
    """Return the error for too few calibration samples."""
    return ValueError(
        f"{n} calibration samples are too few for a coverage of {coverage:g}, which takes at least "
        f"{needed(coverage)}: pass more samples, a larger share calibration, or of OrtIntervalRegressor "
        "method='cv+', which calibrates by cross-validation."
    )


@dataclass(frozen=True, eq=False)
class FittedIntervals:
    """Members, base and calibration of an interval estimator."""

    members: tuple[Member, ...]
    base: Base
    levels: np.ndarray
    coverage: float
    center: str  # "median", or "model" if the first member predicts
    keeps_own: bool  # whether the first member predicts labels
    by_folds: bool = False  # whether calibration samples are those of CV+
    samples: CalibrationSamples | None = None
    adapted: float | None = None  # coverage to aim at after a stream
    trained_on: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))

    def __getstate__(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields(self)}

    @cached_property
    def dtype(self) -> np.dtype:
        """Floating-point type of the graphs."""
        return self.members[0].estimator._model().problem.dtype

    @property
    def calibrated(self) -> CalibrationSamples:
        """Calibration samples, which exist after ``fit``."""
        assert self.samples is not None
        return self.samples

    @cached_property
    def _sessions(self) -> PerProcess:
        return PerProcess()

    @cached_property
    def _constants(self) -> dict[tuple[float, float], Calibration]:
        return {}

    def check(self) -> None:
        """Raise a SavedFileError unless the parts that were read from a file belong together."""
        samples, count = self.calibrated, len(self.members)
        if self.by_folds:
            samples.check({count, count - 1}, count - 1)
        else:
            samples.check({len(self.levels)}, len(samples.groups))
        if not (np.all(np.diff(self.levels) > 0) and 0 < self.coverage < 1 and self.members):
            raise SavedFileError("Its levels, coverage or members are invalid.")

    def outputs(self, X: Any) -> list[np.ndarray]:
        """Return the outputs of the members, of shape (n, k)."""
        found: list[np.ndarray] = []
        for member in self.members:
            found.append(member.output(X, found[0] if found else None))
        return found

    def evaluate(
        self,
        X: Any,
        constants: Calibration,
        rows: np.ndarray | None = None,
        outputs: list[np.ndarray] | None = None,
    ) -> dict[str, Any]:
        """Return the outputs of the graph of intervals, with calibration constants."""
        outputs = self.outputs(X) if outputs is None else outputs
        arrays = constants.arrays(self.dtype)
        n, kinds = len(outputs[0]), tuple((part.shape[1], part.dtype) for part in outputs)
        key = type(constants), kinds
        if rows is None:
            rows = np.full(n, len(arrays["calibration.interval"]) - 1)
        if key not in self._sessions.values:
            model = interval_graph(self.base, kinds, self.levels, constants, self.dtype)
            self._sessions.values[key] = open_session(model, Device("cpu"), 1)
        session = self._sessions.values[key]
        names = [value.name for value in session.get_outputs()]
        known = {value.name for value in session.get_inputs()}
        feeds = {f"output_{number}": part for number, part in enumerate(outputs)}
        feeds["row"] = rows.astype(np.int64)
        feeds = {name: array for name, array in feeds.items() if name in known}
        size = max(1, CHUNK // max(map(len, arrays.values())))
        parts = [
            session.run(names, {name: array[start : start + size] for name, array in feeds.items()} | arrays)
            for start in range(0, max(n, 1), size)
        ]
        found = dict(zip(names, map(np.concatenate, zip(*parts, strict=True)), strict=True))
        if self.center == "model":
            found["prediction"] = outputs[0].ravel()
        return found

    def measured(self, X: Any, y: np.ndarray, rows: np.ndarray, groups: tuple) -> CalibrationSamples:
        """Return new calibration samples."""
        n = len(self.levels)
        if self.by_folds:
            nothing: Calibration = FoldCalibration(np.zeros(1), np.zeros(1), 1, np.zeros(n))
        else:
            nothing = SplitCalibration(np.zeros((n, 2)), np.zeros((1, 1)), np.zeros((1, n)))
        found = self.evaluate(X, nothing)
        values = found["values"].astype(np.float64)
        scale = found["scale"].astype(np.float64) if "scale" in found else np.ones((len(values), 1))
        return CalibrationSamples(values, scale, y.reshape(-1, 1), rows, groups)

    def calibrated_on(self: Fitted, X: Any, y: np.ndarray, rows: np.ndarray, groups: tuple) -> Fitted:
        """Return the intervals with new calibration samples."""
        return self._with_samples(self.measured(X, y, rows, groups), None)

    def _with_samples(self: Fitted, samples: CalibrationSamples, adapted: float | None) -> Fitted:
        """Return the intervals with other calibration samples, and the same graph and session."""
        new = replace(self, samples=samples, adapted=adapted)
        new.__dict__["_sessions"] = self._sessions
        return new

    def constants(self, coverage: float | None) -> Calibration:
        """Return the calibration constants for a coverage, by default the adapted one."""
        aims = self.aims(coverage)
        if aims not in self._constants:
            self._constants[aims] = self._fold_constants(*aims) if self.by_folds else self._computed(*aims)
        return self._constants[aims]

    def _computed(self, wanted: float, aimed: float) -> Calibration:
        """Return the constants of split calibration for a coverage, and for that to aim at."""
        samples, weights = self.calibrated, self.ends(wanted)
        scores = samples.scores(weights)
        residuals = (samples.y - samples.values) / samples.scale
        # A label at an end of its interval stays inside when the graph rounds.
        eps = 2 * float(np.finfo(self.dtype).eps)
        rounding = eps * float(np.median(np.abs(samples.values) / samples.scale))
        intervals, shifts = [], []
        for own in samples.parts(needed(wanted)):
            width = conformal_quantile(scores[own], aimed)
            intervals.append(width + rounding + eps * abs(width))
            shifts.append(level_quantiles(residuals[own], self.levels))
        return SplitCalibration(weights, np.array(intervals)[:, None], np.array(shifts))

    def aims(self, coverage: float | None) -> tuple[float, float]:
        """Return the coverage asked for and that to aim at; raise a ValueError for too few samples."""
        wanted = self.coverage if coverage is None else coverage
        if len(self.calibrated) < needed(wanted):
            raise too_few(len(self.calibrated), wanted)
        return wanted, self.adapted if coverage is None and self.adapted is not None else wanted

    def ends(self, coverage: float) -> np.ndarray:
        """Return the weights of the levels at both ends, which interpolate between the nearest levels."""
        wanted = np.round([(1 - coverage) / 2, (1 + coverage) / 2], 12)
        return np.stack([np.interp(wanted, self.levels, unit) for unit in np.eye(len(self.levels))])

    def _fold_constants(self, coverage: float, aimed: float) -> FoldCalibration:
        samples = self.calibrated
        n, folds = len(samples), samples.rows
        residuals = samples.y[:, 0] - samples.values[np.arange(n), folds]
        ranks = np.array([min(max(rank(n, float(level)), 1), n) - 1 for level in self.levels])
        return FoldCalibration(folds, residuals, n + 1 - rank(n, coverage), ranks)

    def scores(self, samples: CalibrationSamples) -> np.ndarray:
        """Return the scores whose quantile widens intervals of the usual coverage."""
        return samples.scores(self.ends(self.coverage))

    def adapted_to(self: Fitted, new: CalibrationSamples, step: float, window: int) -> Fitted:
        """Return the intervals after a stream of samples (Gibbs and Candes 2021).

        Each sample moves the coverage to aim at by ``step`` times the difference between the wanted share of
        misses and this miss, then it enters the window of calibration samples.
        """
        samples, (_, aimed) = self.calibrated, self.aims(None)
        rows = np.concatenate([samples.rows, new.rows])
        scores = np.concatenate([self.scores(samples), self.scores(new)])
        for position in range(len(samples), len(scores)):
            passed = slice(max(0, position - window), position)
            own = scores[passed][rows[passed] == rows[position]]
            if rows[position] == len(samples.groups) or len(own) < needed(self.coverage):
                own = scores[passed]
            is_miss = float(scores[position] > conformal_quantile(own, aimed))
            aimed += step * (is_miss - (1 - self.coverage))
        return self._with_samples(samples.joined(new, window), aimed)

    def onnx(self, model: ModelProto | None = None) -> ModelProto:
        """Return one file of all members, with intervals as outputs; ``model`` replaces the first one."""
        constants, groups = self.constants(None), self.calibrated.groups

        def write(op: GraphBuilder, outputs: list[str], row: str, label: str) -> dict[str, str]:
            found = constants.write(op, self.base, outputs, self.levels, row)
            if self.center == "model":
                found["prediction"] = op.Reshape(outputs[0], [-1])
            return {name: found[name] for name in ("prediction", "lower", "upper", "quantiles")}

        about = {"coverage": self.coverage, "levels": self.levels.tolist()}
        return composed(self.members, write, about, groups, self.keeps_own, model)
