"""Fitted prediction sets: the model, its calibrated probabilities, and calibration samples."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto

from ..exceptions import SavedFileError
from ..graphs import GraphBuilder
from ..inference.result_types import probabilities_as_floats_of
from .calibration import Calibration
from .composition import composed
from .conformal import conformal_quantile, needed
from .fitted import CalibrationSamples, FittedIntervals
from .sets import FITS, Probabilities, SetCalibration, SetScores

__all__ = ["FittedSets"]


@dataclass(frozen=True, eq=False)
class FittedSets(FittedIntervals):
    """A classifier and the calibration of its sets; ``levels`` is empty, labels are numbers of classes."""

    classes: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def check(self) -> None:
        """Raise a SavedFileError unless the parts that were read from a file belong together."""
        samples, count = self.calibrated, len(self.classes)
        samples.check({count}, len(samples.groups))
        if not (isinstance(self.base, SetScores) and np.isin(samples.y, np.arange(count)).all()):
            raise SavedFileError("Its calibration samples do not match its model.")

    def with_probabilities(self, kind: str, X: Any, y: np.ndarray) -> FittedSets:
        """Return the sets with probabilities calibrated on samples."""
        assert isinstance(self.base, SetScores)
        fitted = FITS[kind](self.outputs(X)[0].astype(np.float64), y)
        return replace(self, base=replace(self.base, probabilities=fitted))

    def measured(self, X: Any, y: np.ndarray, rows: np.ndarray, groups: tuple) -> CalibrationSamples:
        """Return new calibration samples, whose values are the scores of all classes."""
        values = self.evaluate(X, SetCalibration(np.zeros((1, 1))))["values"].astype(np.float64)
        return CalibrationSamples(values, np.ones((len(y), 1)), y.reshape(-1, 1), rows, groups)

    def scores(self, samples: CalibrationSamples) -> np.ndarray:
        """Return the scores of the true classes."""
        return np.take_along_axis(samples.values, samples.y, axis=1)[:, 0]

    def _computed(self, wanted: float, aimed: float) -> Calibration:
        """Return the constants for a coverage, and for that to aim at."""
        scores = self.scores(self.calibrated)
        parts = self.calibrated.parts(needed(wanted))
        found = np.array([[conformal_quantile(scores[own], aimed)] for own in parts])
        return SetCalibration(found + 4 * float(np.finfo(self.dtype).eps))  # true classes stay inside

    def probabilities(self, X: Any) -> np.ndarray:
        """Return calibrated probabilities."""
        found = self.evaluate(X, SetCalibration(np.zeros((1, 1))))["probabilities"]
        return probabilities_as_floats_of(X, found, True)

    def labels(self, X: Any) -> np.ndarray:
        """Return the classes that a given model predicts, or those of the largest calibrated probability."""
        if self.center == "model":
            return self.members[0].estimator.predict(X)
        return self.classes[np.argmax(self.probabilities(X), axis=1)]

    def onnx(self, model: ModelProto | None = None) -> ModelProto:
        """Return one file of the model, its calibrated probabilities and sets."""
        constants, base = self.constants(None), self.base
        assert isinstance(base, SetScores)
        is_plain = type(base.probabilities) is Probabilities

        def write(op: GraphBuilder, outputs: list[str], row: str, label: str) -> dict[str, str]:
            found = constants.write(op, base, outputs, self.levels, row)
            op.set_type(found["set"], TensorProto.BOOL, ("N", len(self.classes)))
            if self.center != "model" or not label:
                label = self._likeliest(op, found["probabilities"])
            calibrated = {} if is_plain else {"calibrated": found["probabilities"]}
            return {"prediction": label, "set": found["set"], **calibrated}

        about = {"coverage": self.coverage, "classes": self.classes.tolist()}
        return composed(self.members, write, about, self.calibrated.groups, True, model)

    def _likeliest(self, op: GraphBuilder, shares: str) -> str:
        """Write the class of the largest probability."""
        is_number = self.classes.dtype.kind in "iub"
        classes = self.classes.astype(np.int64) if is_number else self.classes.astype(str).astype(object)
        label = op.Gather(classes, op.ArgMax(shares, axis=1, keepdims=0))
        return op.set_type(label, TensorProto.INT64 if is_number else TensorProto.STRING, ("N",))
