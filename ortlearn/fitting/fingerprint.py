"""The fingerprint of a call of ``fit``: everything that changes its result."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

import numpy as np

from ..comparison.candidates import Candidate
from .sources.counts import Counts

__all__ = ["Fingerprint"]


@dataclass(frozen=True, eq=False)
class Fingerprint:
    """Parameters and data of a training, which must be equal to resume it, and its first decisions."""

    random_state: np.random.RandomState  # random state before the first draw
    parameters: dict[str, str]  # texts of the parameters
    data: dict[str, str] = field(default_factory=dict)  # texts of model and data; empty in files of 0.2.0
    digest: int | None = None  # checksum of model and data in files of version 0.2.0
    drawn: str = ""  # text of ``random_state`` after the draws
    candidate: Candidate | None = None  # chosen regularisation of a warm start
    counts: dict[str, Counts] = field(default_factory=dict)  # counts of sources, by name of the argument

    def fresh_random_state(self) -> np.random.RandomState:
        """Return a copy of the random state."""
        return copy.deepcopy(self.random_state)
