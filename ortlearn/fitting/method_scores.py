"""Scores of fitted estimators by their own methods, which take less time than a conversion."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problem.problem import Problem

__all__ = ["method_scores"]


def method_scores(problem: Problem, part: Any, X: Any) -> np.ndarray | None:
    """Return the scores of a model like that of a problem, up to a constant for each sample, or None.

    Whether the loss is that of the graph's scores remains to be compared: methods may compute others.
    """
    known = problem.trainable.scores
    if known is None or known.positions is not None or known.groups or known.target_transformers:
        return None
    if known.task == "regression":
        found = part.predict(X)
    elif known.task == "classification" and known.decision is None and hasattr(part, "decision_function"):
        found = part.decision_function(X)
    elif known.task == "classification" and hasattr(part, "predict_proba"):
        found = part.predict_proba(X)
        if not isinstance(found, np.ndarray):
            return None
        with np.errstate(divide="ignore"):
            found = np.log(found)
        found = found[:, 1] - found[:, 0] if known.n_outputs == 1 else found
    else:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.log(found) if known.task == "regression" and known.link == "log" else found
    found = np.asarray(found).reshape(len(found), -1)
    return found.astype(problem.dtype) if found.shape[1] == known.n_outputs else None
