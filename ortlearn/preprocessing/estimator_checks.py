"""Checks of estimators, and their target tags."""

import copy
from contextlib import suppress
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import TargetTags, _safe_indexing, get_tags
from sklearn.utils.validation import _check_feature_names, _get_feature_names

from ..exceptions import ConversionError
from ..models import unwrapped
from ..models.registry import definition_or_default
from ..models.transformations.pipelines import is_idle, working_steps
from ..quiet import quiet
from .readers import selected_names


def is_trainer(estimator: Any) -> bool:
    """Return whether an object trains models, such as :class:`~ortlearn.OrtGradientOptimizer`."""
    return hasattr(estimator, "get_trained_onnx")


def check_trains_one_model(trainer: Any) -> None:
    """Raise a TypeError for an estimator of intervals or sets, which calibrates its models."""
    if not hasattr(trainer, "to_sklearn"):
        raise TypeError(
            f"{type(trainer).__name__} calibrates models, and is not one itself: pass a model of its "
            "attribute estimators_, such as estimators_[0]."
        )


def check_is_a_model(estimator: Any) -> None:
    """Raise a ConversionError for a nested trainer, and for a pipeline that does not end with a model."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
        if is_idle(estimator):
            raise ConversionError(
                f"The pipeline ends with {estimator!r}, which is not a model: remove this step, or replace "
                "it by a model."
            )
    if is_trainer(estimator):
        raise ConversionError(
            f"{type(estimator).__name__} is not a model but trains one: pass its attribute onnx_, the "
            "trained model, or its parameter estimator. To continue training, call its partial_fit, or fit "
            "with warm_start=True."
        )


def target_tags(estimator: Any) -> TargetTags:
    """Return the corrected target tags of an estimator.

    Pipelines do not have all tags of their last step, and ``MLPRegressor`` lacks the tag ``multi_output``.
    """
    core = last_step(estimator)
    if core is None or not hasattr(core, "__sklearn_tags__"):
        core = estimator
    tags = copy.copy(get_tags(core).target_tags)
    tags.multi_output |= definition_or_default(core).several_outputs
    return tags


def last_step(estimator: Any) -> Any:
    """Return the last estimator of nested pipelines, without idle steps: the model that predicts."""
    while isinstance(estimator, Pipeline):
        steps = working_steps(estimator)
        estimator = steps[-1][1] if steps else None
    return estimator


def check_feature_names(estimator: Any, X: Any) -> None:
    """Raise scikit-learn's error if X does not have the columns of a fitted estimator in the same order."""
    first = estimator
    while isinstance(first, Pipeline):
        first = next((step for _, step in working_steps(first)), None)
    expected, names = getattr(first, "feature_names_in_", None), _get_feature_names(X)
    if expected is None or names is None or np.array_equal(expected, names):
        return
    core = unwrapped(estimator)
    if selected_names(core) is not None:
        return
    if isinstance(core, Pipeline):
        with suppress(Exception):  # a function transformer may select columns by name
            outcome(core, _safe_indexing(X, np.array([0])))
            return
    _check_feature_names(first, X, reset=False)


def outcome(estimator: Any, X: Any) -> Any:
    """Return the output of ``predict``, ``transform`` or ``score_samples`` of a fitted estimator."""
    methods = [name for name in ("predict", "transform", "score_samples") if hasattr(estimator, name)]
    with quiet():
        return getattr(estimator, [*methods, "predict"][0])(X)
