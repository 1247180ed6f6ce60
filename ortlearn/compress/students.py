"""Students by their sizes, and more samples for them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import NearestNeighbors
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import _safe_indexing, check_array
from sklearn.utils.validation import _num_samples

__all__ = ["joined", "more_samples", "student_of_size"]

_SIZE = re.compile(r"linear|mlp:([1-9]\d*(?:,[1-9]\d*)*)|trees:([1-9]\d*)x([1-9]\d*)")
#: Neighbours to interpolate with, and the noise of smoothed samples as a share of the standard deviation.
NEIGHBOURS, NOISE = 5, 0.4


def student_of_size(size: str, X: Any, classifies: bool, seed: int) -> Any:
    """Return an unfitted student: ``"linear"``, ``"mlp:64,32"`` or ``"trees:20x4"`` (iterations x depth)."""
    match = _SIZE.fullmatch(size.replace(" ", ""))
    if match is None:
        raise ValueError(
            f"student={size!r} must be an estimator, an ONNX file, or a size: 'linear', 'mlp:32', "
            "'mlp:64,32' or 'trees:20x4'."
        )
    layers, count, depth = match.groups()
    if count:
        trees = HistGradientBoostingClassifier if classifies else HistGradientBoostingRegressor
        model = trees(
            max_iter=int(count),
            max_depth=int(depth),
            max_leaf_nodes=2 ** int(depth),
            early_stopping=False,
            learning_rate=min(0.3, 8 / int(count)),
            random_state=seed,
        )
        return make_pipeline(*filter(None, [_encoder(X, scales=False)]), model)
    if layers:
        sizes = tuple(int(number) for number in layers.split(","))
        if classifies:
            model = MLPClassifier(sizes, random_state=seed)
        else:
            network = MLPRegressor(hidden_layer_sizes=sizes, random_state=seed)
            model = TransformedTargetRegressor(network, transformer=StandardScaler())
    else:
        model = LogisticRegression() if classifies else Ridge()
    return make_pipeline(_encoder(X), model)


def _encoder(X: Any, scales: bool = True) -> Any:
    """Return the step that scales numbers and encodes other columns; None if there is nothing to do."""
    texts = [column for column in range(np.shape(X)[1]) if not _is_number(X, column)]
    numbers = [column for column in range(np.shape(X)[1]) if column not in texts]
    scaler = StandardScaler() if scales else None
    given = _safe_indexing(X, numbers, axis=1)
    given = check_array(given, dtype=np.float64, ensure_all_finite=False, ensure_min_features=0)
    if scales and np.isnan(given).any():
        scaler = make_pipeline(SimpleImputer(add_indicator=True), scaler)
    if not texts:
        return scaler
    steps = [("categories", OneHotEncoder(handle_unknown="ignore", sparse_output=False), texts)]
    return ColumnTransformer([*steps, ("numbers", scaler or "passthrough", numbers)])


def _is_number(X: Any, column: int) -> bool:
    kind = X.iloc[:, column].dtype if hasattr(X, "iloc") else np.asarray(X).dtype
    return getattr(kind, "kind", "O") in "fiub"


def more_samples(X: Any, count: int, rng: np.random.RandomState) -> Any:
    """Return samples between those of X and their neighbours, with some noise, of the types of its columns.

    Numbers are interpolated and smoothed, and rounded in columns of integers, where there is no noise; other
    values are those of either sample.
    """
    n_samples = _num_samples(X)
    frame = X if hasattr(X, "iloc") else None
    columns = [np.asarray(X.iloc[:, i] if frame is not None else X[:, i]) for i in range(np.shape(X)[1])]
    numbers = [i for i in range(len(columns)) if _is_number(X, i)]
    first = rng.randint(n_samples, size=count)
    second = rng.randint(n_samples, size=count)
    if numbers:
        matrix = np.nan_to_num(np.column_stack([columns[i] for i in numbers]).astype(np.float64))
        scaled = StandardScaler().fit_transform(matrix)
        near = NearestNeighbors(n_neighbors=min(NEIGHBOURS + 1, n_samples)).fit(scaled)
        found = near.kneighbors(scaled, return_distance=False)
        second = found[first, rng.randint(found.shape[1], size=count)]
    share, is_first = rng.uniform(size=count), rng.uniform(size=(len(columns), count)) < 0.5
    made = []
    for i, column in enumerate(columns):
        a, b = column[first], column[second]
        if i not in numbers or column.dtype.kind == "b":
            made.append(np.where(is_first[i], a, b))
            continue
        values = a + share * (b.astype(np.float64) - a)
        if np.array_equal(np.rint(column), column):
            values = np.rint(values)
        else:
            noise = rng.normal(size=count) * np.nanstd(column) * NOISE
            values = np.clip(values + noise, np.nanmin(column), np.nanmax(column))
        made.append(values.astype(column.dtype))
    if frame is None:
        return np.column_stack(made)
    result = _safe_indexing(X, first).copy()
    for name, values in zip(X.columns, made, strict=True):
        result[name] = values
    return result.astype(X.dtypes.to_dict()).reset_index(drop=True)


def joined(X: Any, drawn: Any) -> Any:
    """Return samples followed by others."""
    if not hasattr(X, "iloc"):
        return np.concatenate([np.asarray(X), drawn])
    result = _safe_indexing(X, np.arange(len(X) + len(drawn)) % len(X)).reset_index(drop=True)
    for name in X.columns:
        result[name] = np.concatenate([X[name].to_numpy(), drawn[name].to_numpy()])
    return result.astype(X.dtypes.to_dict())
