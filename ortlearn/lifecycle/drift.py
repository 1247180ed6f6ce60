"""Drift: which columns, predictions and scores of new samples differ from those of reference samples.

Numbers are compared by the two-sample test of Kolmogorov and Smirnov, categories by the chi-squared test of
homogeneity, shares of missing values by Fisher's exact test (all of scipy). The p-values of all columns are
adjusted together (Benjamini, Y. and Hochberg, Y., "Controlling the false discovery rate", Journal of the
Royal Statistical Society B 57 (1995), 289-300), so that of the columns that are named, on average at most the
share ``level`` is named by chance. The population stability index (Siddiqi, N., "Credit risk scorecards",
2006) measures how large a difference is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from ..evaluation.data_files import Table
from ..evaluation.predictions import Predictions

__all__ = ["ColumnDrift", "adjusted", "column_drift", "drifts_of", "prediction_drift"]

#: Number of parts of equal probability of the reference, in which the stability index counts samples.
PARTS = 10
#: Smallest share of a part in the stability index, which is infinite for 0.
SMALLEST_SHARE = 1e-3
#: Expected number below which categories are counted together in the chi-squared test (Cochran's rule).
FEWEST_EXPECTED = 5
#: Distinct values up to which whole numbers are categories.
FEW_VALUES = 10


@dataclass(frozen=True)
class ColumnDrift:
    """Difference of a column between reference and new samples.

    Attributes
    ----------
    name : str
        Column.
    test : str
        ``"Kolmogorov-Smirnov"`` or ``"chi-squared"``.
    statistic, p_value : float
        Result of the test; NaN if one part has no values.
    missing : tuple of float
        Shares of missing values, of the reference and of the new samples.
    missing_p_value : float
        Result of Fisher's exact test of these shares.
    stability : float
        Population stability index, with missing values as a separate part. Below 0.1 is commonly called
        small, above 0.25 large.
    adjusted_p_value : float
        The smaller one of both p-values, adjusted for all columns.
    drifted : bool
        Whether it is at most the level.
    """

    name: str
    test: str
    statistic: float
    p_value: float
    missing: tuple[float, float]
    missing_p_value: float
    stability: float
    adjusted_p_value: float = float("nan")
    drifted: bool = False


def drifts_of(reference: Table, new: Table, level: float) -> list[ColumnDrift]:
    """Return the drift of each column that both tables have, the largest stability index first."""
    from dataclasses import replace

    names = [name for name in reference.features.columns if name in new.features.columns]
    found = [column_drift(name, reference.features[name], new.features[name]) for name in names]
    adjusted_values = adjusted([value for item in found for value in (item.p_value, item.missing_p_value)])
    smaller = np.fmin(adjusted_values[::2], adjusted_values[1::2])
    found = [
        replace(item, adjusted_p_value=float(value), drifted=bool(value <= level))
        for item, value in zip(found, smaller, strict=True)
    ]
    return sorted(found, key=lambda item: (not item.drifted, -item.stability))


def column_drift(name: str, reference: Any, new: Any) -> ColumnDrift:
    """Return the drift of a column, given as two series of pandas."""
    parts = [series.dropna().to_numpy() for series in (reference, new)]
    missing = float(reference.isna().mean()), float(new.isna().mean())
    counts = [[int(series.isna().sum()), int(series.notna().sum())] for series in (reference, new)]
    missing_p = float(stats.fisher_exact(counts)[1])
    numeric = all(_are_numbers(part) for part in parts) and len(np.unique(parts[0])) > FEW_VALUES
    if min(map(len, parts)) == 0:
        test, statistic, p_value = "Kolmogorov-Smirnov" if numeric else "chi-squared", np.nan, np.nan
    elif numeric:
        test, (statistic, p_value) = "Kolmogorov-Smirnov", stats.ks_2samp(*map(_floats, parts))
    else:
        test, (statistic, p_value) = "chi-squared", _chi_squared(*_category_counts(parts))
    if numeric:
        shares = _number_shares(*map(_floats, parts))
    else:
        tables = _category_counts(parts)
        shares = tuple(table / max(table.sum(), 1) for table in tables)
    known = [np.append(share * (1 - gap), gap) for share, gap in zip(shares, missing, strict=True)]
    return ColumnDrift(name, test, float(statistic), float(p_value), missing, missing_p, _stability(*known))


def prediction_drift(reference: Predictions, new: Predictions) -> ColumnDrift:
    """Return the drift of predictions; of the probability of the last class if there are two."""
    import pandas as pd

    values = [reference.values, new.values]
    probabilities = [reference.probabilities, new.probabilities]
    if all(part is not None and part.shape[1] == 2 for part in probabilities):
        values = [part[:, 1] for part in probabilities if part is not None]
    return column_drift("prediction", *map(pd.Series, values))


def adjusted(p_values: Sequence[float]) -> np.ndarray:
    """Return p-values adjusted by the method of Benjamini and Hochberg; NaN stays NaN, and does not count."""
    values = np.asarray(p_values, dtype=np.float64)
    known = np.flatnonzero(~np.isnan(values))
    order = known[np.argsort(-values[known], kind="stable")]
    ranks = np.arange(len(order), 0, -1)
    result = np.full_like(values, np.nan)
    result[order] = np.minimum.accumulate(np.minimum(values[order] * len(order) / ranks, 1.0))
    return result


def _are_numbers(values: np.ndarray) -> bool:
    return np.asarray(values).dtype.kind in "iuf"


def _floats(values: np.ndarray) -> np.ndarray:
    return np.asarray(values, dtype=np.float64)


def _category_counts(parts: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return how often each category occurs in both parts."""
    texts = [np.asarray(part).astype(str) for part in parts]
    known = np.unique(np.concatenate(texts)) if len(texts[0]) + len(texts[1]) else np.zeros(0, str)
    first, second = (np.bincount(np.searchsorted(known, text), minlength=len(known)) for text in texts)
    return first, second


def _chi_squared(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """Return statistic and p-value, with rare categories counted together."""
    total = first + second
    expected = total * min(first.sum(), second.sum()) / total.sum()
    rare = expected < FEWEST_EXPECTED
    table = np.array([[*part[~rare], part[rare].sum()] for part in (first, second)])
    table = table[:, table.sum(axis=0) > 0]
    if table.shape[1] < 2:
        return 0.0, 1.0
    result = stats.chi2_contingency(table, correction=False)
    return float(result[0]), float(result[1])


def _number_shares(reference: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the shares of samples in parts of equal probability of the reference."""
    if len(reference) == 0:
        return np.zeros(1), np.ones(1)
    bounds = np.unique(np.quantile(reference, np.linspace(0, 1, PARTS + 1)[1:-1]))
    counted = (
        np.bincount(np.searchsorted(bounds, part), minlength=len(bounds) + 1) for part in (reference, new)
    )
    first, second = (counts / max(int(counts.sum()), 1) for counts in counted)
    return first, second


def _stability(reference: np.ndarray, new: np.ndarray) -> float:
    """Return the sum of (q - p) log(q / p) over the parts."""
    p, q = (np.maximum(part, SMALLEST_SHARE) for part in (reference, new))
    return float(np.sum((q - p) * np.log(q / p)))
