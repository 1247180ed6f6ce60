"""Find the columns in which a fitted estimator supports missing values."""

from collections.abc import Hashable, Set
from typing import Any

import numpy as np
from onnx import ModelProto
from scipy.sparse import issparse
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import _safe_indexing, get_tags

from ..models.registry import definition_or_default
from ..models.transformations.pipelines import working_steps
from .columns import NUMBERS, as_columns, column_kind, columns_of, is_frame, missing_samples, with_new_columns
from .estimator_checks import outcome

#: Operators that take missing values.
OPERATORS = {"Imputer", "IsNaN", "TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor"}
MAX_COLUMNS = 64  # maximum number of columns to try one by one


def accepts_missing(estimator: Any) -> bool:
    """Return whether the first estimator that reads X supports missing values, by its tags."""
    if isinstance(estimator, Pipeline):
        steps = working_steps(estimator)
        for _, step in steps:  # up to the step that removes missing values
            if not accepts_missing(step) or not definition_or_default(step).keeps_missing:
                return accepts_missing(step)
        return bool(steps)
    if isinstance(estimator, FeatureUnion):
        return any(accepts_missing(step) for _, step in estimator.transformer_list)  # on other columns
    if isinstance(estimator, ColumnTransformer):
        return any(accepts_missing(step) for _, step, _ in estimator.transformers)
    if isinstance(estimator, str):
        return estimator == "passthrough"
    if isinstance(estimator, type) or not hasattr(estimator, "__sklearn_tags__"):
        return False
    # The tags of a meta-estimator ignore a nested ColumnTransformer.
    members = getattr(estimator, "estimators", None)
    parts = [item[1] for item in members if isinstance(item, tuple)] if isinstance(members, list) else []
    parts += [getattr(estimator, name, None) for name in ("estimator", "regressor")]
    tags = get_tags(estimator)  # no_validation allows any values
    return tags.input_tags.allow_nan or tags.no_validation or any(map(accepts_missing, parts))


def has_missing_operators(model: ModelProto) -> bool:
    """Return whether a graph has operators that take missing values."""
    return any(node.op_type in OPERATORS for node in model.graph.node)


def missing_columns(estimator: Any, X: Any) -> frozenset[int]:
    """Return the columns in which a fitted estimator supports missing values, by trial."""
    sample = _safe_indexing(X, np.array([0]))
    if issparse(sample):
        sample = sample.toarray()
    sample = as_columns(sample)
    if not is_frame(sample) and sample.ndim < 2:
        return frozenset()
    positions = {key: position for position, (key, _) in enumerate(columns_of(sample))}
    numbers = [key for key, values in columns_of(sample) if column_kind(values) in NUMBERS.values()]
    if _accepts(estimator, sample, {*numbers}):
        return frozenset(positions.values())
    if len(numbers) > MAX_COLUMNS:
        gaps = (
            set() if issparse(X) else {key for key, values in columns_of(X) if len(missing_samples(values))}
        )
        numbers = [key for key in numbers if key in gaps]
    return frozenset(positions[key] for key in numbers if _accepts(estimator, sample, {key}))


def _accepts(estimator: Any, sample: Any, keys: Set[Hashable]) -> bool:
    """Return whether an estimator supports a sample with missing values in given columns."""

    def drop(key: Hashable, values: np.ndarray, kind: str) -> Any:
        return np.full(len(values), np.nan) if key in keys else values

    if not is_frame(sample) and sample.dtype.kind in "iub":
        sample = sample.astype(np.float64)
    try:
        with np.errstate(all="ignore"):
            result = outcome(estimator, with_new_columns(sample, drop))
    except Exception:  # rejects missing values
        return False
    values = result.toarray() if issparse(result) else np.asarray(result)
    return values.dtype.kind not in "fc" or not np.isnan(values).any()
