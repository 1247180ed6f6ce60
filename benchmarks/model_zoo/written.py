"""The scikit-learn model with trained weights, compared with the trained estimator."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from benchmarks.model_zoo.predictions import FEW_LABELS, LARGE, difference, predictions

__all__ = ["written_back"]


def written_back(trained: Any, X: Any, y: Any) -> dict[str, Any]:
    """Compare ``to_sklearn()`` with the trained estimator.

    Parameters
    ----------
    trained : BaseOrtGradientEstimator
        Trained.
    X : array-like
        Samples.
    y : array-like or None
        Targets of the training, for scores.

    Returns
    -------
    dict of str to object
        Fact: whether it predicts the same, the largest difference by method, and what is wrong.
    """
    model = trained.to_sklearn()
    expected = predictions(model, X)
    gaps = {
        name: difference(values, expected[name])
        for name, values in predictions(trained, X).items()
        if name in expected
    }
    if not gaps:
        return {"ok": None, "reason": "there is no method to compare"}
    wrong = [f"{name} of to_sklearn() differs by {gap:.2g}" for name, gap in gaps.items() if gap > LARGE]
    wrong += _wrong_scores(trained, model, X, y)
    fact = {"ok": not wrong, "gaps": gaps}
    return {**fact, "reason": "; ".join(wrong)} if wrong else fact


def _wrong_scores(trained: Any, model: Any, X: Any, y: Any) -> Iterator[str]:
    """Yield the scores that differ: with sample weights, if the model takes them, and without."""
    if not hasattr(model, "score"):
        return
    options: list[dict[str, Any]] = [{}]
    if "sample_weight" in inspect.signature(model.score).parameters and not hasattr(model, "steps"):
        options.append({"sample_weight": np.linspace(0.5, 2, np.shape(X)[0])})
    tolerance = 2 * FEW_LABELS if is_classifier(model) else LARGE
    for given in options:
        found, expected = trained.score(X, y, **given), model.score(X, y, **given)
        if not abs(found - expected) <= tolerance * max(1.0, abs(expected)):
            yield f"score({', '.join(given)}) is {found:.4g}, that of to_sklearn() is {expected:.4g}"
