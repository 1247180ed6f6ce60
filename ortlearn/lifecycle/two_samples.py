"""Whether a classifier can tell new samples from reference samples, and by which columns.

A network is trained on half of the samples to tell one kind from the other. If both kinds have the same
distribution, its accuracy on the other half is that of a coin (Lopez-Paz, D. and Oquab, M., "Revisiting
classifier two-sample tests", ICLR 2017). The gradient of its decision with respect to the inputs names the
columns, also those whose relation to others has changed and not their own distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from ..evaluation.data_files import Table
from ..functions import differentiable
from ..quiet import quiet

__all__ = ["TwoSampleTest", "two_sample_test"]

#: Largest number of samples of each kind.
MOST_SAMPLES = 2000
#: Fewest samples of each kind: with fewer, half of them cannot show a difference.
FEWEST_SAMPLES = 20
#: Largest number of categories of a column with an indicator each.
MOST_CATEGORIES = 20
#: Bound of numbers, also of infinite ones.
LARGEST = 1e30
#: Units of the hidden layer, and epochs.
UNITS, EPOCHS = 32, 100


@dataclass(frozen=True)
class TwoSampleTest:
    """Result of the test.

    Attributes
    ----------
    accuracy : float
        On samples that the classifier was not trained on, as many of each kind.
    p_value : float
        Probability that a coin is right so often.
    columns : dict of str to float
        Mean absolute gradient of the decision in standard deviations of the column (of categories, the mean
        over their indicators), as shares that sum to one, in decreasing order.
    """

    accuracy: float
    p_value: float
    columns: dict[str, float]


def two_sample_test(reference: Table, new: Table, random_state: int) -> TwoSampleTest | None:
    """Return the result, or None if there are too few samples."""
    n_samples = min(len(reference), len(new), MOST_SAMPLES)
    if n_samples < FEWEST_SAMPLES:
        return None
    rng = np.random.RandomState(random_state)
    names = [name for name in reference.features.columns if name in new.features.columns]
    frames = [
        table.features[names].iloc[np.sort(rng.choice(len(table), n_samples, replace=False))]
        for table in (reference, new)
    ]
    X, owners = _encoded(frames)
    y = np.repeat([0, 1], n_samples)
    order = np.concatenate([rng.permutation(n_samples), n_samples + rng.permutation(n_samples)])
    is_train = np.tile(np.arange(n_samples) < n_samples // 2, 2)
    train, test = order[is_train], order[~is_train]
    model = MLPClassifier((UNITS,), alpha=0.1, max_iter=EPOCHS, random_state=random_state)
    with quiet(ConvergenceWarning):
        model.fit(X[train], y[train])
    right = int((model.predict(X[test]) == y[test]).sum())
    p_value = float(stats.binomtest(right, len(test), alternative="greater").pvalue)
    slopes = np.abs(differentiable(model, output="raw_score").gradient(X[test])).mean(axis=0)
    means = np.bincount(owners, slopes, len(names)) / np.maximum(np.bincount(owners, minlength=len(names)), 1)
    shares = means / max(float(means.sum()), np.finfo(float).tiny)
    ranked = sorted(zip(names, shares.tolist(), strict=True), key=lambda item: -item[1])
    return TwoSampleTest(right / len(test), p_value, dict(ranked))


def _encoded(frames: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return standardised numbers and indicators of categories and gaps, and the column of each."""
    import pandas as pd
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    both = pd.concat(frames, ignore_index=True)
    columns, owners = [], []
    for number, name in enumerate(both.columns):
        values = both[name]
        parts = [values.isna().to_numpy(float)]
        if is_numeric_dtype(values) and not is_bool_dtype(values):
            numbers = values.to_numpy(float, na_value=np.nan)
            numbers = np.clip(numbers, -LARGEST, LARGEST)
            parts.append(
                np.where(np.isnan(numbers), np.nanmedian(numbers) if parts[0].min() < 1 else 0, numbers)
            )
        else:
            texts = values.astype(str)
            parts += [
                (texts == kind).to_numpy(float) for kind in texts.value_counts().index[:MOST_CATEGORIES]
            ]
        columns += parts
        owners += [number] * len(parts)
    X = np.column_stack(columns)
    spread = X.std(axis=0)
    kept = spread > 0
    return (X[:, kept] - X[:, kept].mean(axis=0)) / spread[kept], np.array(owners)[kept]
