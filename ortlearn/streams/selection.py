"""Selection of the columns of a source that are features, labels and weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..exceptions import SourceError
from .rows import Rows
from .tables import Table, pyarrow, values_of

__all__ = ["Selection"]


@dataclass(frozen=True)
class Selection:
    """Columns of features, labels and weights.

    Attributes
    ----------
    features : list of str
        Features.
    y : str, list of str or None
        Columns of labels.
    sample_weight : str or None
        Column of weights.
    width : int
        Number of values in a row of features.
    """

    features: list[str]
    y: Any
    sample_weight: str | None
    width: int

    @classmethod
    def of(cls, schema: Any, features: Any, y: Any, sample_weight: Any) -> Selection:
        """Return the selection by name; by default, all remaining columns are features."""
        for name, value in (("y", y), ("sample_weight", sample_weight)):
            if value is not None and not isinstance(value, str) and not _are_names(value):
                raise ValueError(
                    f"{name} must be the name of a column of the source, not {type(value).__name__}: its "
                    f"columns are {schema.names}."
                )
        labels = [y] if isinstance(y, str) else list(y or ())
        others = [*labels, *([] if sample_weight is None else [sample_weight])]
        chosen = [name for name in schema.names if name not in others] if features is None else list(features)
        missing = [name for name in (*chosen, *others) if name not in schema.names]
        if missing:
            raise ValueError(f"The source has no columns {missing}. Its columns are {schema.names}.")
        if not chosen:
            raise ValueError(f"No column is left for features. The columns are {schema.names}.")
        width = sum(getattr(schema.field(name).type, "list_size", 1) for name in chosen)
        return cls(chosen, y if isinstance(y, str) or y is None else labels, sample_weight, width)

    def columns(self, features: bool = True) -> list[str]:
        """Return the names of the columns to read; features are included if there are no other columns."""
        labels = [self.y] if isinstance(self.y, str) else list(self.y or ())
        others = [*labels, *([] if self.sample_weight is None else [self.sample_weight])]
        return [*(self.features if features or not others else ()), *others]

    @property
    def names(self) -> list[str] | None:
        """Names of the features."""
        return self.features

    def rows(self, batch: Any, where: str) -> Rows:
        """Return the rows of a record batch; X is None if it has no features."""
        has_features = self.features[0] in batch.schema.names
        y = None
        if isinstance(self.y, str):
            y = _column(batch, self.y, where)
        elif self.y is not None:
            y = np.stack([_column(batch, name, where) for name in self.y], axis=1)
        weight = None if self.sample_weight is None else _column(batch, self.sample_weight, where)
        return Rows(Table(batch.select(self.features)) if has_features else None, y, weight, where)


def _are_names(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)


def _column(batch: Any, name: str, where: str) -> np.ndarray:
    """Return a column of labels or weights as an array; reject nulls."""
    column = batch.column(batch.schema.get_field_index(name))
    if column.null_count:
        raise SourceError(
            f"Column {name!r} has {column.null_count} nulls in {where}. Fill them, or drop these rows."
        )
    if pyarrow().types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return values_of(column)
