"""The scikit-learn model with trained weights, compared with the trained estimator."""

from __future__ import annotations

from typing import Any

from tests.model_zoo.predictions import LARGE, difference, predictions

__all__ = ["written_back"]


def written_back(trained: Any, X: Any) -> dict[str, Any]:
    """Compare ``to_sklearn()`` with the trained estimator.

    Parameters
    ----------
    trained : BaseOrtGradientEstimator
        Trained.
    X : array-like
        Rows.

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
    worst = max(gaps, key=lambda name: gaps[name])
    if gaps[worst] <= LARGE:
        return {"ok": True, "gaps": gaps}
    return {"ok": False, "gaps": gaps, "reason": f"{worst} of to_sklearn() differs by {gaps[worst]:.2g}"}
