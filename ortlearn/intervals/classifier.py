"""Classification with prediction sets and calibrated probabilities."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import column_or_1d
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets

from ..estimators.display import DisplayMixin
from ..problem.samples import Samples
from ..targets.label_arrays import indices_of
from ..targets.label_errors import other_classes
from .calibrated import COMMON, FittedValue
from .conformal import checked_coverage
from .fitted_sets import FittedSets
from .members import Member, as_member, is_given, new_optimizer, resuming
from .predictions import SetPredictions
from .sets import FITS, Probabilities, SetScores
from .updates import CalibrationUpdates

__all__ = ["OrtSetClassifier"]

METHODS = {"lac": False, "aps": True}


class OrtSetClassifier(
    CalibrationUpdates, SetPredictions, DisplayMixin, MetaEstimatorMixin, ClassifierMixin, BaseEstimator
):
    """A classifier with prediction sets of a given coverage, in one ONNX file.

    Sets contain the class of a new sample with a probability of at least ``coverage``, whatever the model, if
    calibration samples and new samples are exchangeable (split conformal prediction).

    Parameters
    ----------
    estimator : estimator, onnx.ModelProto, bytes, str or os.PathLike
        A classifier with probabilities or a pipeline, fitted or not, an ONNX file, or an
        :class:`~ortlearn.OrtGradientOptimizer` with the parameters of the training. It is not changed.
    coverage : float, default=0.9
        Probability that a set contains the class of a new sample.
    method : {"lac", "aps"}, default="lac"
        ``"lac"`` includes classes of sufficient probability: the smallest sets on average, some empty.
        ``"aps"`` includes classes in decreasing order of their probabilities until these sum up to enough: at
        least one class, and more for samples that the model is unsure of.
    probabilities : {"temperature", "vector", "isotonic"}, default=None
        Calibration of the probabilities: one factor of their logarithms, a factor and a shift for each class,
        or isotonic regressions. It takes half of the calibration samples; sets are of these probabilities.
    calibration : float or int, default=0.2
        Share or number of samples that ``fit`` holds out for calibration, unless ``X_cal`` is given.
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
    classes_ : ndarray of shape (n_classes,)
        Classes.
    estimators_ : list of OrtGradientOptimizer
        The trained or given model.
    coverage_ : float
        Coverage to aim at, which differs from ``coverage`` after ``partial_fit``.
    n_calibration_ : int
        Number of calibration samples of the sets.
    groups_ : list
        Groups with their own constants.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has names.

    References
    ----------
    Sadinle, M., Lei, J. and Wasserman, L., "Least ambiguous set-valued classifiers with bounded error
    levels", JASA 114 (2019), 223-234.

    Romano, Y., Sesia, M. and Candes, E., "Classification with valid and adaptive coverage", NeurIPS 2020.

    Guo, C., Pleiss, G., Sun, Y. and Weinberger, K. Q., "On calibration of modern neural networks", ICML 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import train_test_split
    >>> from ortlearn import OrtSetClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> X, X_new, y, y_new = train_test_split(X / 16, y, test_size=800, random_state=0)
    >>> model = OrtSetClassifier(LogisticRegression(), coverage=0.95, random_state=0).fit(X, y)
    >>> labels, sets = model.predict_set(X_new)
    >>> sets.shape
    (800, 10, 1)
    >>> bool(sets[range(800), y_new, 0].mean() > 0.92)
    True
    >>> [output.name for output in model.get_trained_onnx().graph.output]
    ['label', 'probabilities', 'prediction', 'set']
    """

    _parameter_constraints: dict = {
        **COMMON,
        "method": [StrOptions(set(METHODS))],
        "probabilities": [StrOptions(set(FITS)), None],
    }

    _fitted: FittedSets | None = None

    classes_ = FittedValue(lambda fitted: fitted.classes)

    def __init__(
        self,
        estimator: Any,
        *,
        coverage: float | None = 0.9,
        method: str = "lac",
        probabilities: str | None = None,
        calibration: float | int = 0.2,
        group_min_size: int = 50,
        step: float = 0.01,
        window: int = 1000,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.coverage = coverage
        self.method = method
        self.probabilities = probabilities
        self.calibration = calibration
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
    ) -> OrtSetClassifier:
        """Train, and calibrate on held-out samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as the estimator takes them.
        y : array-like of shape (n_samples,)
            Classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the training samples; calibration samples count equally.
        groups : array-like of shape (n_samples,), default=None
            Groups of the samples, texts or integers: each of sufficient size gets sets of the given coverage.
        X_cal, y_cal : array-like, default=None
            Calibration samples, which must not be among the training samples. By default, ``fit`` holds
            some of X out, of each class.
        groups_cal : array-like of shape (n_calibration_samples,), default=None
            Groups of the calibration samples.
        resume_from : str or os.PathLike, default=None
            Call to resume after it was killed: the folder of the :class:`~ortlearn.callbacks.ModelCheckpoint`
            of the optimizer that was passed as ``estimator``. Each of its trainings continues where it was,
            and writes to the folder again. Parameters and data must be the same, ``random_state`` must not be
            None; the result is bitwise that of a call without interruption.

        Returns
        -------
        OrtSetClassifier
            This object, fitted.

        Raises
        ------
        ValueError
            If an argument is invalid, a class is missing among the training samples, the calibration samples
            are too few for the coverage, or the call to resume had other data or parameters (SavedFileError).
            The object is not changed.

        Warns
        -----
        CalibrationWarning
            If calibration samples are training samples.
        """
        self._validate_params()
        coverage = checked_coverage(self.coverage)
        given = Samples(X, self._given(y), sample_weight)
        estimator = resuming(self.estimator, resume_from, self.random_state)
        parts = self._parts(given, groups, (X_cal, y_cal, groups_cal), coverage, True)
        samples, held_out, is_own = parts.samples, parts.held_out, is_given(self.estimator)
        if is_own:
            member = as_member(self.estimator, samples.X, samples.y)
        else:
            optimizer = new_optimizer(estimator, parts.seed)
            member = Member(optimizer.fit(samples.X, samples.y, sample_weight=samples.sample_weight))
        classes = getattr(member.estimator, "classes_", None)
        if not isinstance(classes, np.ndarray) or not hasattr(member.estimator, "predict_proba"):
            raise ValueError("OrtSetClassifier takes a classifier of one label with probabilities.")
        member = replace(member, gives="probabilities")
        base = SetScores(METHODS[self.method], Probabilities())
        common = (np.zeros(0), coverage, "model" if is_own else "median", True)
        fitted = FittedSets((member,), base, *common, trained_on=parts.keys, classes=classes)
        numbers = _numbers(held_out.y, classes)
        self._fitted = self._calibrated(fitted, held_out, numbers, parts.rows, parts.groups)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, groups: Any = None) -> OrtSetClassifier:  # type: ignore[override]
        """Adapt the calibration to samples of a stream, in their order (adaptive conformal inference).

        After a miss, sets aim at a larger coverage, otherwise at a slightly smaller one. The model is not
        trained; the first call on an unfitted object is ``fit``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New samples.
        y : array-like of shape (n_samples,)
            Their classes.
        classes : array-like of shape (n_classes,), default=None
            All classes of the stream, which the samples of the first call must have.
        groups : array-like of shape (n_samples,), default=None
            Groups of the samples.

        Returns
        -------
        OrtSetClassifier
            This object.

        Raises
        ------
        ValueError
            If the first call lacks a class, or a later one has other classes.
        """
        if classes is not None:
            known = np.unique(self._given(y)) if self._fitted is None else self._fitted.classes
            if other := sorted({*np.asarray(classes).tolist()} ^ {*known.tolist()}, key=str):
                raise ValueError(
                    f"The classes {other} are not both in classes and among those of the first call, whose "
                    "samples train the model: pass samples of all classes first."
                )
        return super().partial_fit(X, y, groups)

    def _check_count(self, n: int, coverage: float) -> None:
        """Raise a ValueError if calibration samples are too few."""
        super()._check_count(n if self.probabilities is None else n // 2, coverage)

    def _calibrated(
        self, fitted: FittedSets, held_out: Samples, numbers: np.ndarray, rows: np.ndarray, names: tuple
    ) -> FittedSets:
        """Return the model with calibrated probabilities and sets; each takes half of the samples."""
        if self.probabilities is None:
            return fitted.calibrated_on(held_out.X, numbers, rows, names)
        order = np.random.RandomState(0).permutation(len(numbers))
        first, second = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
        missing = np.setdiff1d(np.arange(len(fitted.classes)), numbers[second])
        if len(missing) and self.probabilities != "temperature":
            raise ValueError(
                f"The calibration samples lack the classes {fitted.classes[missing].tolist()}: pass more, or "
                "probabilities='temperature', which has one factor for all classes."
            )
        changed = fitted.with_probabilities(self.probabilities, held_out.take(second).X, numbers[second])
        return changed.calibrated_on(held_out.take(first).X, numbers[first], rows[first], names)

    def _given(self, y: Any, name: str = "y") -> np.ndarray:
        """Return labels of shape (n,)."""
        if y is None:
            raise ValueError(f"{name} is missing: requires y to be passed, but the target y is None.")
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        return y

    def _labels(self, y: Any) -> np.ndarray:
        """Return the numbers of classes."""
        return _numbers(self._given(y), self._model().classes)


def _numbers(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the number of the class of each label."""
    numbers = indices_of(y.astype(object), classes)
    if len(unknown := np.unique(y[numbers < 0])):
        raise other_classes(unknown, classes, False, None)
    return numbers
