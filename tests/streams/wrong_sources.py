"""Table of sources that ``fit_stream`` must reject, with the error of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as datasets
import pyarrow.parquet as pq
from scipy import sparse

__all__ = ["WRONG", "Wrong", "X", "Y"]

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
    """Return rows as a table."""
    return pa.table({"a": X[:, 0], "b": X[:, 1], "label": y, "weight": weight})


def batches(X: Any = X, *others: Any) -> list[tuple]:
    """Return rows in batches."""
    starts = range(0, ROWS, BATCH)
    return [tuple(array[start : start + BATCH] for array in (X, *others)) for start in starts]


def files(folder: Path, *tables: pa.Table) -> Path:
    """Write a parquet file for each table."""
    for number, rows in enumerate(tables):
        pq.write_table(rows, folder / f"part-{number}.parquet", row_group_size=BATCH)
    return folder


def put(values: np.ndarray, value: Any) -> np.ndarray:
    """Return a copy of an array with another value in batch 5."""
    dtype = np.result_type(values.dtype, np.float32) if isinstance(value, float) else values.dtype
    copy = np.array(values, dtype=object if value is None or isinstance(value, str) else dtype)
    copy[53] = value
    return copy


def with_column(name: str, values: Any) -> pa.Table:
    """Return the table with another column."""
    rows = table()
    return rows.set_column(rows.schema.names.index(name), name, pa.array(values))


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
#: Sources of rows, other arguments, and the position of batch 5 in an error.
FORMS: dict[str, tuple[Callable, dict[str, Any], str]] = {
    "batches": (lambda rows, folder: batches(*rows), ONE, "In batch 5 of the source: "),
    "batches in chunks": (lambda rows, folder: batches(*rows), SEVERAL, "In batch 5 of the source: "),
    "function": (lambda rows, folder: lambda: iter(batches(*rows)), SEVERAL, "In batch 5 of the source: "),
    "table": (lambda rows, folder: table(*rows), NAMED, "In rows 0 to 79 of the source: "),
    "frame": (lambda rows, folder: table(*rows).to_pandas(), NAMED, "In rows 0 to 79 of the source: "),
    "file": (
        lambda rows, folder: files(folder, table(*rows)),
        NAMED | SEVERAL,
        "In row group 5 of .*part-0.parquet of the source: ",
    ),
    "files": (
        lambda rows, folder: files(folder, table(*rows).slice(0, 40), table(*rows).slice(40)),
        NAMED | ONE,
        "In row group 1 of .*part-1.parquet of the source: ",
    ),
}


def _of_values() -> Iterator[tuple[str, Wrong]]:
    for value, (rows, message) in VALUES.items():
        for form, (make, arguments, where) in FORMS.items():
            if form == "frame" and "NaN" in value and "X" not in value:
                continue  # a null of Arrow, see below
            source, right = partial(make, rows), partial(make, (X.astype(rows[0].dtype), Y, W))
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
    "empty file": _parquet("has no rows: check its path", table().slice(0, 0)),
    "no file": Wrong(lambda folder: folder, "has no columns|No parquet files", NAMED),
    "text file": Wrong(lambda folder: __file__, "No parquet files can be read at .*wrong_sources.py", NAMED),
}
TWICE = "name the columns .* more than once. Name each column once"
KIND = "Column 'a' has the type {}.* not supported. Convert it to numbers or texts, one column for each value"
LABEL = "Column 'label' has the type {}.* not supported. Convert it to numbers or texts"


def _columns(message: str, rows: Any = None, **arguments: Any) -> Wrong:
    return Wrong(lambda folder: table() if rows is None else rows, message, {"y": "label"} | arguments)


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
    "empty table": _columns("has no rows: check its path", table().slice(0, 0)),
    "text labels of a regressor": Wrong(
        lambda folder: with_column("label", ["x", "y"] * (ROWS // 2)),
        "y must contain numbers for a regressor: convert",
        {"y": "label"},
        True,
    ),
    "categories of polars as feature": _columns(
        "'a' .text.*Encode text",
        pl.from_arrow(table()).with_columns(a=pl.Series(["u", "v"] * (ROWS // 2)).cast(pl.Categorical)),
    ),
}


def _fails(error: Exception | None) -> Callable[[], Iterator]:
    """Return a function of batches that raises an error, or StopIteration, instead of batch 2."""

    def read() -> Iterator:
        yield from batches(X, Y)[:2]
        if error is None:
            next(iter(()))
        raise error

    return read


def _same() -> Callable[[], Iterator]:
    same = iter(batches(X, Y))
    return lambda: same


def _changing(change: Callable[[int], Any]) -> Callable[[], Any]:
    """Return a function whose result depends on the number of the pass."""
    passes = count()
    return lambda: change(next(passes))


def _batch(message: str, item: Any, *others: Any, **arguments: Any) -> Wrong:
    """Return batches of which one is wrong."""
    number = len(others)
    return Wrong(lambda folder: [*others, item], f"In batch {number} of the source: .*?{message}", arguments)


PASS = "alone or in a tuple .X, y. or .X, y, sample_weight."
RIGHT, WEIGHTED = (X, Y), (X, Y, W)
MASKED = "{} is a masked array, whose mask would be ignored: pass an ordinary array"
BATCHES = {
    "None": _batch(f"X is a NoneType: .*{PASS}", None),
    "None later": _batch(f"X is a NoneType: .*{PASS}", None, RIGHT, RIGHT),
    "None as X": _batch("X is a NoneType", (None, Y), RIGHT),
    "text": _batch("X is a str", "text"),
    "bytes": _batch("X is a bytes", b"text", RIGHT),
    "set": _batch("X is a set", {1, 2}),
    "number": _batch("X is 3, which has no rows", 3),
    "record batch": _batch("X is a RecordBatch", table().to_batches()[0]),
    "table": _batch("X is a Table", (table().select(["a", "b"]), Y)),
    "dictionary of numbers": _batch("column 'a' of X is 1, which has no rows", {"a": 1}),
    "dictionary": _batch("X is a dictionary, which only ONNX models", ({"a": X[:, 0]}, Y)),
    "no items": _batch("The tuple has 0 items. It must be X", ()),
    "four items": _batch("The tuple has 4 items. It must be X", (X, Y, W, W)),
    "list instead of tuple": _batch(
        "The rows of X differ in shape. Pass rows of one shape, and labels", [X, Y]
    ),
    "ragged rows": _batch("The rows of X differ in shape", ([[1, 2], [3]], [0, 1]), RIGHT),
    "ragged labels": _batch("The rows of y differ in shape", (X, [[1], [1, 2]] * (ROWS // 2))),
    "label instead of labels": _batch("y is 1, which has no rows: pass an array", (X, 1)),
    "weight instead of weights": _batch("sample_weight is 2.0, which has no rows", (X, Y, 2.0)),
    "fewer labels": _batch(r"inconsistent numbers of samples: \[80, 79\]", (X, Y[:-1]), RIGHT),
    "fewer weights": _batch(r"sample_weight has the shape \(79,\) for 80 rows", (X, Y, W[:-1]), WEIGHTED),
    "two weights per row": _batch("sample_weight must be 1D", (X, Y, np.ones((ROWS, 2)))),
    "text weights": _batch("sample_weight must contain numbers, and has type <U1", (X, Y, W.astype("<U1"))),
    "labels missing later": _batch("y is missing, unlike in batch 0: pass y for all", X, RIGHT, **ONE),
    "labels given later": _batch("y is given, unlike in batch 0", RIGHT, X),
    "weights missing later": _batch("sample_weight is missing, unlike in batch 0", RIGHT, WEIGHTED),
    "weights given later": _batch("sample_weight is given, unlike in batch 0", WEIGHTED, RIGHT),
    "text labels later": _batch(
        "The labels are texts, and numbers in batch 0: convert y", (X, Y.astype(str)), RIGHT
    ),
    "text objects later": _batch("labels are texts", (X, Y.astype(str).astype(object)), RIGHT, RIGHT),
    "numbers after texts": _batch("labels are numbers, and texts in batch 0", RIGHT, (X, Y.astype(str))),
    "labels of two columns": _batch(r"y has the shape .*2.* in batch 0: pass one", (X, np.c_[Y, Y]), RIGHT),
    "label None": _batch("y has no label in row 53: None", (X, put(Y, None)), RIGHT),
    "mixed labels": _batch("Unknown label type", (X, put(Y, "a")), RIGHT),
    "bytes as labels": _batch("y has bytes: convert them to texts", (X, Y.astype("S1"))),
    "masked X": _batch(MASKED.format("X"), (np.ma.array(X, mask=X > 0), Y), RIGHT),
    "masked y": _batch(MASKED.format("y"), (X, np.ma.array(Y, mask=Y > 0)), RIGHT),
    "masked weights": _batch(MASKED.format("sample_weight"), (X, Y, np.ma.array(W, mask=Y > 0)), WEIGHTED),
    "arrays after frames": _batch("X is an array, and a frame of pandas in batch 0", RIGHT, (FRAME, Y)),
    "frames after arrays": _batch("X is a frame of pandas, and an array in batch 0", (FRAME, Y), RIGHT),
    "frames of two libraries": _batch("X is a frame of polars", (pl.from_pandas(FRAME), Y), (FRAME, Y)),
    "sparse after dense": _batch(
        "X is a sparse matrix, and an array in batch 0", (sparse.csr_array(X), Y), RIGHT
    ),
    "texts after numbers": _batch(
        "X is an array of texts, and an array in batch 0", (X.astype(str), Y), RIGHT
    ),
    "fewer features": _batch("X has 1 features, but .* is expecting 2 features", (X[:, :1], Y), RIGHT),
    "other names": _batch("The feature names should match", (FRAME.set_axis([*"ac"], axis=1), Y), (FRAME, Y)),
    "other order": _batch("The feature names .*same order", (FRAME[["b", "a"]], Y), (FRAME, Y)),
    "more columns": _batch("The feature names .*unseen", (FRAME.assign(c=1.0), Y), (FRAME, Y)),
    "equal names": _batch(r"X has several columns named \['a'\]", (FRAME.set_axis([*"aa"], axis=1), Y)),
    "vector": _batch("Expected 2D array, got 1D array", (X[:, 0], Y)),
    "three dimensions": _batch("Found array with dim 3", (X[:, :, None], Y)),
    "complex numbers": _batch("Complex data not supported", (X + 1j, Y)),
}
ITERATORS = {
    "same iterator": Wrong(
        lambda folder: _same(), "The same list_iterator .* create a new iterator in each call"
    ),
    "iterator": Wrong(lambda folder: iter(batches(X, Y)), "can be read only once.*pass a function"),
    "StopIteration": Wrong(
        lambda folder: _fails(None), "Batch 2 .*RuntimeError: generator raised StopIteration"
    ),
    "KeyError": Wrong(
        lambda folder: _fails(KeyError("k")), "Batch 2 of the source cannot be read: KeyError: 'k'"
    ),
    "OSError": Wrong(
        lambda folder: _fails(OSError("gone")), "Batch 2 of the source .* OSError: gone. Correct"
    ),
    "error of a function": Wrong(
        lambda folder: lambda: 1 / 0, "The function .*ZeroDivisionError: division by zero"
    ),
    "error of a reader": Wrong(
        lambda folder: lambda: 1 / 0, "The function .*ZeroDivisionError", {"y": "label"}
    ),
    "function of None": Wrong(
        lambda folder: lambda: None, "The function returns NoneType, which is not an iter"
    ),
    "function of a number": Wrong(
        lambda folder: lambda: 3, "The function returns int, which is not an iterable"
    ),
    "function without columns": Wrong(
        lambda folder: lambda: batches(X, Y), "returns list, which has no columns: omit y", {"y": "label"}
    ),
    "nothing": Wrong(lambda folder: [], "The source has no rows: check"),
    "empty batches": Wrong(lambda folder: [(X[:0], Y[:0])], "The source has no rows: check"),
    "all weights zero": Wrong(lambda folder: [(X, Y, 0 * W)], "sample_weight is zero for every row"),
    "no labels": Wrong(lambda folder: [X], "requires y to be passed"),
    "number": Wrong(lambda folder: 7, "int is not a source of rows: pass a folder"),
    "None": Wrong(lambda folder: None, "NoneType is not a source of rows: pass a folder"),
    "other columns in a pass": Wrong(
        lambda folder: _changing(lambda n: (OTHER if n > 1 else REST).to_reader()),
        "has the columns .* in this pass, and had .* before: each pass must return the same",
        NAMED,
    ),
    "fewer rows in a pass": Wrong(
        lambda folder: _changing(lambda n: batches(X, Y)[: 8 - (n > 3)]),
        "returned 70 rows or more in this pass, and 80 when they were counted",
        SEVERAL,
        right=lambda folder: batches(X, Y),
    ),
    "equal names in source_val": Wrong(
        lambda folder: table(),
        "source_val: X has several columns named",
        NAMED | {"source_val": table().rename_columns([*"aa", "label", "weight"])},
    ),
    "NaN in source_val": Wrong(
        lambda folder: batches(X, Y),
        "In batch 5 of the source: Input X contains NaN",
        SEVERAL | {"source_val": batches(put(X, np.nan), Y)},
    ),
    "no labels in source_val": Wrong(
        lambda folder: batches(X, Y), "source_val: It has no labels", {"source_val": batches(X)}
    ),
}

#: All wrong sources by name.
WRONG = {
    **dict(_of_values()),
    **{
        f"{kind}: {name}": wrong
        for kind, group in (("files", FILES), ("columns", COLUMNS), ("batch", BATCHES), ("source", ITERATORS))
        for name, wrong in group.items()
    },
}
