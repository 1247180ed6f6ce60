"""Sources with wrong values, files or columns, which ``fit_stream`` must reject."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as datasets
import pyarrow.parquet as pq

__all__ = ["COLUMNS", "FILES", "Wrong", "of_values"]

ROWS, BATCH = 80, 10
X = np.random.default_rng(0).standard_normal((ROWS, 2)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int64)
W = np.ones(ROWS)
NAMED = {"y": "label", "sample_weight": "weight"}
#: Buffers of one chunk, and of several.
ONE, SEVERAL = {"shuffle_buffer": 1000}, {"shuffle_buffer": 20}


@dataclass(frozen=True)
class Wrong:
    """Wrong arguments of ``fit_stream``.

    Attributes
    ----------
    source : callable
        Function of an empty folder that returns the source.
    message : str
        Regular expression of the error.
    arguments : dict
        Other arguments.
    regression : bool
        Whether the model is a regressor.
    right : callable or None
        Source from which the training resumes, if it begins before the error.
    """

    source: Callable[[Path], Any]
    message: str
    arguments: dict[str, Any] = field(default_factory=dict)
    regression: bool = False
    right: Callable[[Path], Any] | None = None


def table(X: Any = X, y: Any = Y, weight: Any = W) -> pa.Table:
    """Return samples as a table."""
    return pa.table({"a": X[:, 0], "b": X[:, 1], "label": y, "weight": weight})


def batches(X: Any = X, *others: Any) -> list[tuple]:
    """Return samples in batches."""
    starts = range(0, ROWS, BATCH)
    return [tuple(array[start : start + BATCH] for array in (X, *others)) for start in starts]


def files(folder: Path, *tables: pa.Table) -> Path:
    """Write a parquet file for each table."""
    for number, samples in enumerate(tables):
        pq.write_table(samples, folder / f"part-{number}.parquet", row_group_size=BATCH)
    return folder


def put(values: np.ndarray, value: Any) -> np.ndarray:
    """Return a copy of an array with another value in batch 5."""
    dtype = np.result_type(values.dtype, np.float32) if isinstance(value, float) else values.dtype
    copy = np.array(values, dtype=object if value is None or isinstance(value, str) else dtype)
    copy[53] = value
    return copy


def with_column(name: str, values: Any) -> pa.Table:
    """Return the table with another column."""
    samples = table()
    return samples.set_column(samples.schema.names.index(name), name, pa.array(values))


#: Wrong values of X, y or the weights, and the error.
VALUES = {
    "NaN in X": ((put(X, np.nan), Y, W), "Input X contains NaN"),
    "infinity in X": ((put(X, np.inf), Y, W), "Input X contains infinity"),
    "large X": ((put(X.astype(np.float64), 1e300), Y, W), "Input X contains infinity or a value too large"),
    "NaN in y": ((X, put(Y, np.nan), W), "Input y contains NaN"),
    "infinity in y": ((X, put(Y, -np.inf), W), "Input y contains infinity"),
    "negative weight": ((X, Y, put(W, -1.0)), "sample_weight has negative values.*must have one number >= 0"),
    "NaN in weights": ((X, Y, put(W, np.nan)), "Input sample_weight contains NaN"),
    "infinite weight": ((X, Y, put(W, np.inf)), "Input sample_weight contains infinity"),
}
#: Sources of samples, other arguments, and the position of batch 5 in an error.
FORMS: dict[str, tuple[Callable, dict[str, Any], str]] = {
    "batches": (lambda given, folder: batches(*given), ONE, "In batch 5 of the source: "),
    "batches in chunks": (lambda given, folder: batches(*given), SEVERAL, "In batch 5 of the source: "),
    "function": (lambda given, folder: lambda: iter(batches(*given)), SEVERAL, "In batch 5 of the source: "),
    "table": (lambda given, folder: table(*given), NAMED, "In rows 0 to 79 of the source: "),
    "frame": (lambda given, folder: table(*given).to_pandas(), NAMED, "In rows 0 to 79 of the source: "),
    "file": (
        lambda given, folder: files(folder, table(*given)),
        NAMED | SEVERAL,
        "In row group 5 of .*part-0.parquet of the source: ",
    ),
    "files": (
        lambda given, folder: files(folder, table(*given).slice(0, 40), table(*given).slice(40)),
        NAMED | ONE,
        "In row group 1 of .*part-1.parquet of the source: ",
    ),
}


def of_values() -> Iterator[tuple[str, Wrong]]:
    """Yield wrong values in each kind of source."""
    for value, (samples, message) in VALUES.items():
        for form, (make, arguments, where) in FORMS.items():
            if form == "frame" and "NaN" in value and "X" not in value:
                continue  # a null of Arrow, see below
            source, right = partial(make, samples), partial(make, (X.astype(samples[0].dtype), Y, W))
            begins = "X" in value and form in ("batches in chunks", "function", "file")
            found = Wrong(source, where + message, arguments, right=right if begins else None)
            yield f"{value}, {form}", found


FIRST, REST = table().slice(0, 40), table().slice(40)
OTHER = REST.rename_columns(["a", "B", "label", "weight"])
TEXT = REST.set_column(0, "a", pa.array(map(str, range(40))))
FEWER = r"File .*part-1.parquet lacks the columns \['b'\].*Write it again with all columns, or omit it"
TYPES = "'{}' has the type {} in file .*part-1.parquet, and {} in .*part-0.parquet. Write both with one type"
FRAME = table().to_pandas()[["a", "b"]]


def _parquet(message: str, *tables: pa.Table, **arguments: Any) -> Wrong:
    return Wrong(lambda folder: files(folder, *tables), message, NAMED | arguments)


FILES = {
    "column missing": _parquet(FEWER, FIRST, REST.drop(["b"])),
    "column missing in features": _parquet(FEWER, FIRST, REST.drop(["b"]), features=["a", "b"]),
    "column renamed": _parquet(FEWER, FIRST, OTHER),
    "column in other case, one chunk": _parquet(FEWER, FIRST, OTHER, **ONE),
    "column of a later file": _parquet(
        r"part-1.parquet has the columns \['c'\], which the first file lacks. Name .* in features",
        *(FIRST, REST.append_column("c", REST["a"])),
    ),
    "label missing": _parquet(r"part-1.parquet lacks the columns \['label'\]", FIRST, REST.drop(["label"])),
    "weight missing": _parquet(
        r"part-1.parquet lacks the columns \['weight'\]", FIRST, REST.drop(["weight"])
    ),
    "text in a column of numbers": _parquet(TYPES.format("a", "string", "float"), FIRST, TEXT),
    "text labels in one file": _parquet(
        TYPES.format("label", "string", "int64"),
        FIRST,
        REST.set_column(2, "label", pa.array(["0", "1"] * 20)),
    ),
    "integers after booleans": _parquet(
        TYPES.format("label", "int64", "bool"),
        FIRST.set_column(2, "label", pa.array([True, False] * 20)),
        REST,
    ),
    "filtered dataset": Wrong(
        lambda folder: datasets.dataset(files(folder, FIRST, OTHER)).filter(datasets.field("a") > -9),
        FEWER,
        NAMED,
    ),
    "nothing": Wrong(lambda folder: folder / "nowhere", "No parquet files can be read at .*nowhere", NAMED),
    "empty file": _parquet("has no samples: check its path", table().slice(0, 0)),
    "no file": Wrong(lambda folder: folder, "the folder is empty", NAMED),
    "text file": Wrong(lambda folder: __file__, r"No parquet files .*wrong_columns.py.*[^.]\. Check", NAMED),
}
TWICE = "name the columns .* more than once. Name each column once"
KIND = "Column 'a' has the type {}.* not supported. Convert it to numbers or texts, one column for each value"
LABEL = "Column 'label' has the type {}.* not supported. Convert it to numbers or texts"


def _columns(message: str, samples: Any = None, **arguments: Any) -> Wrong:
    return Wrong(lambda folder: table() if samples is None else samples, message, {"y": "label"} | arguments)


def _kind(values: Any, kind: str) -> Wrong:
    return _columns(KIND.format(kind), pa.table({"a": values, "b": X[:, 1], "label": Y}))


def _label(values: Any, kind: str) -> Wrong:
    return _columns(LABEL.format(kind), pa.table({"a": X[:, 0], "label": values}))


COLUMNS = {
    "label in features": _columns(TWICE, features=["a", "label"]),
    "weight in features": _columns(TWICE, sample_weight="weight", features=["a", "weight"]),
    "label as weight": _columns(TWICE, sample_weight="label"),
    "feature twice": _columns(TWICE, features=["a", "a"]),
    "label twice": _columns(TWICE, y=["label", "label"]),
    "equal names": _columns(
        r"several columns named \['a'\]: rename", table().rename_columns([*"aa", "label", "w"])
    ),
    "equal names in a frame": _columns(
        r"several columns named \['a'\]: rename", table().to_pandas().set_axis([*"aa", "label", "w"], axis=1)
    ),
    "equal names and arrays": _columns(
        r"several columns named \['a'\]", FRAME.set_axis([*"aa"], axis=1), y=Y
    ),
    "unknown label": _columns(r"no columns \['lab'\]. Its columns are", y="lab"),
    "unknown feature": _columns(r"no columns \['c'\]. Its columns are", features=["c"]),
    "unknown feature of a frame": _columns(
        r"no columns \['c'\]. Its columns are", FRAME, y=Y, features=["c"]
    ),
    "no features": _columns("No column is left for features", features=[]),
    "numbers of columns": _columns("features must be the name of a column", features=[0, 1]),
    "number of a column": _columns("features must be the name of a column", features=3),
    "array of weights": _columns("sample_weight must be the name of a column", sample_weight=W),
    "structs": _kind(pa.array([{"u": 1.0}] * ROWS), "struct"),
    "maps": _kind(pa.array([[("u", 1.0)]] * ROWS, pa.map_(pa.string(), pa.float64())), "map"),
    "ragged lists": _kind(pa.array([[1.0] * (i % 3) for i in range(ROWS)]), "list"),
    "lists next to numbers": _kind(pa.FixedSizeListArray.from_arrays(X.ravel(), 2), "fixed_size_list"),
    "binary": _kind(pa.array([b"x"] * ROWS), "binary"),
    "struct as label": _label(pa.array([{"u": 1}] * ROWS), "struct"),
    "list as label": _label(pa.array([[1]] * ROWS), "list"),
    "binary label": _label(pa.array([b"x", b"y"] * (ROWS // 2)), "binary"),
    "null label": _columns(
        "'label' has 1 nulls in rows 0 to 79. Fill", with_column("label", [None, *Y[1:].tolist()])
    ),
    "null weight": _columns(
        "'weight' has 1 nulls in rows 0 to 79. Fill",
        with_column("weight", [None, *W[1:].tolist()]),
        sample_weight="weight",
    ),
    "text as weight": _columns(
        "sample_weight must contain numbers", with_column("weight", ["x"] * ROWS), sample_weight="weight"
    ),
    "text as feature": _columns("text.*Encode text|requires numeric", with_column("a", ["x"] * ROWS)),
    "dates as feature": _columns(
        "'a' .dates.. Convert dates and durations to numbers", with_column("a", Y.astype("M8[s]"))
    ),
    "empty table": _columns("has no samples: check its path", table().slice(0, 0)),
    "text labels of a regressor": Wrong(
        lambda folder: with_column("label", ["x", "y"] * (ROWS // 2)),
        "y must contain numbers for a regressor: convert",
        {"y": "label"},
        True,
    ),
    "categories of polars as feature": Wrong(  # polars starts threads, which do not survive a fork
        lambda folder: pl.from_arrow(table()).with_columns(
            a=pl.Series(["u", "v"] * (ROWS // 2)).cast(pl.Categorical)
        ),
        "'a' .text.*Encode text",
        {"y": "label"},
    ),
}
