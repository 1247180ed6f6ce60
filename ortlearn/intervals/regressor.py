"""Regression with prediction intervals."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, is_classifier
from sklearn.utils._param_validation import Interval, StrOptions

from ..estimators.display import DisplayMixin
from ..problem.samples import Samples
from .arguments import numeric_labels
from .calibrated import COMMON
from .conformal import checked_coverage, checked_levels
from .fitted import FittedIntervals
from .members import is_given, resuming, template
from .methods import METHODS, Plan, fold_numbers
from .predictions import IntervalPredictions
from .updates import CalibrationUpdates

__all__ = ["OrtIntervalRegressor"]


class OrtIntervalRegressor(
    CalibrationUpdates, IntervalPredictions, DisplayMixin, MetaEstimatorMixin, RegressorMixin, BaseEstimator
):
    """A regressor with prediction intervals of a given coverage, in one ONNX file.

    Intervals contain the label of a new sample with a probability of at least ``coverage``, whatever the
    model, if calibration samples and new samples are exchangeable (split conformal prediction). This is an
    average over samples: intervals of some contain fewer labels, those of others more.

    Parameters
    ----------
    estimator : estimator, onnx.ModelProto, bytes, str or os.PathLike
        A regressor or a pipeline, fitted or not, an ONNX file, or an
        :class:`~ortlearn.OrtGradientOptimizer` with the parameters of the training. It is not changed. The
        predictions of a fitted model and of a file stay as they are, bit for bit those of its graph.
    coverage : float, default=0.9
        Probability that an interval contains the label of a new sample.
    levels : sequence of float, default=None
        Rising levels of quantiles, besides 0.5 and those of the ends of intervals.
    method : {"cqr", "residual", "cv+", "ensemble", "laplace"}, default="cqr"
        ``"cqr"`` trains the quantiles of all levels and moves the ends of intervals (conformalized quantile
        regression), so that their width depends on the features: quantiles are outputs of one model that
        cannot cross, distributions in the leaves of trees, forests and boosting, or models of one level each
        if the estimator has a single output. For a given model, it trains a linear model of the quantiles of
        its residuals. ``"residual"`` adds a quantile of the absolute residuals to the predictions of one
        model.
        ``"ensemble"`` and ``"laplace"`` do so in units of a standard deviation: of copies of the model with
        different seeds, or of the posterior of its last layer. All of these promise ``coverage``.
        ``"cv+"`` trains a model for each fold and holds no samples out; it promises ``2 * coverage - 1``, and
        usually reaches ``coverage``.
    calibration : float or int, default=0.2
        Share or number of samples that ``fit`` holds out for calibration, unless ``X_cal`` is given.
    center : {"median", "model"}, default=None
        What is predicted: the median of the quantiles, or what a given model predicts. None is ``"model"``
        for a given model, and ``"median"`` otherwise.
    normalize : bool, default=False
        Whether ``method="residual"`` divides residuals by a scale that a second model predicts from the
        features.
    n_members : int, default=5
        Number of folds of ``"cv+"``, or of copies of ``"ensemble"``.
    group_min_size : int, default=50
        Smallest number of calibration samples of a group that has its own constants; other groups share
        those of all samples.
    step : float, default=0.01
        How much a miss in ``partial_fit`` changes the coverage to aim at.
    window : int, default=1000
        Number of calibration samples that ``partial_fit`` keeps, the last ones.
    random_state : int, RandomState instance or None, default=None
        Seed of the calibration samples and of the training.

    Attributes
    ----------
    estimators_ : list of OrtGradientOptimizer
        Trained models; the first one is the given model, if there is one.
    levels_ : ndarray of shape (n_levels,)
        Levels of the quantiles.
    coverage_ : float
        Coverage to aim at, which differs from ``coverage`` after ``partial_fit``.
    n_calibration_ : int
        Number of calibration samples.
    groups_ : list
        Groups with their own constants.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has names.

    References
    ----------
    Vovk, V., Gammerman, A. and Shafer, G., "Algorithmic learning in a random world", Springer 2005.

    Romano, Y., Patterson, E. and Candes, E., "Conformalized quantile regression", NeurIPS 2019.

    Barber, R. F., Candes, E., Ramdas, A. and Tibshirani, R., "Predictive inference with the jackknife+",
    Annals of Statistics 49 (2021), 486-507.

    Gibbs, I. and Candes, E., "Adaptive conformal inference under distribution shift", NeurIPS 2021.

    Meinshausen, N., "Quantile regression forests", JMLR 7 (2006), 983-999.

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
        **COMMON,
        "levels": "no_validation",
        "method": [StrOptions(set(METHODS))],
        "center": [StrOptions({"median", "model"}), None],
        "normalize": ["boolean"],
        "n_members": [Interval(Integral, 2, None, closed="left")],
    }

    _fitted: FittedIntervals | None = None
    _given = staticmethod(numeric_labels)

    def __init__(
        self,
        estimator: Any,
        *,
        coverage: float | None = 0.9,
        levels: Any = None,
        method: str = "cqr",
        calibration: float | int = 0.2,
        center: str | None = None,
        normalize: bool = False,
        n_members: int = 5,
        group_min_size: int = 50,
        step: float = 0.01,
        window: int = 1000,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.coverage = coverage
        self.levels = levels
        self.method = method
        self.calibration = calibration
        self.center = center
        self.normalize = normalize
        self.n_members = n_members
        self.group_min_size = group_min_size
        self.step = step
        self.window = window
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        X_cal: Any = None,
        y_cal: Any = None,
        groups_cal: Any = None,
        resume_from: Any = None,
    ) -> OrtIntervalRegressor:
        """Train, and calibrate on held-out samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as the estimator takes them.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the training samples; calibration samples count equally.
        groups : array-like of shape (n_samples,), default=None
            Groups of the samples, texts or integers: each of sufficient size gets intervals of the given
            coverage. The file has them as an input.
        X_cal, y_cal : array-like, default=None
            Calibration samples, which must not be among the training samples. By default, ``fit`` holds
            some of X out.
        groups_cal : array-like of shape (n_calibration_samples,), default=None
            Groups of the calibration samples.
        resume_from : str or os.PathLike, default=None
            Call to resume after it was killed: the folder of the :class:`~ortlearn.callbacks.ModelCheckpoint`
            of the optimizer that was passed as ``estimator``. Each of its trainings continues where it was,
            and writes to the folder again. Parameters and data must be the same, ``random_state`` must not be
            None; the result is bitwise that of a call without interruption.

        Returns
        -------
        OrtIntervalRegressor
            This object, fitted.

        Raises
        ------
        ValueError
            If an argument is invalid, or the calibration samples are too few for the coverage: 9 for 90 %;
            if the call to resume had other data or parameters (SavedFileError). The object is not changed.

        Warns
        -----
        CalibrationWarning
            If calibration samples are training samples.
        """
        self._validate_params()
        coverage, model = checked_coverage(self.coverage), template(self.estimator)
        if hasattr(model, "__sklearn_tags__") and is_classifier(model):
            raise ValueError("OrtIntervalRegressor takes a regressor: use OrtSetClassifier for a classifier.")
        levels: Any = [] if self.levels is None else checked_levels(self.levels)
        levels = np.unique(np.round([*levels, (1 - coverage) / 2, 0.5, (1 + coverage) / 2], 12))
        given, by_folds = Samples(X, self._given(y), sample_weight), self.method == "cv+"
        if by_folds and not (groups is None and X_cal is None):
            raise ValueError(
                "method='cv+' calibrates by cross-validation, without groups and calibration samples: omit "
                "them, or use another method."
            )
        estimator = resuming(self.estimator, resume_from, self.random_state)
        parts = self._parts(given, groups, (X_cal, y_cal, groups_cal), coverage, not by_folds)
        plan = Plan(estimator, levels, parts.seed, self.normalize, self.n_members)
        members, base = METHODS[self.method](plan, parts.samples)
        is_own = is_given(self.estimator)
        center = self.center or ("model" if is_own else "median")
        keeps_own = is_own or self.method in ("residual", "laplace")
        if center == "model" and not keeps_own:
            raise ValueError(
                f"center='model' takes a fitted model, or method='residual': with method={self.method!r} "
                "nothing but quantiles is trained."
            )
        fitted = FittedIntervals(
            members, base, levels, coverage, center, keeps_own, by_folds, trained_on=parts.keys
        )
        rows, held_out = parts.rows, parts.held_out
        if by_folds:
            rows = fold_numbers(len(held_out.y), self.n_members, parts.seed)
        self._fitted = fitted.calibrated_on(held_out.X, held_out.y, rows, parts.groups)
        return self
