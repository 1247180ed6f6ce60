"""What scores a model while it is trained."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .problem import Problem

__all__ = ["scorer_of"]

#: Takes an estimator, X, y and sample_weight.
Scorer = Callable[..., float]


def scorer_of(owner: Any, problem: Problem, n_rows: int) -> Scorer | None:
    """Return what scores an estimator on rows to validate on.

    Parameters
    ----------
    owner : BaseOrtGradientEstimator
        Whose ``scoring`` counts.
    problem : Problem
        What is trained.
    n_rows : int
        Rows to validate on.

    Returns
    -------
    callable or None
        None where no score was asked for, and none is defined.

    Raises
    ------
    ValueError
        If ``scoring`` is no scorer.
    """
    if owner.scoring == "loss":
        own_loss = problem.trainable.head is None  # such a graph need not predict
        one_value = problem.classes is None and n_rows < 2  # R2 compares with a variance
        return None if own_loss or one_value else type(owner).score
    if owner.scoring is None:
        return type(owner).score
    from sklearn.metrics import check_scoring  # longer to import than all of ortlearn

    scorer = check_scoring(owner, owner.scoring)
    return _explained(scorer if _takes_weights(scorer) else _without_weights(scorer), owner.scoring)


def _takes_weights(scorer: Scorer) -> bool:
    kinds = {name: item.kind for name, item in inspect.signature(scorer).parameters.items()}
    return "sample_weight" in kinds or inspect.Parameter.VAR_KEYWORD in kinds.values()


def _without_weights(scorer: Scorer) -> Scorer:
    return lambda estimator, X, y, sample_weight=None: scorer(estimator, X, y)


def _explained(scorer: Scorer, name: Any) -> Scorer:
    """Return a scorer whose errors say where they come from."""

    def score(estimator: Any, X: Any, y: Any, **weights: Any) -> float:
        try:
            return scorer(estimator, X, y, **weights)
        except ValueError as error:
            raise ValueError(f"scoring={name!r} failed on the rows to validate on: {error}") from error

    return score
