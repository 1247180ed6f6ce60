"""Unfitted boosting models grow their trees on the loss of the configuration."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing

from ..losses import BaseLoss
from ..models.capabilities import BoostedStages, capability_of
from ..onnx_files.loading import is_onnx_source
from ..preprocessing.estimator_checks import last_step
from ..preprocessing.initial_fit import after_steps, fit_clone, is_fitted
from ..targets.class_weights import class_weight_tables, weights_with_classes
from .automatic import is_same_loss
from .configuration import Configuration
from .objectives import check_task

__all__ = ["boosting_of", "fit_stages", "is_grown"]

#: Folds whose left-out samples determine the constant that is added to scores, and fewest samples for them.
FOLDS, FEWEST_SAMPLES = 3, 30

#: A context of a fit, for an estimator, its labels and their weights.
Within = Callable[[Any, Any, Any], AbstractContextManager[None]]


def boosting_of(configuration: Configuration) -> BoostedStages | None:
    """Return how the boosting at the end of an unfitted model grows on any loss; None for other models."""
    source, loss = configuration.source, configuration.loss
    if is_onnx_source(source) or is_fitted(source) or configuration.conversion.weights_to_train is not None:
        return None
    if loss is not None and loss.in_python:
        return None
    model = last_step(source)
    found = capability_of(model, BoostedStages)
    return found if found is not None and found.applies(model) else None


def is_grown(configuration: Configuration, last: Any) -> bool:
    """Return whether a fit is complete once parts are trained or trees grown: no more training is asked for.

    ``last`` is the model that a warm start continues, or None.
    """
    if last is not None or configuration.names_training:
        return False
    return configuration.is_trained or boosting_of(configuration) is not None


def fit_stages(
    configuration: Configuration,
    boosted: BoostedStages,
    X: Any,
    y: Any,
    sample_weight: Any,
    random_state: np.random.RandomState | None,
    classes: Any,
) -> Any:
    """Return a clone of the model of a configuration, fitted by its own fit or grown on another loss.

    Scores of training samples are too close to their labels, so that a quantile of them is not one of other
    samples. A regression that is grown is therefore shifted by the constant with the lowest loss of samples
    that a third of the folds leaves out, of models grown on the others.
    """
    source, loss = configuration.source, configuration.loss
    weights = _class_weighted(configuration, y, sample_weight, classes)
    if loss is None or is_same_loss(loss, boosted.own_loss(last_step(source))):
        options: Any = {"random_state": random_state, "classes": classes}
        return fit_clone(source, X, y, sample_weight=weights, **options)
    within = _stages(boosted, loss)
    options = {"random_state": random_state, "classes": classes, "within": within}
    fitted = fit_clone(source, X, y, sample_weight=weights, **options)
    if is_classifier(fitted) or np.shape(y)[0] < FEWEST_SAMPLES:
        return fitted
    from sklearn.model_selection import KFold  # slow import

    from ..boosting.stages import StageObjective

    labels = np.reshape(y, (np.shape(y)[0], -1)).astype(np.float64)
    scores = np.zeros(labels.shape)
    for kept, others in KFold(FOLDS, shuffle=True, random_state=random_state).split(labels):
        parts = (None if own is None else _safe_indexing(own, kept) for own in (X, y, weights))
        part, labels_of_part, weights_of_part = parts
        model = fit_clone(source, part, labels_of_part, sample_weight=weights_of_part, **options)
        samples = after_steps(model, _safe_indexing(X, others))
        scores[others] = np.reshape(boosted.scores_of(last_step(model), samples), (len(others), -1))
    share = np.ones(len(labels)) if weights is None else weights
    shifts = [
        StageObjective.of(loss, own, weights, False).leaf_value(own, scores[:, [output]], share)
        for output, own in enumerate(labels.T)
    ]
    boosted.shift(last_step(fitted), np.squeeze(shifts))
    return fitted


def _stages(boosted: BoostedStages, loss: BaseLoss) -> Within:
    """Return the context of a fit that grows trees on a loss."""

    def within(estimator: Any, y: Any, sample_weight: Any) -> AbstractContextManager[None]:
        from ..boosting.stages import StageObjective, StageObjectives

        several, classifies = np.ndim(y) > 1 and np.shape(y)[1] > 1, is_classifier(estimator)
        if several and not boosted.several:
            name, part = type(estimator).__name__, "Classifier" if classifies else "Regressor"
            raise ValueError(f"With this loss, {name} takes one output: wrap it in MultiOutput{part}.")
        task = "multilabel" if several else "classification"
        check_task(loss, task if classifies else "regression")
        labels = np.asarray(y) if several else np.ravel(y)
        objective: Any = StageObjectives if several else StageObjective.of
        return boosted.grows(estimator, objective(loss, labels, sample_weight, classifies))

    return within


def _class_weighted(configuration: Configuration, y: Any, sample_weight: Any, classes: Any) -> Any:
    """Return sample weights times the class weights of a configuration, which a fit does not know."""
    given = configuration.class_weight
    if given is None or (isinstance(given, str) and given == "auto"):
        return sample_weight
    kind = "classifier" if is_classifier(configuration.source) else "regressor"
    return weights_with_classes(class_weight_tables(given, kind, y, classes, sample_weight), y, sample_weight)
