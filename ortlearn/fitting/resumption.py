"""State that is needed to resume a call of ``fit``."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

import numpy as np

from ..comparison.candidates import Candidate
from ..training.positions import Position
from .source_counts import Counts

__all__ = ["Resumption"]


@dataclass(frozen=True)
class Resumption:
    """State of an unfinished call of ``fit``.

    Attributes
    ----------
    random_state : numpy.random.RandomState
        Random state before the first draw.
    weights : dict of str to ndarray
        Starting weights.
    digest : int or None
        Checksum of graph and samples in files of version 0.2.0, which have no ``data``.
    parameters : dict of str to str
        Fingerprint of the parameters.
    position : Position
        Position of the training.
    candidate : Candidate or None
        Chosen regularisation of a warm start.
    data : dict of str to str
        Fingerprint of model and data.
    drawn : str
        Text of ``random_state`` after the draws.
    counts : dict of str to Counts
        Counts of sources, by the name of the argument.
    """

    random_state: np.random.RandomState
    weights: dict[str, np.ndarray]
    digest: int | None
    parameters: dict[str, str]
    position: Position
    candidate: Candidate | None = None
    data: dict[str, str] = field(default_factory=dict)
    drawn: str = ""
    counts: dict[str, Counts] = field(default_factory=dict)

    def fresh_random_state(self) -> np.random.RandomState:
        """Return a copy of the random state."""
        return copy.deepcopy(self.random_state)
