"""What a model is for, as its scikit-learn estimator tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from .unwrapping import Threshold, Unwrapped

__all__ = ["ModelKind", "describe", "last_step"]

#: Kinds of heads by type of estimator; a classifier of several outputs is "multilabel".
BY_TYPE = {
    "classifier": "classification",
    "regressor": "regression",
    "clusterer": "clusters",
    "density_estimator": "mixture",
    "outlier_detector": "outliers",
}


@dataclass(frozen=True)
class ModelKind:
    """What a model is for.

    Attributes
    ----------
    kind : str or None
        Kind of its head; None where the graph decides.
    classes : ndarray, list of ndarray or None
        Classes of a classifier, one array per output where each has its own.
    has_probabilities : bool or None
        Whether the second output of a classifier is probabilities or decision scores; None where
        the graph decides.
    threshold : Threshold or None
        Decision threshold other than the most probable class.
    target_transformers : tuple
        What the targets of a regressor go through, the outermost first.
    core : estimator or None
        Estimator at the end of the pipeline.
    link : {"identity", "log"}
        What the scores of a regressor are of its predictions: themselves, or their logarithms.
    """

    kind: str | None = None
    classes: Any = None
    has_probabilities: bool | None = None
    threshold: Threshold | None = None
    target_transformers: tuple[Any, ...] = ()
    core: BaseEstimator | None = None
    link: str = "identity"


def last_step(estimator: Any) -> Any:
    """Return the estimator at the end of pipelines, which may be nested; idle steps do not count."""
    while isinstance(estimator, Pipeline):
        steps = [step for _, step in estimator.steps if step not in (None, "passthrough")]
        estimator = steps[-1] if steps else None
    return estimator


def describe(unwrapped: Unwrapped) -> ModelKind:
    """Return what a fitted estimator is for.

    Parameters
    ----------
    unwrapped : Unwrapped
        Estimator and what was around it.

    Returns
    -------
    ModelKind
        Its kind.
    """
    core = last_step(unwrapped.estimator)
    kind = BY_TYPE.get(get_tags(core).estimator_type or "", "transformation")
    classes: Any = None
    has_probabilities: bool | None = None
    if kind == "outliers":
        classes, has_probabilities = np.array([-1, 1]), False
    elif kind == "classification":
        classes = getattr(core, "classes_", None)
        has_probabilities = hasattr(core, "predict_proba")
        if isinstance(classes, list) or _has_indicator(core):
            kind = "multilabel"
    return ModelKind(
        kind, classes, has_probabilities, unwrapped.threshold, unwrapped.target_transformers, core
    )


def _has_indicator(core: Any) -> bool:
    """Tell whether a classifier was fitted on a matrix of zeros and ones."""
    binarizer = getattr(core, "_label_binarizer", None)
    return bool(getattr(core, "multilabel_", False)) or (
        getattr(binarizer, "y_type_", "").startswith("multilabel")
    )
