"""What it takes to resume a call of ``fit``: the decisions it has made, and where it is."""

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

#: Parameters that may change when a training is resumed: they decide how long it takes, and what it tells.
FREE = ("max_iter", "verbose", "exc", "tol", "n_iter_no_change", "n_jobs", "client")
#: Where an object is in memory, in its text.
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


@dataclass(frozen=True)
class Resumption:
    """A call of ``fit`` that is not over.

    Attributes
    ----------
    random_state : numpy.random.RandomState
        Random state before anything was drawn.
    weights : dict of str to ndarray
        Starting weights.
    digest : int
        Checksum of graph and samples.
    parameters : dict of str to str
        Texts of the parameters.
    position : Position
        Where the training is.
    candidate : Candidate or None
        How the training is held back, where that was chosen.
    """

    random_state: np.random.RandomState
    weights: dict[str, np.ndarray]
    digest: int
    parameters: dict[str, str]
    position: Position
    candidate: Candidate | None = None

    def fresh_random_state(self) -> np.random.RandomState:
        """Return the random state, to be drawn from."""
        return copy.deepcopy(self.random_state)

    def check_parameters(self, parameters: dict[str, str]) -> None:
        """Raise an error if a training has other parameters."""
        both = parameters.keys() | self.parameters.keys()
        changed = sorted(n for n in both if parameters.get(n) != self.parameters.get(n))
        if changed:
            found = ", ".join(f"{n}={parameters.get(n)} instead of {self.parameters.get(n)}" for n in changed)
            raise SavedFileError(
                f"The training to resume has other parameters: {found}. Set those that it began with; "
                f"{', '.join(FREE)} may change."
            )

    def applied(self, start: Start) -> Start:
        """Return a start with the weights that the training began with, if graph and samples are the same."""
        if digest_of(start) != self.digest:
            raise SavedFileError(
                "The training to resume has another model or other samples: pass the estimator, samples, "
                "labels and weights that it began with, and use the same versions of packages."
            )
        return replace(start, weights=self.weights, state=replace(start.state, anchor=self.weights))


def parameter_texts(parameters: dict[str, Any]) -> dict[str, str]:
    """Return the parameters that a training must be resumed with, as texts.

    The model is compared by its graph, and the random state is part of what is stored.
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
    """Return what makes a resumption of a position; samples are read for it only once."""

    @cache
    def digest() -> int:
        return digest_of(start)

    def resumption(position: Position) -> Resumption:
        return Resumption(random_state, start.weights, digest(), parameters, position, candidate)

    return resumption


def digest_of(start: Start) -> int:
    """Return a checksum of the graph and the samples of a training, the first ones of a source."""
    found = zlib.crc32(start.problem.trainable.model.SerializeToString(deterministic=True))
    for array in _arrays(start.data):
        found = zlib.crc32(array, found)
    return found if start.source is None else zlib.crc32(start.source.summary, found)


def _arrays(data: Data) -> Iterable[bytes | memoryview]:
    """Yield all numbers of samples, as contiguous bytes."""
    parts: list[Any] = list(data.X.arrays.values()) if isinstance(data.X, Columns) else [data.X]
    for part in (*parts, data.y, data.sample_weight):
        if part is None:
            continue
        for array in [part.data, part.indices, part.indptr] if issparse(part) else [part]:
            if array.dtype.kind in "OUST":
                yield "\0".join(map(str, array.ravel().tolist())).encode()
            else:
                yield np.ascontiguousarray(array).view(np.uint8).ravel().data
