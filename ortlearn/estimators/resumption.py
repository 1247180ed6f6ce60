"""State that is needed to resume a call of ``fit``."""

from __future__ import annotations

import copy
import re
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..exceptions import SavedFileError
from ..training import Columns, Data
from ..training.positions import Position
from .adaptation import Candidate
from .starting import Start

__all__ = ["Resumption", "parameter_texts", "resumptions"]

#: Parameters that may change when a training is resumed.
FREE = ("max_iter", "verbose", "exc", "tol", "n_iter_no_change", "n_jobs", "client")
#: Memory address in the representation of an object.
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


@dataclass(frozen=True)
class Resumption:
    """State of an unfinished call of ``fit``.

    Attributes
    ----------
    random_state : numpy.random.RandomState
        Random state before the first draw.
    weights : dict of str to ndarray
        Starting weights.
    digest : int
        Checksum of graph and samples.
    parameters : dict of str to str
        Texts of the parameters.
    position : Position
        Position of the training.
    candidate : Candidate or None
        Chosen regularisation of a warm start.
    """

    random_state: np.random.RandomState
    weights: dict[str, np.ndarray]
    digest: int
    parameters: dict[str, str]
    position: Position
    candidate: Candidate | None = None

    def fresh_random_state(self) -> np.random.RandomState:
        """Return a copy of the random state."""
        return copy.deepcopy(self.random_state)

    def check_parameters(self, parameters: dict[str, str]) -> None:
        """Raise an error if parameters have changed."""
        names = parameters.keys() | self.parameters.keys()
        changed = sorted(n for n in names if parameters.get(n) != self.parameters.get(n))
        if changed:
            texts = ", ".join(f"{n}={parameters.get(n)} instead of {self.parameters.get(n)}" for n in changed)
            raise SavedFileError(
                f"The training to resume has other parameters: {texts}. Restore the original ones; only "
                f"{', '.join(FREE)} may change."
            )

    def applied(self, start: Start) -> Start:
        """Return a start with the original starting weights, or raise an error if graph or samples differ."""
        if digest_of(start) != self.digest:
            raise SavedFileError(
                "The training to resume has another model or other samples: pass the original estimator, "
                "samples, labels and weights, and use the same versions of packages."
            )
        return replace(start, weights=self.weights, state=replace(start.state, anchor=self.weights))


def parameter_texts(parameters: dict[str, Any]) -> dict[str, str]:
    """Return the texts of the parameters that must be the same to resume a training.

    The model is compared by its graph, and the random state is stored.
    """
    kept = {
        name: value for name, value in parameters.items() if name not in (*FREE, "estimator", "random_state")
    }
    return {name: ADDRESS.sub("", repr(value)) for name, value in kept.items()}


def resumptions(
    start: Start,
    random_state: np.random.RandomState,
    parameters: dict[str, str],
    candidate: Candidate | None,
) -> Callable[[Position], Resumption]:
    """Return a function from position to resumption, which computes the checksum of the samples once."""

    @cache
    def digest() -> int:
        return digest_of(start)

    def resumption(position: Position) -> Resumption:
        return Resumption(random_state, start.weights, digest(), parameters, position, candidate)

    return resumption


def digest_of(start: Start) -> int:
    """Return a checksum of the graph and the samples of a training (the first ones of a source)."""
    found = zlib.crc32(start.problem.trainable.model.SerializeToString(deterministic=True))
    for array in _arrays(start.data):
        found = zlib.crc32(array, found)
    return found if start.source is None else zlib.crc32(start.source.summary, found)


def _arrays(data: Data) -> Iterable[bytes | memoryview]:
    """Yield the arrays of samples, as contiguous bytes."""
    parts: list[Any] = list(data.X.arrays.values()) if isinstance(data.X, Columns) else [data.X]
    for part in (*parts, data.y, data.sample_weight):
        if part is None:
            continue
        for array in [part.data, part.indices, part.indptr] if issparse(part) else [part]:
            if array.dtype.kind in "OUST":
                yield "\0".join(map(str, array.ravel().tolist())).encode()
            else:
                yield np.ascontiguousarray(array).view(np.uint8).ravel().data
