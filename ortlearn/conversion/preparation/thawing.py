"""Members of an estimator that are wrapped as FrozenEstimator, which skl2onnx does not know."""

from __future__ import annotations

import copy
from typing import Any

from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

__all__ = ["thawed"]

#: Attributes in which estimators keep fitted members.
MEMBERS = ("calibrated_classifiers_", "estimator_", "estimators_", "final_estimator_")


def thawed(estimator: Any) -> Any:
    """Return a fitted estimator whose members are what they were before they were wrapped.

    Parameters
    ----------
    estimator : estimator
        Fitted; it is not changed.

    Returns
    -------
    estimator
        The same one where nothing is wrapped, a copy that is good for conversion otherwise.

    Examples
    --------
    >>> from sklearn.ensemble import VotingRegressor
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn.conversion.preparation.thawing import thawed
    >>> X, y = [[0.0], [1.0]], [0.0, 1.0]
    >>> vote = VotingRegressor([("fitted", FrozenEstimator(Ridge().fit(X, y)))]).fit(X, y)
    >>> thawed(vote).estimators_
    [Ridge()]
    """
    if isinstance(estimator, FrozenEstimator):
        return thawed(estimator.estimator)
    if isinstance(estimator, Pipeline):
        steps = [(name, thawed(step)) for name, step in estimator.steps]
        same = all(new is old for (_, new), (_, old) in zip(steps, estimator.steps, strict=True))
        return estimator if same else Pipeline(steps)
    names = MEMBERS if hasattr(estimator, "get_params") else ("estimator",)  # of a calibrated classifier
    own = getattr(estimator, "__dict__", {})
    changed = {name: _thawed_members(own[name]) for name in names if name in own}
    if all(value is own[name] for name, value in changed.items()):
        return estimator
    estimator = copy.copy(estimator)
    vars(estimator).update(changed)
    return estimator


def _thawed_members(value: Any) -> Any:
    if not isinstance(value, list):
        return thawed(value)
    members = [thawed(member) for member in value]
    return value if all(new is old for new, old in zip(members, value, strict=True)) else members
