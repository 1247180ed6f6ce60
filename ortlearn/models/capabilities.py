"""Capabilities of some models, as objects that definitions name and that callers ask for by type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from .registry import find_definition

__all__ = ["GrowingEnsemble", "ShiftedTables", "capability_of"]


class GrowingEnsemble:
    """Ensembles of trees that may be averaged, since their scores are sums over trees."""

    #: Standard errors by which the loss of held-out samples must decrease to change such an ensemble.
    evidence = 1.0
    #: Whether samples of weight zero change nothing in a fit but its classes.
    ignores_weightless = False

    def grows(self, model: Any) -> bool:
        """Return whether a fitted ensemble can be averaged with another one."""
        return True

    def scores_of(self, model: Any, X: Any) -> np.ndarray:
        """Return the scores that the graph of an ensemble computes, of shape (n, k)."""
        raise NotImplementedError

    def mixed_scores(self, scores: np.ndarray, others: np.ndarray, share: float) -> np.ndarray:
        """Return the scores that :meth:`joined` ensembles give, from the scores of each."""
        return scores + share * (others - scores)

    def joined(self, model: Any, other: Any, share: float) -> Any:
        """Return an ensemble with the weighted mean of two scores, ``share`` the weight of ``other``."""
        raise NotImplementedError


@dataclass(frozen=True)
class ShiftedTables:
    """Models whose scores are means of values in tables, such as the leaves of a forest.

    Attributes
    ----------
    offset : callable
        Function of a fitted model that returns the change of all values that changes each score by one, or
        None if there is none.
    """

    offset: Callable[[Any], float | None]


Capability = TypeVar("Capability")


def capability_of(model: Any, kind: type[Capability]) -> Capability | None:
    """Return the capability of a kind that the definition of a fitted estimator names, or None."""
    definition = find_definition(model)
    named = () if definition is None else definition.capabilities
    return next((own for own in named if isinstance(own, kind)), None)
