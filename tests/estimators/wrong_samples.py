"""Wrong samples, whose error must be the same wherever they are passed."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

__all__ = ["N_SAMPLES", "WRONG_SAMPLES", "X", "Y", "sentence"]

N_SAMPLES = 60
X = np.random.default_rng(0).standard_normal((N_SAMPLES, 2)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int64)
W = np.ones(N_SAMPLES)


def put(values: np.ndarray, value: Any) -> np.ndarray:
    """Return a copy of an array with another value."""
    kind = np.result_type(values.dtype, np.float32) if isinstance(value, float) else object
    copy = np.array(values, dtype=kind)
    copy[40] = value
    return copy


#: X, y and sample_weight by name; Arrow columns have the same values for the first part only.
IN_COLUMNS = {
    "NaN in X": (put(X, np.nan), Y, None),
    "infinity in X": (X * put(W, np.inf)[:, None], Y, None),
    "text X": (X.astype(str).astype(object), Y, None),
    "dates": (X.astype("M8[s]"), Y, None),
    "no y": (X, None, None),
    "NaN in y": (X, put(Y, np.nan), None),
    "infinity in y": (X, put(Y, np.inf), None),
    "numbers as classes": (X, X[:, 0], None),
    "one class": (X, 0 * Y, None),
    "negative weight": (X, Y, put(W, -1.0)),
    "NaN as weight": (X, Y, put(W, np.nan)),
    "infinite weight": (X, Y, put(W, np.inf)),
    "zero weights": (X, Y, 0 * W),
}
IN_ARRAYS = {
    "vector X": (X[:, 0], Y, None),
    "three dimensions": (X[:, :, None], Y, None),
    "complex X": (X + 1j, Y, None),
    "masked X": (np.ma.array(X, mask=X > 0), Y, None),
    "no features": (X[:, :0], Y, None),
    "None in y": (X, put(Y, None), None),
    "mixed y": (X, put(Y, "a"), None),
    "bytes in y": (X, Y.astype("S1"), None),
    "masked y": (X, np.ma.array(Y, mask=Y > 0), None),
    "two columns of y": (X, np.c_[Y, Y + 1, Y], None),
    "fewer y": (X, Y[:50], None),
    "text weights": (X, Y, W.astype("<U1")),
    "masked weights": (X, Y, np.ma.array(W, mask=Y > 0)),
    "fewer weights": (X, Y, W[:50]),
    "two weights": (X, Y, np.ones((N_SAMPLES, 2))),
}
WRONG_SAMPLES = IN_COLUMNS | IN_ARRAYS


def sentence(error: BaseException) -> str:
    """Return a message without the names of estimator, batch, file or partition."""
    text = re.sub(r"^(Partition \d+|File .*?|Row group .*?): (\w+: )?", "", str(error))
    text = re.sub(r"^In .*? of the source: ", "", text)
    return (
        re.sub(r"(Dask)?OrtGradient\w*Optimizer", "Optimizer", text).replace("'x0'", "0").replace("'x1'", "1")
    )
