"""Reading the history of a training: a list of dictionaries, one per epoch."""

from __future__ import annotations

from typing import Any

__all__ = ["check_history", "history_of", "measured"]

#: How to get what a history lacks.
ADVICE = {
    "validation_score": "fit with scoring=None or a scorer, and with X_val and y_val or early_stopping=True",
    "rate": "only learning rates with a schedule have one",
}


def history_of(estimator: Any) -> list[dict]:
    """Return the history of a fitted estimator."""
    if isinstance(estimator, type):
        raise ValueError(f"Pass a fitted object, not the class {estimator.__name__}.")
    if not hasattr(estimator, "history_"):
        from sklearn.utils.validation import check_is_fitted  # loads pandas, which a list does not need

        check_is_fitted(estimator)
        raise ValueError(
            f"{type(estimator).__name__} has no history_ to draw: pass a fitted OrtGradientOptimizer or "
            "OrtGradientForwardBackwardOptimizer, such as the last step of a pipeline, or best_estimator_ "
            "of a search."
        )
    return estimator.history_


def check_history(history: Any) -> None:
    """Raise an error if something is not a history."""
    if not isinstance(history, list | tuple) or not all(isinstance(record, dict) for record in history):
        raise ValueError(
            f"history must be a list of one dict per epoch, as history_ is, not {type(history).__name__}."
        )
    if not history:
        raise ValueError("history is empty: there is nothing to draw before the first epoch.")
    for record in history:
        for key in ("epoch", "loss"):
            if record.get(key) is None:
                raise ValueError(f"Every epoch of a history needs {key!r}; one has only {sorted(record)}.")


def measured(history: list[dict], key: str, *, required: bool = False) -> tuple[list, list]:
    """Return the epochs at which something was measured, and the values."""
    found = [(record["epoch"], record[key]) for record in history if record.get(key) is not None]
    if required and not found:
        raise ValueError(f"No {key.replace('_', ' ')} was measured: {ADVICE[key]}.")
    return [epoch for epoch, _ in found], [value for _, value in found]
