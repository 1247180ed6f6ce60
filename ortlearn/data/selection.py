"""Selection of the columns of a source that are features, labels and weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..exceptions import SourceError
from .sample_blocks import SampleBlock
from .schemas import check_kinds, check_unique
from .tables import Table, values_of

__all__ = ["Selection"]


@dataclass(frozen=True)
class Selection:
    """Columns of features, labels and weights; ``width`` is the number of values of a sample."""

    features: list[str]
    y: Any
    sample_weight: str | None
    width: int

    @classmethod
    def of(cls, schema: Any, features: Any, y: Any, sample_weight: Any) -> Selection:
        """Return the selection by name; by default, all remaining columns are features."""
        _check_are_names("y", [y] if isinstance(y, str) else y, schema)
        _check_are_names("sample_weight", None if sample_weight is None else [sample_weight], schema)
        _check_are_names("features", features, schema)
        labels = [y] if isinstance(y, str) else list(y or ())
        others = labels if sample_weight is None else [*labels, sample_weight]
        chosen = [name for name in schema.names if name not in others] if features is None else list(features)
        wanted = [*chosen, *others]
        missing = [name for name in wanted if name not in schema.names]
        if missing:
            raise SourceError(f"The source has no columns {missing}. Its columns are {schema.names}.")
        check_unique([name for name in schema.names if name in wanted], "X")
        repeated = sorted({name for name in wanted if wanted.count(name) > 1})
        if repeated:
            raise SourceError(
                f"y, sample_weight and features name the columns {repeated} more than once. Name each column "
                "once: a label or a weight cannot be a feature."
            )
        if not chosen:
            raise SourceError(f"No column is left for features. The columns are {schema.names}.")
        check_kinds(schema, chosen, others)
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

    def rows(self, batch: Any, where: str) -> SampleBlock:
        """Return the rows of a record batch; X is None if it has no features."""
        has_features = self.features[0] in batch.schema.names
        y = None
        if isinstance(self.y, str):
            y = _column(batch, self.y, where)
        elif self.y is not None:
            y = np.stack([_column(batch, name, where) for name in self.y], axis=1)
        weight = None if self.sample_weight is None else _column(batch, self.sample_weight, where)
        return SampleBlock(Table(batch.select(self.features)) if has_features else None, y, weight, where)


def _check_are_names(parameter: str, names: Any, schema: Any) -> None:
    """Raise an error if a parameter is given and does not name columns."""
    if names is None:
        return
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise SourceError(
            f"{parameter} must be the name of a column of the source, or a list of names: its columns are "
            f"{schema.names}."
        )


def _column(batch: Any, name: str, where: str) -> np.ndarray:
    """Return a column of labels or weights as an array; reject nulls."""
    column = batch.column(batch.schema.get_field_index(name))
    if column.null_count:
        raise SourceError(
            f"Column {name!r} has {column.null_count} nulls in {where}. Fill them, or drop these rows."
        )
    return values_of(column)
