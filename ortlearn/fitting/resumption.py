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
    """State of an unfinished call of ``fit``."""

    random_state: np.random.RandomState  # random state before the first draw
    weights: dict[str, np.ndarray]  # starting weights
    digest: int | None  # checksum in files of version 0.2.0, which have no ``data``
    parameters: dict[str, str]  # fingerprint of the parameters
    position: Position
    candidate: Candidate | None = None  # chosen regularisation of a warm start
    data: dict[str, str] = field(default_factory=dict)  # fingerprint of model and data
    drawn: str = ""  # text of ``random_state`` after the draws
    counts: dict[str, Counts] = field(default_factory=dict)  # counts of sources, by name of the argument

    def fresh_random_state(self) -> np.random.RandomState:
        """Return a copy of the random state."""
        return copy.deepcopy(self.random_state)
