"""What kinds of y a model takes."""

from __future__ import annotations

import copy
from typing import Any

from sklearn.neural_network import MLPRegressor
from sklearn.utils import TargetTags, get_tags

from .readers import last_step

__all__ = ["target_tags"]


def target_tags(estimator: Any) -> TargetTags:
    """Return what kinds of y an estimator takes.

    Pipelines do not pass on all that their last step says, and ``MLPRegressor`` does not say that it takes
    several outputs.

    Parameters
    ----------
    estimator : estimator
        Estimator or pipeline, fitted or not.

    Returns
    -------
    sklearn.utils.TargetTags
        A copy of scikit-learn's tags, completed.

    Examples
    --------
    >>> from sklearn.neural_network import MLPRegressor
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from ortlearn.conversion import target_tags
    >>> target_tags(make_pipeline(StandardScaler(), MLPRegressor())).multi_output
    True
    """
    core = last_step(estimator)
    if core is None or not hasattr(core, "__sklearn_tags__"):
        core = estimator
    tags = copy.deepcopy(get_tags(core).target_tags)
    tags.multi_output |= isinstance(core, MLPRegressor)
    return tags
