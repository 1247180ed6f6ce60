"""New calibration samples for a fitted interval estimator, at once or in a stream."""

from __future__ import annotations

from typing import Any

from ..preprocessing.columns import as_array_like
from ..problem.samples import check_lengths
from .arguments import warn_of_trained
from .bases import Folds
from .calibrated import CalibratedMethods
from .conformal import needed
from .fitted import too_few
from .methods import fold_numbers

__all__ = ["CalibrationUpdates"]


class CalibrationUpdates(CalibratedMethods):
    """``recalibrate`` and ``partial_fit``."""

    fit: Any
    _validate_params: Any
    step: float
    window: int

    def recalibrate(self, X: Any, y: Any, groups: Any = None) -> Any:
        """Replace the calibration samples: the numbers of the file change, and nothing else.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Fresh samples.
        y : array-like of shape (n_samples,)
            Labels.
        groups : array-like of shape (n_samples,), default=None
            Groups of the samples, of which ``groups_`` keep their own constants.

        Returns
        -------
        OrtIntervalRegressor or OrtSetClassifier
            This object.

        Raises
        ------
        ValueError
            If the samples are too few for the coverage. The object is not changed.

        Warns
        -----
        CalibrationWarning
            If the samples are training samples.
        """
        model, X, y = self._model(), as_array_like(X), self._labels(y)
        if len(y) < needed(model.coverage):
            raise too_few(len(y), model.coverage)
        warn_of_trained(model.trained_on, X, y)
        rows = self._rows(groups, len(y))
        if model.by_folds:
            assert isinstance(model.base, Folds)
            rows = fold_numbers(len(y), len(model.members) - model.base.has_own, 0)
        self._fitted = model.calibrated_on(X, y, rows, model.calibrated.groups)
        return self

    def partial_fit(self, X: Any, y: Any, groups: Any = None) -> Any:
        """Adapt the calibration to samples of a stream, in their order (adaptive conformal inference).

        After a miss, intervals (or sets) aim at a larger coverage, otherwise at a slightly smaller one, so
        that over time the share of misses is ``1 - coverage`` whatever the stream does. Samples enter the
        window of calibration samples once they are counted. The model is not trained; the first call on an
        unfitted object is ``fit``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New samples.
        y : array-like of shape (n_samples,)
            Their labels.
        groups : array-like of shape (n_samples,), default=None
            Groups of the samples.

        Returns
        -------
        OrtIntervalRegressor or OrtSetClassifier
            This object.

        Raises
        ------
        ValueError
            If ``method`` is ``"cv+"``, whose calibration samples are the training samples.
        """
        if self._fitted is None:
            return self.fit(X, y, groups=groups)
        self._validate_params()
        model, X, y = self._model(), as_array_like(X), self._labels(y)
        check_lengths(X, y)
        if model.by_folds:
            raise ValueError("partial_fit adapts split calibration: use another method than 'cv+'.")
        if self.window < needed(model.coverage):
            raise ValueError(f"window={self.window} is too small: {too_few(self.window, model.coverage)}")
        new = model.measured(X, y, self._rows(groups, len(y)), model.calibrated.groups)
        self._fitted = model.adapted_to(new, self.step, self.window)
        return self
