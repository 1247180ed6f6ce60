"""Regression with prediction intervals."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin
from sklearn.utils import check_array, check_random_state, column_or_1d, get_tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..fitting.trainer import draw_seed
from ..preprocessing.columns import count_rows
from ..problem.samples import Samples, check_lengths
from .conformal import checked_coverage, checked_levels, needed
from .fitted import FittedIntervals, too_few
from .members import is_given
from .methods import METHODS, Plan

__all__ = ["OrtIntervalRegressor"]


class OrtIntervalRegressor(MetaEstimatorMixin, RegressorMixin, BaseEstimator):
    """A regressor with prediction intervals of a given coverage, in one ONNX file.

    Intervals contain a new label with a probability of at least ``coverage``, if calibration samples and new
    samples are exchangeable, whatever the model (split conformal prediction). This is an average over
    samples: intervals of some may contain fewer labels, those of others more.

    Parameters
    ----------
    estimator : estimator, onnx.ModelProto, bytes, str or os.PathLike
        A regressor or a pipeline, fitted or not, an ONNX file, or an
        :class:`~ortlearn.OrtGradientOptimizer` with the parameters of the training. It is not changed. The
        predictions of a fitted model and of a file stay as they are.
    coverage : float, default=0.9
        Probability that an interval contains the label of a new sample.
    levels : sequence of float, default=None
        Rising levels of the quantiles that are trained, besides 0.5 and those of the ends of intervals.
    method : {"cqr", "residual"}, default="cqr"
        ``"cqr"`` trains the quantiles of ``levels`` together and moves the ends of intervals (conformalized
        quantile regression), so that their width depends on the features; for a given model it trains a
        linear model of the quantiles of its residuals. ``"residual"`` adds a quantile of the absolute
        residuals to the predictions of one model.
    calibration : float or int, default=0.2
        Share or number of samples that ``fit`` holds out for calibration, unless ``X_cal`` is given.
    center : {"median", "model"}, default=None
        What is predicted: the median of the quantiles, or what a given model predicts. None is ``"model"``
        for a given model, and ``"median"`` otherwise.
    random_state : int, RandomState instance or None, default=None
        Seed of the calibration samples and of the training.

    References
    ----------
    Romano, Y., Patterson, E. and Candes, E., "Conformalized quantile regression", NeurIPS 2019.

    Vovk, V., Gammerman, A. and Shafer, G., "Algorithmic learning in a random world", Springer 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn import OrtIntervalRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(1, 3, size=(600, 1))
    >>> y = X[:, 0] * (2 + rng.normal(size=600))
    >>> model = OrtIntervalRegressor(Ridge(), coverage=0.8, random_state=0).fit(X[:300], y[:300])
    >>> median, intervals = model.predict_interval(X[300:])
    >>> intervals.shape
    (300, 2, 1)
    >>> inside = (intervals[:, 0, 0] <= y[300:]) & (y[300:] <= intervals[:, 1, 0])
    >>> bool(0.7 < inside.mean() < 0.9)
    True
    >>> [output.name for output in model.get_trained_onnx().graph.output]
    ['prediction', 'lower', 'upper', 'quantiles']
    """

    _parameter_constraints: dict = {
        "estimator": "no_validation",
        "coverage": "no_validation",
        "levels": "no_validation",
        "method": [StrOptions(set(METHODS))],
        "calibration": [Interval(Real, 0, 1, closed="neither"), Interval(Integral, 1, None, closed="left")],
        "center": [StrOptions({"median", "model"}), None],
        "random_state": ["random_state"],
    }

    _fitted: FittedIntervals | None = None

    def __init__(
        self,
        estimator,
        *,
        coverage=0.9,
        levels=None,
        method="cqr",
        calibration=0.2,
        center=None,
        random_state=None,
    ):
        self.estimator = estimator
        self.coverage = coverage
        self.levels = levels
        self.method = method
        self.calibration = calibration
        self.center = center
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__") and not isinstance(self.estimator, type):
            tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return self._fitted is not None

    def fit(self, X, y, sample_weight=None, X_cal=None, y_cal=None):
        """Train, and calibrate on held-out samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as the estimator takes them.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the training samples; calibration samples count equally.
        X_cal, y_cal : array-like, default=None
            Calibration samples, which must not be among the training samples. By default, ``fit`` holds
            some of X out.

        Returns
        -------
        OrtIntervalRegressor
            This object, fitted.

        Raises
        ------
        ValueError
            If an argument is invalid, or the calibration samples are too few for the coverage: 9 for 90 %.
        """
        self._validate_params()
        coverage = checked_coverage(self.coverage)
        samples = Samples(X, _labels(y), sample_weight).with_checked_weights()
        check_lengths(samples.X, samples.y)
        random_state = check_random_state(self.random_state)
        if X_cal is None:
            samples, held_out = self._split(samples, random_state)
        else:
            held_out = Samples(X_cal, _labels(y_cal))
        if count_rows(held_out.X) < needed(coverage):
            raise too_few(count_rows(held_out.X), coverage)
        levels = self._levels(coverage)
        plan = Plan(self.estimator, levels, draw_seed(random_state) % 2**31)
        members, base = METHODS[self.method](plan, samples)
        center = self.center or ("model" if is_given(self.estimator) else "median")
        fitted = FittedIntervals(members, base, levels, coverage, center)
        rows = np.zeros(count_rows(held_out.X), dtype=np.int64)
        self._fitted = fitted.calibrated_on(held_out.X, held_out.y, rows, ())
        return self

    def _levels(self, coverage: float) -> np.ndarray:
        """Return the given levels with those of the interval and the median."""
        given: Any = [] if self.levels is None else checked_levels(self.levels)
        return np.unique(np.round([*given, (1 - coverage) / 2, 0.5, (1 + coverage) / 2], 12))

    def _split(self, samples: Samples, random_state) -> tuple[Samples, Samples]:
        """Return training and calibration samples."""
        n, share = len(samples.y), self.calibration
        count = int(share) if isinstance(share, Integral) else int(np.ceil(share * n))
        if count >= n:
            raise ValueError(f"calibration={share!r} leaves no samples for training, of {n}.")
        order = random_state.permutation(n)
        return samples.take(np.sort(order[count:])), samples.take(np.sort(order[:count]))

    def _model(self) -> FittedIntervals:
        check_is_fitted(self)
        assert self._fitted is not None
        return self._fitted

    def predict(self, X):
        """Predict medians, or with ``center="model"`` what the given model predicts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predictions, the output ``prediction`` of the file.
        """
        model = self._model()
        return model.predict(X, model.coverage)["prediction"]

    def predict_interval(self, X, coverage=None):
        """Predict, with intervals.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        coverage : float or sequence of float, default=None
            Coverages of the intervals, that of the constructor by default.

        Returns
        -------
        predictions : ndarray of shape (n_samples,)
            The result of ``predict``.
        intervals : ndarray of shape (n_samples, 2, n_coverages)
            Lower and upper ends.
        """
        model, found = self._model(), []
        single = coverage is None or isinstance(coverage, Real)
        for value in [model.coverage if coverage is None else coverage] if single else coverage:
            found.append(model.predict(X, checked_coverage(value)))
        ends = [np.stack([part["lower"], part["upper"]], axis=1) for part in found]
        return found[0]["prediction"], np.stack(ends, axis=2)

    def get_trained_onnx(self):
        """Return one ONNX file of the model, its intervals and their calibration.

        Its outputs are those of a given model, ``prediction``, ``lower`` and ``upper`` of shape (n_samples,),
        and ``quantiles`` of shape (n_samples, n_levels). The calibration constants are the weights
        ``calibration.interval`` and ``calibration.quantiles``.

        Returns
        -------
        onnx.ModelProto
            Model.
        """
        return self._model().onnx()


def _labels(y: Any) -> np.ndarray:
    """Return labels as float64 of shape (n,)."""
    y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
    return column_or_1d(y, warn=True)
