"""Which step of a pipeline reads a column first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer

from ..models import unwrapped
from ..models.pipelines import column_positions

__all__ = ["IDLE_STEPS", "Reader", "first_readers", "last_step", "selects_by_name"]

#: Steps that change nothing.
IDLE_STEPS = (None, "passthrough")
#: Attributes of ensembles and wrappers whose estimators are given all columns.
MEMBERS = ("estimators_", "estimator_", "calibrated_classifiers_")


@dataclass(frozen=True)
class Reader:
    """A step that reads a column of X.

    Attributes
    ----------
    position : int
        Position of the column in X.
    step : estimator or None
        What reads it; None where it is passed through.
    index : int
        Position of the column among those the step reads.
    imputed : bool
        Whether missing values were filled before.
    """

    position: int
    step: Any
    index: int
    imputed: bool = False


def _is_idle(step: Any) -> bool:
    if isinstance(step, str) or step is None:
        return step in IDLE_STEPS
    return isinstance(step, FunctionTransformer) and step.func is None


def first_readers(estimator: Any, columns: Sequence[int], imputed: bool = False) -> Iterator[Reader]:
    """Yield what reads each column of X first; a column may have several readers, or none.

    Parameters
    ----------
    estimator : estimator or str
        Fitted estimator, pipeline or transformer.
    columns : sequence of int
        Positions in X of the columns it is given.
    imputed : bool, default=False
        Whether missing values were filled before.

    Yields
    ------
    Reader
        Step and column. Steps that only fill missing values are looked through.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.compose import ColumnTransformer
    >>> from sklearn.preprocessing import OneHotEncoder, StandardScaler
    >>> from ortlearn.preprocessing.readers import first_readers
    >>> columns = ColumnTransformer([("codes", OneHotEncoder(), [2]), ("scaled", StandardScaler(), [0])])
    >>> columns = columns.fit(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    >>> [(reader.position, type(reader.step).__name__) for reader in first_readers(columns, [0, 1, 2])]
    [(2, 'OneHotEncoder'), (0, 'StandardScaler')]
    """
    estimator = unwrapped(estimator)
    if _is_idle(estimator) or _passes_columns(estimator):
        yield from (Reader(column, None, index, imputed) for index, column in enumerate(columns))
    if _is_idle(estimator):
        return
    if isinstance(estimator, Pipeline):
        steps = [step for _, step in estimator.steps if not _is_idle(step)]
        while len(steps) > 1 and _fills_only(steps[0], len(columns)):
            steps, imputed = steps[1:], True
        yield from first_readers(steps[0] if steps else None, columns, imputed)
    elif isinstance(estimator, FeatureUnion):
        for _, step in estimator.transformer_list:
            if not (isinstance(step, str) and step == "drop"):
                yield from first_readers(step, columns, imputed)
    elif members := _members(estimator):
        some = getattr(estimator, "estimators_features_", [range(len(columns))] * len(members))
        for member, own in zip(members, some, strict=True):
            yield from first_readers(member, [columns[index] for index in own], imputed)
    elif isinstance(estimator, ColumnTransformer):
        for _, step, indices in column_positions(estimator):
            # the members of a chain are given predictions, too
            own = [columns[index] for index in indices if index < len(columns)]
            yield from first_readers(step, own, imputed)
    else:
        yield from (Reader(column, estimator, index, imputed) for index, column in enumerate(columns))


def _passes_columns(estimator: Any) -> bool:
    """Return whether a stack of models that select columns gives the columns to its last model, too."""
    return bool(getattr(estimator, "passthrough", False)) and bool(_members(estimator))


def _members(estimator: Any) -> list[Any]:
    """Return the members of an ensemble that select columns themselves."""
    found = [value for name in _member_names(estimator) for value in _as_list(estimator, name)]
    return found if any(_selects(member) for member in found) else []


def _member_names(estimator: Any) -> tuple[str, ...]:
    # Parameters of constructors are not fitted, but this one is a private object, not an estimator.
    if type(estimator).__name__ == "_CalibratedClassifier":
        return ("estimator",)
    # beside members, what they were made of is not fitted
    return MEMBERS[:1] if hasattr(estimator, MEMBERS[0]) else MEMBERS[1:]


def _as_list(estimator: Any, name: str) -> list[Any]:
    value = getattr(estimator, "__dict__", {}).get(name, [])
    return value if isinstance(value, list) else [value]


def _selects(estimator: Any) -> bool:
    """Tell whether an estimator begins with a selection of columns."""
    estimator = unwrapped(estimator)
    if isinstance(estimator, Pipeline):
        return any(_selects(step) for _, step in estimator.steps)
    if isinstance(estimator, FeatureUnion):
        return any(_selects(step) for _, step in estimator.transformer_list)
    return isinstance(estimator, ColumnTransformer) or bool(_members(estimator))


def _fills_only(step: Any, n_columns: int) -> bool:
    """Tell whether a step fills missing values and leaves the columns where they are."""
    if not isinstance(step, SimpleImputer) or getattr(step, "indicator_", None) is not None:
        return False
    return len(step.get_feature_names_out()) == n_columns


def selects_by_name(estimator: Any) -> bool:
    """Tell whether the columns of a frame are selected by name before anything else reads them.

    Parameters
    ----------
    estimator : estimator
        Fitted estimator or pipeline.

    Returns
    -------
    bool
        Whether a ColumnTransformer comes first that was fitted on names and selects by them.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn.preprocessing.readers import selects_by_name
    >>> selects_by_name(Ridge())
    False
    """
    estimator = unwrapped(estimator)
    if isinstance(estimator, Pipeline):
        steps = [step for _, step in estimator.steps if not _is_idle(step)]
        return bool(steps) and selects_by_name(steps[0])
    if isinstance(estimator, FeatureUnion):
        return all(selects_by_name(step) for _, step in estimator.transformer_list)
    if members := _members(estimator):
        return not _passes_columns(estimator) and all(selects_by_name(member) for member in members)
    return isinstance(estimator, ColumnTransformer) and hasattr(estimator, "feature_names_in_")


def last_step(estimator: Any) -> Any:
    """Return the estimator at the end of pipelines, which may be nested; idle steps do not count."""
    while isinstance(estimator, Pipeline):
        steps = [step for _, step in estimator.steps if step not in IDLE_STEPS]
        estimator = steps[-1] if steps else None
    return estimator
