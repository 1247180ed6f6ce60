"""Apply functions to chunks of samples, with bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any

import numpy as np
from onnx import ModelProto
from scipy.sparse import issparse, vstack

from ..data.columns import Columns
from ..data.source_features import SourceFeatures
from ..runtime.buffers import sample_bytes
from ..training.graphs.sparse_products import entry_bytes
from ..training.optimisations.activations import light_graph, samples_per_call, surely_fitting
from ..training.optimisations.hoisting import CHUNK_BYTES

__all__ = ["BoundedCall", "by_chunks"]

#: Largest chunk of columns, since a text may be encoded as thousands of numbers.
SAMPLES_OF_COLUMNS = 4096


class BoundedCall:
    """A session, and the number of samples per call that bounds the memory of activations.

    ``widths`` has the inputs that it takes as sparse entries, and how many values it computes per entry.
    """

    def __init__(self, session: Any, graph: ModelProto, widths: Mapping[str, int] | None = None):
        self.session = session
        self._widths = widths or {}
        self._types = light_graph(graph)
        self._few: dict[tuple, int] = {}
        self._sizes: dict[tuple, int] = {}

    def n_samples(self, inputs: Mapping[str, Any]) -> int:
        """Return the number of samples per call; sparse inputs are limited to 16 MiB."""
        key = tuple((name, array.shape[1:]) for name, array in inputs.items())
        if key not in self._few:
            self._few[key] = surely_fitting(self._types, inputs)
        size = self._few[key]
        if any(array.shape[0] > size for array in inputs.values()):
            if key not in self._sizes:
                self._sizes[key] = samples_per_call(self._types, inputs)
            size = self._sizes[key]
        for name, array in inputs.items():
            if issparse(array):
                known = name in self._widths
                of_sample = entry_bytes(array, self._widths[name]) if known else sample_bytes([array])
                size = min(size, max(1, CHUNK_BYTES // max(1, of_sample)))
        return size


def by_chunks(
    function: Callable[..., Any], n_samples: Callable[[Any], int], samples: Any, *others: Any
) -> Any:
    """Return the concatenated results of a function of chunks."""
    return _joined([function(*part) for part in _parts(n_samples, samples, *others)])


def _parts(n_samples: Callable[[Any], int], samples: Any, *others: Any) -> Iterator[tuple]:
    """Yield chunks of samples, with the matching parts of other arrays."""
    if isinstance(samples, SourceFeatures):
        start = 0
        with closing(samples.chunks()) as chunks:
            for chunk in chunks:
                stop = start + chunk.shape[0]
                yield from _parts(n_samples, chunk, *(other[start:stop] for other in others))
                start = stop
        return
    size, number = n_samples(samples), samples.shape[0]
    if isinstance(samples, Columns):
        size = min(
            size, SAMPLES_OF_COLUMNS, max(1, CHUNK_BYTES // max(1, sample_bytes(samples.arrays.values())))
        )
    elif number <= size:
        yield samples, *others
        return
    for start in range(0, max(number, 1), size):
        part = slice(start, start + size)
        yield samples[part], *(other[part] for other in others)


def _joined(results: list) -> Any:
    """Concatenate arrays, sparse matrices or lists of arrays."""
    if len(results) == 1:
        return results[0]
    if isinstance(results[0], list):
        return [np.concatenate(arrays) for arrays in zip(*results, strict=True)]
    return vstack(results, format="csr") if issparse(results[0]) else np.concatenate(results)
