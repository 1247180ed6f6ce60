"""Predictions of interval and set estimators, and their file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import ModelProto
from scipy.special import ndtri

from ..preprocessing.columns import as_array_like
from .calibrated import CalibratedMethods
from .conformal import checked_levels

__all__ = ["IntervalPredictions", "SetPredictions"]

Levels = float | Sequence[float] | None
Pair = tuple[np.ndarray, np.ndarray]


class IntervalPredictions(CalibratedMethods):
    """Methods that predict values, intervals and quantiles."""

    def predict(self, X: Any, groups: Any = None) -> np.ndarray:
        """Predict medians, or with ``center="model"`` what the given model predicts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        groups : array-like of shape (n_samples,), default=None
            Groups of the samples. Without them, as in ``score``, medians are those of all samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predictions, the output ``prediction`` of the file.
        """
        return self._predicted(X, groups, needs_groups=False)[0]["prediction"]

    def predict_interval(self, X: Any, coverage: Levels = None, groups: Any = None) -> Pair:
        """Predict, with intervals.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        coverage : float or sequence of float, default=None
            Coverages of the intervals, that of ``fit`` by default.
        groups : array-like of shape (n_samples,), default=None
            Groups of the samples, required if ``fit`` had groups; those that it has not seen get the
            intervals of all samples.

        Returns
        -------
        predictions : ndarray of shape (n_samples,)
            The result of ``predict``.
        intervals : ndarray of shape (n_samples, 2, n_coverages)
            Lower and upper ends; infinite after ``partial_fit`` has seen too many misses.

        Raises
        ------
        ValueError
            If the calibration samples are too few for a coverage, or groups are missing.
        """
        usual, *found = self._predicted(X, groups, coverage)
        ends = [np.stack([part["lower"], part["upper"]], axis=1) for part in found]
        return usual["prediction"], np.stack(ends, axis=2)

    def predict_quantiles(self, X: Any, levels: Levels = None, groups: Any = None) -> np.ndarray:
        """Predict quantiles, which do not cross.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        levels : float or sequence of float, default=None
            Levels, by default those of ``levels_``; others are interpolated, as for a normal distribution
            between two levels. Pass them to the constructor to train them.
        groups : array-like of shape (n_samples,), default=None
            Groups of the samples, required if ``fit`` had groups.

        Returns
        -------
        ndarray of shape (n_samples, n_levels)
            Quantiles.

        Raises
        ------
        ValueError
            If a level is outside of ``levels_``, or groups are missing.
        """
        known, found = self._model().levels, self._predicted(X, groups)[0]["quantiles"]
        if levels is None:
            return found
        wanted = checked_levels(levels)
        if wanted[0] < known[0] or wanted[-1] > known[-1]:
            raise ValueError(
                f"levels={levels!r} are not all between {known[0]:g} and {known[-1]:g}, the levels of this "
                "model: pass them to the constructor as levels, and fit again."
            )
        right = np.maximum(np.searchsorted(known, wanted), 1)
        left = right - 1
        places, ends = ndtri(wanted), ndtri(known)
        share = (places - ends[left]) / (ends[right] - ends[left])
        return (found[:, left] + share * (found[:, right] - found[:, left])).astype(found.dtype)

    def get_trained_onnx(self) -> ModelProto:
        """Return one ONNX file of the model, its intervals and their calibration.

        Its outputs are those of a given model, ``prediction``, ``lower`` and ``upper`` of shape (n_samples,),
        and ``quantiles`` of shape (n_samples, n_levels). The constants of the calibration are weights named
        ``calibration.interval``, ``calibration.quantiles`` and so on. A model with groups has the input
        ``group``.

        Returns
        -------
        onnx.ModelProto
            Model.

        Raises
        ------
        ConversionError
            If steps of the model run in scikit-learn.
        """
        return self._model().onnx()


class SetPredictions(CalibratedMethods):
    """Methods that predict classes, probabilities and sets."""

    def predict(self, X: Any) -> np.ndarray:
        """Predict classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,)
            Classes of the largest calibrated probability; for a given model those that it predicts.
        """
        return self._model().labels(as_array_like(X))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict calibrated probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of ``classes_``.
        """
        return self._model().probabilities(as_array_like(X))

    def predict_set(self, X: Any, coverage: Levels = None, groups: Any = None) -> Pair:
        """Predict, with sets of classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        coverage : float or sequence of float, default=None
            Coverages of the sets, that of ``fit`` by default.
        groups : array-like of shape (n_samples,), default=None
            Groups of the samples, required if ``fit`` had groups; those that it has not seen get the sets of
            all samples.

        Returns
        -------
        predictions : ndarray of shape (n_samples,)
            The result of ``predict``.
        sets : ndarray of bool, of shape (n_samples, n_classes, n_coverages)
            Whether a class is in the set of a sample.

        Raises
        ------
        ValueError
            If the calibration samples are too few for a coverage, or groups are missing.
        """
        sets = [part["set"] for part in self._predicted(X, groups, coverage)[1:]]
        return self.predict(X), np.stack(sets, axis=2)

    def get_trained_onnx(self) -> ModelProto:
        """Return one ONNX file of the model, its sets and their calibration.

        Its outputs are those of the model, ``prediction``, ``set`` of shape (n_samples, n_classes), and with
        calibrated probabilities ``calibrated``. Constants are weights named ``calibration.interval``,
        ``probabilities.scale`` and so on. A model with groups has the input ``group``.

        Returns
        -------
        onnx.ModelProto
            Model.

        Raises
        ------
        ConversionError
            If steps of the model run in scikit-learn.
        """
        return self._model().onnx()
