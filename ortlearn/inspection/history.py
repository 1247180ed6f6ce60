"""Read the history of a training, a list with one dict per epoch."""

from __future__ import annotations

from typing import Any

__all__ = ["check_history", "history_of", "measured"]

#: How to get a value that is missing in a history.
ADVICE = {
    "validation_score": "Fit with scoring=None or a scorer, and with X_val and y_val or early_stopping=True",
    "rate": "Only learning rates with a schedule record it",
}


def history_of(estimator: Any) -> list[dict]:
    """Return the history of a fitted estimator."""
    if isinstance(estimator, type):
        raise ValueError(f"Pass a fitted object, not the class {estimator.__name__}.")
    if not hasattr(estimator, "history_"):
        from sklearn.utils.validation import check_is_fitted  # imports pandas, which a list does not need

        check_is_fitted(estimator)
        raise ValueError(
            f"{type(estimator).__name__} has no history_ to plot: pass a fitted OrtGradientOptimizer or "
            "OrtGradientForwardBackwardOptimizer, such as the last step of a pipeline, or best_estimator_ "
            "of a search."
        )
    return estimator.history_


def check_history(history: Any) -> None:
    """Raise a ValueError if an object is not a history."""
    if not isinstance(history, list | tuple) or not all(isinstance(record, dict) for record in history):
        raise ValueError(
            f"history must be a list of one dict per epoch, as history_ is, not {type(history).__name__}."
        )
    if not history:
        raise ValueError("history is empty: fit for at least one epoch before plotting.")
    for record in history:
        for key in ("epoch", "loss"):
            if key not in record or (key == "epoch" and record[key] is None):
                raise ValueError(
                    f"Each epoch of a history needs {key!r}, but one has only {sorted(record)}. Pass the "
                    "history_ of a fitted estimator."
                )


def measured(history: list[dict], key: str, *, required: bool = False) -> tuple[list, list]:
    """Return the epochs in which a value was measured, and the values."""
    found = [(record["epoch"], record[key]) for record in history if record.get(key) is not None]
    if required and not found:
        raise ValueError(f"The history has no {key.replace('_', ' ')}. {ADVICE[key]}.")
    return [epoch for epoch, _ in found], [value for _, value in found]
