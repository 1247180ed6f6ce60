"""The choice of a candidate, in rounds that begin with the start."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..quiet import quiet
from .candidates import Candidate, KeptStart, Setting
from .evidence import best_of
from .measures import Measure

__all__ = ["Choice", "choose"]


@dataclass(frozen=True)
class Choice:
    """What was chosen.

    Attributes
    ----------
    candidate : Candidate
        The candidate to keep.
    means : ndarray
        Mean losses in the last round: of what was kept before, then of the candidates.
    """

    candidate: Candidate
    means: np.ndarray


def choose(setting: Setting, measure: Measure, rounds: Iterable[Sequence[Candidate]]) -> Choice:
    """Return the candidate that the rule of evidence keeps, the start if no other is shown to be better.

    The candidates of each round, which require the same evidence, are compared with the one that is kept
    after the rounds before.
    """
    choice = Choice(KeptStart(), np.zeros(0))
    scores = [measure.scores(setting.start, left_out) for _, left_out in measure.parts()]
    for others in filter(None, rounds):
        candidates = [candidate.upon(choice.candidate) for candidate in others]
        choice, scores = _round(setting, measure, choice.candidate, candidates, scores)
    return choice


def _round(
    setting: Setting,
    measure: Measure,
    kept: Candidate,
    candidates: Sequence[Candidate],
    scores: Sequence[Any],
) -> tuple[Choice, list[Any]]:
    """Return the choice of a round, and the scores of the chosen candidate for each part."""
    tried, losses, weights = [], [], []
    for parts, before in islice(zip(measure.parts(), scores, strict=True), candidates[0].n_parts):
        rows, previous, kind = [before], None, None
        with quiet(ConvergenceWarning):
            for candidate in candidates:
                previous, kind = (previous if type(candidate) is kind else None), type(candidate)
                own, previous = candidate.tried(setting, measure, parts, before, previous)
                rows.append(own)
        tried.append(rows)
        losses.append(np.array([measure.losses(own, parts[1]) for own in rows], dtype=np.float64))
        weights.append(measure.weights(parts[1]))
    table, shares = np.concatenate(losses, axis=1), np.concatenate(weights)
    evidence = max(candidates[0].evidence, setting.evidence)
    best = best_of(table, shares, [candidate.family for candidate in candidates], evidence)
    chosen = kept if best is None else candidates[best]
    number = 0 if best is None else best + 1
    with np.errstate(invalid="ignore"):  # infinite losses of samples without weight
        means = table @ (shares / shares.sum())
    return Choice(chosen, means), [rows[number] for rows in tried]
