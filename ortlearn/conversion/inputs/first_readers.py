"""Which step of a pipeline reads a column first."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer

__all__ = ["IDLE_STEPS", "Reader", "first_readers", "selects_by_name", "with_positions"]

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


def column_indices(transformer: ColumnTransformer) -> Iterator[tuple[str, Any, list[int]]]:
    """Yield name, step and column positions of what a fitted ColumnTransformer holds, dropped ones excepted.

    Parameters
    ----------
    transformer : ColumnTransformer
        Fitted.

    Yields
    ------
    name : str
        Name.
    step : estimator or str
        What reads the columns.
    indices : list of int
        Their positions.
    """
    positions = transformer._transformer_to_input_indices
    for name, step, _ in transformer.transformers_:
        indices = [int(index) for index in positions.get(name, [])]
        if indices and not (isinstance(step, str) and step == "drop"):
            yield name, step, indices


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
    >>> from ortlearn.conversion.inputs.first_readers import first_readers
    >>> columns = ColumnTransformer([("codes", OneHotEncoder(), [2]), ("scaled", StandardScaler(), [0])])
    >>> columns = columns.fit(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    >>> [(reader.position, type(reader.step).__name__) for reader in first_readers(columns, [0, 1, 2])]
    [(2, 'OneHotEncoder'), (0, 'StandardScaler')]
    """
    if _is_idle(estimator):
        yield from (Reader(column, None, index, imputed) for index, column in enumerate(columns))
    elif isinstance(estimator, Pipeline):
        steps = [step for _, step in estimator.steps if not _is_idle(step)]
        while len(steps) > 1 and _fills_only(steps[0], len(columns)):
            steps, imputed = steps[1:], True
        yield from first_readers(steps[0] if steps else None, columns, imputed)
    elif isinstance(estimator, FeatureUnion):
        for _, step in estimator.transformer_list:
            if not (isinstance(step, str) and step == "drop"):
                yield from first_readers(step, columns, imputed)
    elif members := _members(estimator):
        for member in members:
            yield from first_readers(member, columns, imputed)
    elif isinstance(estimator, ColumnTransformer):
        for _, step, indices in column_indices(estimator):
            yield from first_readers(step, [columns[index] for index in indices], imputed)
    else:
        yield from (Reader(column, estimator, index, imputed) for index, column in enumerate(columns))


def _members(estimator: Any) -> list[Any]:
    """Return the members of an ensemble that select columns themselves."""
    found = [value for name in _member_names(estimator) for value in _as_list(estimator, name)]
    return found if any(_selects(member) for member in found) else []


def _member_names(estimator: Any) -> tuple[str, ...]:
    # Parameters of constructors are not fitted, but this one is a private object, not an estimator.
    return ("estimator",) if type(estimator).__name__ == "_CalibratedClassifier" else MEMBERS


def _as_list(estimator: Any, name: str) -> list[Any]:
    value = getattr(estimator, "__dict__", {}).get(name, [])
    return value if isinstance(value, list) else [value]


def _selects(estimator: Any) -> bool:
    """Tell whether an estimator begins with a selection of columns."""
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
    >>> from ortlearn.conversion.inputs.first_readers import selects_by_name
    >>> selects_by_name(Ridge())
    False
    """
    if isinstance(estimator, Pipeline):
        steps = [step for _, step in estimator.steps if not _is_idle(step)]
        return bool(steps) and selects_by_name(steps[0])
    if isinstance(estimator, FeatureUnion):
        return all(selects_by_name(step) for _, step in estimator.transformer_list)
    if members := _members(estimator):
        return all(selects_by_name(member) for member in members)
    return isinstance(estimator, ColumnTransformer) and hasattr(estimator, "feature_names_in_")


def _moved(
    name: str, step: Any, indices: list[int], positions: Mapping[int, int] | None
) -> tuple[str, Any, list[int]]:
    """Return a part of a ColumnTransformer with the new positions of the columns that are left."""
    if positions is None:
        return name, with_positions(step, None), indices
    left = [place for place, index in enumerate(indices) if index in positions]
    # A step that selects columns itself may be given some that nobody reads.
    own = None if len(left) == len(indices) else {place: new for new, place in enumerate(left)}
    return name, with_positions(step, own), [positions[indices[place]] for place in left]


def with_positions(estimator: Any, positions: Mapping[int, int] | None) -> Any:
    """Return a copy whose first ColumnTransformers select columns by their new positions.

    Parameters
    ----------
    estimator : estimator
        Fitted estimator or pipeline.
    positions : mapping of int to int or None
        New position of each column that is left; None where columns stay where they are.

    Returns
    -------
    estimator
        Copy that is good for conversion only.
    """
    if isinstance(estimator, Pipeline) and estimator.steps:
        steps = [(name, with_positions(step, None)) for name, step in estimator.steps]
        first = next((i for i, (_, step) in enumerate(steps) if not _is_idle(step)), 0)
        steps[first] = (steps[first][0], with_positions(estimator.steps[first][1], positions))
        return Pipeline(steps)
    if isinstance(estimator, FeatureUnion):
        union = copy.copy(estimator)
        union.transformer_list = [(n, with_positions(s, positions)) for n, s in estimator.transformer_list]
        return union
    if isinstance(estimator, ColumnTransformer):
        chosen = copy.copy(estimator)
        chosen.transformers_ = [_moved(*item, positions) for item in column_indices(estimator)]
        return chosen
    if _members(estimator):
        ensemble = copy.copy(estimator)
        for name in _member_names(estimator):
            if name in ensemble.__dict__:
                members = [with_positions(member, positions) for member in _as_list(estimator, name)]
                one = not isinstance(ensemble.__dict__[name], list)
                ensemble.__dict__[name] = members[0] if one else members
        return ensemble
    return estimator
