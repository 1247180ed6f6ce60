"""Errors about the values of a data file, which name columns and rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .messages import shown

__all__ = [
    "check_separator",
    "check_texts",
    "refused_values",
    "repeated_names",
    "text_columns",
    "texts_for_numbers",
]

#: Types of columns, as pandas infers them, that are texts, numbers or nothing.
KNOWN = (
    "string",
    "empty",
    "boolean",
    "integer",
    "floating",
    "mixed-integer-float",
    "decimal",
    "mixed-integer",
)
#: Parts of messages of scikit-learn and ortlearn about text, missing and infinite values.
ABOUT_TEXTS = (
    "could not convert string to float",
    "must contain numbers",
    "must hold numbers",
    "'numeric'",
    "requires numeric input",
)
ABOUT_NUMBERS, ABOUT_NEW = "'isnan' not supported", "unknown categories"
ABOUT_GAPS, ABOUT_INFINITY = "contains NaN", "contains infinity"


def check_separator(separator: str) -> str:
    r"""Return the separator of a csv file, a single character; ``\t`` may be written as two."""
    separator = {r"\t": "\t"}.get(separator, separator)
    if len(separator.encode(errors="replace")) != 1 or separator in '\r\n"\0':
        raise ValueError(
            f"--separator {separator!r}: must be one ASCII character, such as ';' or '\\t', and no quote or "
            "end of line."
        )
    return separator


def repeated_names(names: Sequence[str]) -> list[str]:
    """Return the names that occur several times, in order."""
    return list(dict.fromkeys(name for name in names if names.count(name) > 1 and name))


def text_columns(frame: Any) -> list[str]:
    """Return the names of the columns that are not numbers."""
    from pandas.api.types import is_numeric_dtype

    return [name for name in frame.columns if not is_numeric_dtype(frame[name])]


def check_texts(frame: Any, path: str, texts: Sequence[str]) -> None:
    """Raise an error for null characters, and for numbers that are too large for float64."""
    from pandas import to_numeric
    from pandas.api.types import is_datetime64_any_dtype

    for name in text_columns(frame):
        column = frame[name].dropna()
        if is_datetime64_any_dtype(column) or column.empty:
            continue
        values = column.astype(str)
        nulls = values.str.contains("\0", regex=False)
        if nulls.any():
            raise ValueError(
                f"{path} has a null character in column {name!r}, row {_first(nulls)}: the file is damaged, "
                "or is not a text file."
            )
        numbers = to_numeric(values, errors="coerce")
        large = np.isinf(numbers) & values.str.strip().str.lstrip("+-").str.isdigit()
        if name not in texts and large.any() and not numbers.isna().any():
            raise ValueError(
                f"{path} has a number in column {name!r}, row {_first(large)}, that is too large. "
                f"Correct it, or read the column as text with --text {name!r}."
            )


def _first(found: Any) -> int:
    """Return the number of the first row for which a condition holds, from 0."""
    return int(found.index[np.flatnonzero(found.to_numpy())[0]])


def refused_values(name: str, frame: Any, error: str) -> ValueError | None:
    """Return an error that names the columns a message of a model is about, or None."""
    kinds = dict(_other_kinds(frame))
    if kinds:
        column, kind = next(iter(kinds.items()))
        return ValueError(
            f"{name} has values that are neither numbers nor text in the columns {shown(kinds)} ({column!r} "
            f"has {kind}): leave them out with --drop, or convert them."
        )
    gaps = frame.columns[frame.isna().any()]
    if ABOUT_GAPS in error and len(gaps):
        return ValueError(
            f"{name} has empty cells in the columns {shown(gaps)}, and the model does not accept missing "
            "values: fill the cells, or remove their rows."
        )
    if ABOUT_INFINITY in error:
        numbers = frame.select_dtypes("number")
        infinite = np.isinf(numbers.to_numpy(float, na_value=np.nan)).any(axis=0)
        if infinite.any():
            columns = shown(numbers.columns[infinite])
            return ValueError(f"{name} has infinite values in the columns {columns}: correct them.")
    texts = text_columns(frame)
    if texts and any(text in error for text in ABOUT_TEXTS):
        named = [each for each in texts if any(repr(value) in error for value in frame[each].unique())]
        return texts_for_numbers(name, frame, named or texts)
    numbers = [str(column) for column in frame.select_dtypes("number")]
    numbers = [
        own for own in numbers if ABOUT_NUMBERS in error or (ABOUT_NEW in error and repr(own) in error)
    ]
    if numbers:  # such as 01, which a csv file does not tell from a number
        return ValueError(
            f"{name} has numbers where the model takes text, in one of the columns {shown(numbers)}: read it "
            "as text with --text."
        )
    return None


def texts_for_numbers(name: str, frame: Any, columns: Sequence[str]) -> ValueError:
    """Return the error for columns of text where numbers are expected, with an example."""
    from pandas import to_numeric

    values = [frame[column].dropna() for column in columns]
    texts = [column[to_numeric(column.astype(str), errors="coerce").isna()] for column in values]
    example = [value for column in (*texts, *values) for value in column.head(1)]
    such = f" (such as {str(example[0])[:40]!r})" if example else ""
    return ValueError(
        f"{name} has texts where the model takes numbers, in the columns {shown(columns)}{such}: leave them "
        "out with --drop, or correct them."
    )


def _other_kinds(frame: Any) -> Iterator[tuple[str, str]]:
    """Yield name and type of the columns that are neither numbers nor text."""
    from pandas.api.types import infer_dtype, is_datetime64_any_dtype, is_timedelta64_dtype

    for name in text_columns(frame):
        column = frame[name]
        if is_datetime64_any_dtype(column) or is_timedelta64_dtype(column):
            yield name, str(column.dtype)
        elif infer_dtype(column, skipna=True) not in KNOWN and str(column.dtype) != "category":
            yield name, type(column.dropna().iloc[0]).__name__ + " objects"
