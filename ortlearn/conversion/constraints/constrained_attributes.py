"""Which fitted attributes have a constraint."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...models.constraints.base import Constraint
from ...models.constraints.sets import Increasing, LogProbability, Rising, Simplex, Triangular
from ...models.constraints.signs import NotNegative, Positive
from ..weights.learned_parameters import Match

__all__ = ["CONSTRAINED", "constraint_of"]


def _positive(match: Match, array: np.ndarray) -> Constraint | None:
    # The logarithm of a positive number is any number.
    return None if match.transform == "log" else Positive(-1 if "negative" in match.transform else 1)


def _negative(match: Match, array: np.ndarray) -> Constraint | None:
    return Positive(1 if "negative" in match.transform else -1) if _as_it_is(match) else None


def _shares(match: Match, array: np.ndarray) -> Constraint | None:
    return Simplex(None, match.transform == "log") if match.transform in ("identity", "log") else None


def _log_shares(match: Match, array: np.ndarray) -> Constraint | None:
    """Logarithms of shares: of each row where the attribute has rows."""
    if match.transform != "identity" or len(match.arrays) > 1:
        return None
    if match.arrays[0].values.ndim < 2:
        return Simplex(None, logarithm=True)
    # Converters transpose; which axis the shares run along is told by what sums to one.
    axes = [axis for axis in range(array.ndim) if Simplex(axis, logarithm=True).holds(array)]
    return Simplex(axes[-1], logarithm=True) if axes else None


def _log_probability(match: Match, array: np.ndarray) -> Constraint | None:
    return LogProbability() if match.transform == "identity" else None


def _increasing(match: Match, array: np.ndarray) -> Constraint | None:
    return Increasing() if match.transform == "identity" and array.ndim == 1 else None


def _rising(match: Match, array: np.ndarray) -> Constraint | None:
    return Rising() if match.transform == "identity" and array.ndim == 2 else None


def _cholesky(match: Match, array: np.ndarray) -> Constraint | None:
    return Triangular() if array.ndim > 1 and Triangular().holds(array) else _positive(match, array)


def _not_negative(match: Match, array: np.ndarray) -> Constraint | None:
    """Coefficients of linear models that were fitted under ``positive=True``."""
    if not _as_it_is(match) or not all(array.positive for array in match.arrays):
        return None
    return NotNegative(-1 if match.transform == "negative" else 1)


def _as_it_is(match: Match) -> bool:
    return match.transform in ("identity", "negative")


#: What makes the constraint of an attribute, by class of its owner and name.
CONSTRAINED: dict[tuple[str, str], Callable[[Match, np.ndarray], Constraint | None]] = {
    ("AdaBoostClassifier", "estimator_weights_"): _positive,
    ("BayesianGaussianMixture", "precisions_cholesky_"): _cholesky,
    ("BernoulliNB", "class_log_prior_"): _log_shares,
    ("BernoulliNB", "feature_log_prob_"): _log_probability,
    ("CategoricalNB", "class_log_prior_"): _log_shares,
    ("CategoricalNB", "feature_log_prob_"): _log_shares,
    ("GaussianMixture", "precisions_cholesky_"): _cholesky,
    ("GaussianMixture", "weights_"): _shares,
    ("GaussianNB", "class_prior_"): _shares,
    ("GaussianNB", "var_"): _positive,
    ("GaussianProcessRegressor", "_y_train_std"): _positive,
    ("IsotonicRegression", "y_thresholds_"): _increasing,
    ("LocalOutlierFactor", "_lrd"): _positive,
    ("MaxAbsScaler", "scale_"): _positive,
    ("MinMaxScaler", "scale_"): _positive,
    ("MultinomialNB", "class_log_prior_"): _log_shares,
    ("MultinomialNB", "feature_log_prob_"): _log_shares,
    ("PCA", "explained_variance_"): _positive,
    ("QuadraticDiscriminantAnalysis", "priors_"): _shares,
    ("QuadraticDiscriminantAnalysis", "scalings_"): _positive,
    ("QuantileTransformer", "quantiles_"): _rising,
    ("RobustScaler", "scale_"): _positive,
    ("StandardScaler", "scale_"): _positive,
    ("_SigmoidCalibration", "a_"): _negative,
    **{(name, "_probA"): _negative for name in ("SVC", "NuSVC")},
}


def constraint_of(match: Match, array: np.ndarray) -> Constraint | None:
    """Return the constraint that an initializer must keep.

    Parameters
    ----------
    match : Match
        Attribute it holds.
    array : ndarray
        Its value.

    Returns
    -------
    Constraint or None
        None where there is none, or where the fitted value itself breaks it: a calibration that
        came out falling, say, is trained freely.
    """
    key = match.arrays[0].key
    make = _not_negative if key[1] == "coef_" else CONSTRAINED.get(key)
    constraint = None if make is None else make(match, array)
    return constraint if constraint is not None and constraint.holds(array) else None
