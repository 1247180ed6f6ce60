"""Types of columns that are read in parts: those that all rows together have."""

from __future__ import annotations

from typing import Any

import numpy as np

from .messages import shown

__all__ = ["ColumnTypes"]

#: Kinds of values; a column of numbers with gaps is one of floats, a column of booleans with gaps of objects.
EMPTY, NUMBER, BOOLEAN, TEXT = "empty", "number", "boolean", "text"


class ColumnTypes:
    """Types of the columns of several frames; columns that are not in ``only`` are not read.

    All columns are read if one in ``only`` is missing, so that errors can list them.
    """

    def __init__(self, path: str, only: frozenset[str] | None = None):
        self._path, self._only = path, only
        self.names: list[str] = []
        self.read: list[str] = []
        #: By column: the type of values for each kind and type, and whether it is of a csv file.
        self._found: dict[str, dict[tuple[str, Any], bool]] = {}
        self._gaps: set[str] = set()

    def add_names(self, name: str, columns: list[str]) -> None:
        """Add the names of the columns of a file, which must be those of the first one."""
        if not self._found:
            self.names = columns
            selects = self._only is not None and self._only <= set(columns)
            self.read = [each for each in columns if not selects or each in (self._only or ())]
            self._found = {column: {} for column in self.read}
        if set(columns) != set(self.names):
            raise ValueError(
                f"{name} has the columns {shown(columns)}, and the first file of {self._path} has "
                f"{shown(self.names)}: all files need the same columns."
            )

    def add(self, frame: Any, gaps: set[str] | None = None, is_csv: bool = False) -> None:
        """Add the columns of a frame; ``gaps`` are those with missing values, by default as in the frame."""
        for column in self.read:
            values = frame[column]
            kind = _kind(values, gaps is None)
            if kind == EMPTY or (column in gaps if gaps is not None else values.isna().any()):
                self._gaps.add(column)
            if kind != EMPTY:
                found = self._found[column]
                found[kind, values.dtype] = found.get((kind, values.dtype), False) or is_csv

    def _kinds(self, column: str) -> set[str]:
        return {kind for kind, _ in self._found[column]}

    def mixed_csv_columns(self) -> frozenset[str]:
        """Return the columns of csv files that are text in some parts only, and must be read as text."""
        return frozenset(
            column
            for column, found in self._found.items()
            if len(self._kinds(column)) > 1
            and any(is_csv and kind != TEXT for (kind, _), is_csv in found.items())
        )

    def check(self) -> None:
        """Raise an error if a column has values of several kinds."""
        for column in self.read:
            kinds = sorted(self._kinds(column))
            if len(kinds) > 1:
                raise ValueError(
                    f"column {column!r} of {self._path} is {' in one file and '.join(kinds)} in another: "
                    "write all files with one type."
                )

    def unified(self, frame: Any) -> Any:
        """Return a frame with the columns in the order and with the types of all frames."""
        types = {column: self._type(column) for column in self.read}
        changed = {  # None is equal to the type float64 of numpy
            name: kind for name, kind in types.items() if kind is not None and kind != frame[name].dtype
        }
        frame = frame[self.read]
        return frame.astype(changed) if changed else frame

    def _type(self, column: str) -> Any:
        """Return the type of a column; None to leave it as it is."""
        types = list(dict.fromkeys(kind for _, kind in self._found[column]))
        if not types:
            return None
        has_gaps, numpy_types = column in self._gaps, all(isinstance(kind, np.dtype) for kind in types)
        if self._kinds(column) == {NUMBER}:
            if len(types) == 1 and not (has_gaps and numpy_types):
                return types[0]
            return np.result_type(*types, *([np.float64] if has_gaps else [])) if numpy_types else "float64"
        if self._kinds(column) == {BOOLEAN} and numpy_types:
            return np.dtype(object) if has_gaps else np.dtype(bool)
        return types[0] if len(types) == 1 else np.dtype(object)


def _kind(values: Any, by_values: bool) -> str:
    """Return the kind of a column, by its values if they are known."""
    from pandas.api import types

    if by_values and values.isna().all():
        return EMPTY
    if types.is_bool_dtype(values.dtype):
        return BOOLEAN
    if types.is_numeric_dtype(values.dtype):
        return NUMBER
    if values.dtype == object and by_values:
        inferred = types.infer_dtype(values, skipna=True)
        return {"boolean": BOOLEAN, "string": TEXT}.get(inferred, inferred)
    is_text = isinstance(values.dtype, np.dtype) and values.dtype == object
    is_text = is_text or types.is_string_dtype(values.dtype) or str(values.dtype) == "category"
    return TEXT if is_text else str(values.dtype)
