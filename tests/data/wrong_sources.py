"""Table of all sources that ``fit_stream`` must reject, with the error of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np
import polars as pl
from scipy import sparse

from tests.data.wrong_columns import (
    COLUMNS,
    FILES,
    FRAME,
    NAMED,
    ONE,
    OTHER,
    REST,
    ROWS,
    SEVERAL,
    W,
    Wrong,
    X,
    Y,
    batches,
    of_values,
    put,
    table,
)

__all__ = ["WRONG", "X", "Y"]


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
    "number": _batch("X is 3, which has no samples", 3),
    "record batch": _batch("X is a RecordBatch", table().to_batches()[0]),
    "table": _batch("X is a Table", (table().select(["a", "b"]), Y)),
    "dictionary of numbers": _batch("column 'a' of X is 1, which has no samples", {"a": 1}),
    "dictionary": _batch("X is a dictionary, which only ONNX models", ({"a": X[:, 0]}, Y)),
    "no items": _batch("The tuple has 0 items. It must be X", ()),
    "four items": _batch("The tuple has 4 items. It must be X", (X, Y, W, W)),
    "list instead of tuple": _batch(
        "The samples of X differ in shape. Pass samples of one shape, and labels", [X, Y]
    ),
    "ragged samples": _batch("The samples of X differ in shape", ([[1, 2], [3]], [0, 1]), RIGHT),
    "ragged labels": _batch("The samples of y differ in shape", (X, [[1], [1, 2]] * (ROWS // 2))),
    "label instead of labels": _batch("y is 1, which has no samples: pass an array", (X, 1)),
    "weight instead of weights": _batch("sample_weight is 2.0, which has no samples", (X, Y, 2.0)),
    "fewer labels": _batch(r"inconsistent numbers of samples: \[80, 79\]", (X, Y[:-1]), RIGHT),
    "fewer weights": _batch(r"sample_weight has the shape \(79,\) for 80 samples", (X, Y, W[:-1]), WEIGHTED),
    "two weights per sample": _batch("sample_weight must be 1D", (X, Y, np.ones((ROWS, 2)))),
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
    "label None": _batch("y has no label for sample 53: None", (X, put(Y, None)), RIGHT),
    "mixed labels": _batch("Unknown label type", (X, put(Y, "a")), RIGHT),
    "bytes as labels": _batch("y has bytes: convert them to texts", (X, Y.astype("S1"))),
    "masked X": _batch(MASKED.format("X"), (np.ma.array(X, mask=X > 0), Y), RIGHT),
    "masked y": _batch(MASKED.format("y"), (X, np.ma.array(Y, mask=Y > 0)), RIGHT),
    "masked weights": _batch(MASKED.format("sample_weight"), (X, Y, np.ma.array(W, mask=Y > 0)), WEIGHTED),
    "arrays after frames": _batch("X is an array, and a frame of pandas in batch 0", RIGHT, (FRAME, Y)),
    "frames after arrays": _batch("X is a frame of pandas, and an array in batch 0", (FRAME, Y), RIGHT),
    "frames of two libraries": Wrong(  # polars starts threads, which do not survive a fork: not at import
        lambda folder: [(FRAME, Y), (pl.from_pandas(FRAME), Y)],
        "In batch 1 of the source: .*?X is a frame of polars",
        {},
    ),
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
    "nothing": Wrong(lambda folder: [], "The source has no samples: check"),
    "empty batches": Wrong(lambda folder: [(X[:0], Y[:0])], "The source has no samples: check"),
    "all weights zero": Wrong(lambda folder: [(X, Y, 0 * W)], "sample_weight is zero for every sample"),
    "no labels": Wrong(lambda folder: [X], "requires y to be passed"),
    "number": Wrong(lambda folder: 7, "int is not a source of samples: pass a folder"),
    "None": Wrong(lambda folder: None, "NoneType is not a source of samples: pass a folder"),
    "other columns in a pass": Wrong(
        lambda folder: _changing(lambda n: (OTHER if n > 1 else REST).to_reader()),
        "has the columns .* in this pass, and had .* before: each pass must return the same",
        NAMED,
    ),
    "fewer samples in a pass": Wrong(
        lambda folder: _changing(lambda n: batches(X, Y)[: 8 - (n > 3)]),
        "returned 70 samples or more in this pass, and 80 when they were counted",
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
    **dict(of_values()),
    **{
        f"{kind}: {name}": wrong
        for kind, group in (("files", FILES), ("columns", COLUMNS), ("batch", BATCHES), ("source", ITERATORS))
        for name, wrong in group.items()
    },
}
