"""State that is needed to resume a call of ``fit``."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ..exceptions import ResumedWarning, SavedFileError, warn_user
from ..training.positions import Position
from . import fingerprint
from .adaptation import Candidate
from .source_counts import Counts
from .starting import Start

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

    def checked_parameters(self, found: Mapping[str, str]) -> dict[str, str]:
        """Return the fingerprint of the parameters, or raise an error if some differ.

        A seed of None takes the stored one; a generator may also be in the state after the draws.
        """
        known = {name: text for name, text in self.parameters.items() if name not in fingerprint.WITH_DATA}
        if found["random_state"] in ("None", self.drawn):
            found = {**found, "random_state": known.get("random_state", found["random_state"])}
        fingerprint.check(found, known, bool(self.data))
        return {**found, **known}

    def applied(self, start: Start, found: Mapping[str, str]) -> Start:
        """Return a start with the original starting weights, or raise an error if model or data differ."""
        if self.data:
            fingerprint.check(found, self.data)
        else:
            self._check_digest(start, found)
        return replace(start, weights=self.weights, state=replace(start.state, anchor=self.weights))

    def _check_digest(self, start: Start, found: Mapping[str, str]) -> None:
        """Check graph and samples of a file of version 0.2.0, and warn of what it lacks."""
        buffer = self.parameters.get("shuffle_buffer", "None")
        fingerprint.check(found, {"shuffle_buffer": buffer}, is_complete=False)
        if fingerprint.digest_of(start) != self.digest:
            raise SavedFileError(
                "The training to resume has another model or other samples: pass the original estimator, "
                "samples, labels and weights, and use the same versions of packages."
            )
        warn_user(
            "The training was begun with version 0.2.0, whose files do not contain random_state, parameters "
            "of the estimator, validation data, and the scale of sample_weight: make sure that they are the "
            "original ones. Files of the resumed training contain them.",
            ResumedWarning,
        )
