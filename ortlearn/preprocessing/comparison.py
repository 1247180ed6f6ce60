"""Compare the graph of transformers with scikit-learn on some samples."""

from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Any

import numpy as np
from onnx import ModelProto
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing

from ..quiet import quiet
from .column_reading import read_columns
from .columns import (
    as_columns,
    column_keys,
    column_kind,
    columns_of,
    count_samples,
    is_frame,
    missing_samples,
    with_new_columns,
)
from .initial_fit import untouched
from .readers import first_readers, selected_names
from .schema import InputSchema

#: Runs a graph on arrays by the name of their inputs, and returns its first output.
Run = Callable[[ModelProto, dict[str, np.ndarray]], np.ndarray]

SAMPLES, TEXT_SAMPLES = 24, 128  # numbers of samples to compare
TOLERANCE = 1e-3  # largest accepted difference, relative to values above one
SHARE_AT_EDGES = 0.25  # maximum share of samples in another bin due to rounding
UNKNOWN = "ortlearn: a text not seen before"


def probe_samples(X: Any) -> Any:
    """Return evenly spaced samples, and the first ones with a missing value in each column."""
    n_samples, wanted, missing = count_samples(X), SAMPLES, [0]
    for _, values in [] if issparse(X) else columns_of(X):
        missing.extend(missing_samples(values)[:1])
        wanted = TEXT_SAMPLES if column_kind(values) == "text" else wanted
    spread = np.linspace(0, n_samples - 1, min(wanted, n_samples)).astype(int)
    chosen = np.union1d(spread, missing)
    return _safe_indexing(X, chosen) if len(chosen) < n_samples else X


def difference(transformer: Any, graph: ModelProto, schema: InputSchema, probe: Any, run: Run) -> str | None:
    """Return a description of how a graph differs from its fitted transformer, None if it does not."""
    found = _compare(transformer, graph, schema, probe, run)
    if found is not None or issparse(probe):
        return found
    frame = as_columns(probe)
    if all(column_kind(values) != "text" for _, values in columns_of(frame)):
        return None
    few = _safe_indexing(frame, np.arange(min(2, count_samples(frame))))
    few = few if is_frame(few) else few.astype(object)
    new = with_new_columns(few, lambda _, values, kind: [UNKNOWN] * len(values) if kind == "text" else values)
    return _compare(transformer, graph, schema, new, run)


def _compare(transformer: Any, graph: ModelProto, schema: InputSchema, probe: Any, run: Run) -> str | None:
    try:
        expected = transformed(transformer, probe)
    except (AttributeError, TypeError, ValueError):  # scikit-learn rejects the samples
        return None
    try:
        got = run(graph, read_columns(probe.toarray() if issparse(probe) else probe, schema))
    except Exception as error:  # onnxruntime raises errors of every kind
        return f"its ONNX form fails ({str(error).splitlines()[0].rpartition(' : ')[2]})"
    if got.shape != expected.shape:
        return f"its ONNX form returns the shape {got.shape} instead of {expected.shape}"
    if expected.dtype.kind not in "fiub":
        same = np.array_equal(got.astype(str), expected.astype(str))
        return None if same else "its ONNX form returns other texts"
    gap = np.subtract(got, expected, dtype=np.float64)
    np.abs(gap, out=gap)
    if not gap.size or gap.max() <= TOLERANCE:  # False for missing values
        return None
    if np.isnan(gap).any():
        if not np.array_equal(np.isnan(got), np.isnan(expected)):
            return "its ONNX form treats missing values differently"
        gap, expected = np.nan_to_num(gap), np.nan_to_num(expected)
    allowed = TOLERANCE * (1 + np.abs(expected))
    if (gap > allowed).any():
        eps = float(np.finfo(schema.float_dtype).eps)
        # Results that change discontinuously with numbers are categories, such as bins.
        jumps = _moved(transformer, probe, expected, schema, max(eps * 2**-20, 1e-15)) > allowed
        if np.mean(np.any(jumps, axis=-1)) <= SHARE_AT_EDGES:
            allowed = allowed + 8 * _moved(transformer, probe, expected, schema, eps)
    return f"its ONNX form differs from scikit-learn by {gap.max():.3g}" if (gap > allowed).any() else None


def transformed(transformer: Any, X: Any) -> np.ndarray:
    """Return scikit-learn's output as a dense array."""
    with quiet():
        result = transformer.transform(*untouched(transformer, X))
    result = result.toarray() if issparse(result) else np.asarray(result)
    if result.dtype.kind == "O":
        with suppress(TypeError, ValueError):
            return result.astype(np.float64)
    return result


def _moved(
    transformer: Any, probe: Any, expected: np.ndarray, schema: InputSchema, share: float
) -> np.ndarray:
    """Return the absolute change of results for a relative change of the numbers of samples."""
    unchanged = np.zeros(expected.shape)
    if issparse(probe) or schema.inputs[0].column is None and not schema.is_number_matrix:
        return unchanged
    frame = as_columns(probe)
    names = (selected_names(transformer) if is_frame(frame) else None) or column_keys(frame)
    readers = first_readers(transformer, range(len(names)))
    # Categories must not change.
    encoded = {names[reader.position] for reader in readers if reader.encodes}

    def nudge(key: Hashable, values: np.ndarray, kind: str) -> Any:
        exact = key in encoded or kind in ("text", "other")
        return values if exact else np.asarray(values, dtype=np.float64) * (1 + share)

    try:
        nudged = transformed(transformer, with_new_columns(frame, nudge))
    except ValueError:  # a step rejects the changed numbers
        return unchanged
    return np.nan_to_num(np.abs(nudged - expected))
