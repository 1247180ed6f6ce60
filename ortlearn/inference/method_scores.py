"""Scores of fitted estimators by their own methods, which take less time than a conversion."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..models import Scores
from ..models.columns import LOWEST

__all__ = ["METHODS", "MethodScores"]

#: Function of scores, a fitted model and samples that returns the scores, up to a constant for each sample.
MethodScores = Callable[[Scores, Any, Any], np.ndarray]


def _predicted(known: Scores, model: Any, X: Any) -> np.ndarray:
    """Return predictions, or their logarithms, as the scores of a regressor."""
    found = model.predict(X)
    return np.log(found) if known.link == "log" else found


def _decided(known: Scores, model: Any, X: Any) -> np.ndarray:
    """Return decisions as scores."""
    return model.decision_function(X)


def _confidences(known: Scores, model: Any, X: Any) -> np.ndarray:
    """Return the sums s of confidences of pairs, given decisions v + s / (3 (\\|s\\| + 1)) with v votes."""
    decided = model.decision_function(X)
    parts = 3 * (decided - np.round(decided))
    return parts / (1 - np.abs(parts))


def _joint(known: Scores, model: Any, X: Any) -> np.ndarray:
    """Return logarithms of joint densities, of two classes their difference."""
    found = model.predict_joint_log_proba(X)
    return found[:, 1] - found[:, 0] if known.n_outputs == 1 else found


def _logarithms(known: Scores, model: Any, X: Any, lowest: float) -> np.ndarray:
    """Return logarithms of probabilities above the lowest, of two classes the logit."""
    found = np.log(np.maximum(model.predict_proba(X), lowest))
    return found[:, 1] - found[:, 0] if known.n_outputs == 1 else found


#: Ways to compute scores, by task: the first one whose losses are those of the graph applies.
METHODS: dict[str, tuple[MethodScores, ...]] = {
    "regression": (_predicted,),
    "classification": (
        *(_decided, _joint, _confidences),
        *(partial(_logarithms, lowest=lowest) for lowest in (LOWEST, 0.0)),
    ),
}
