"""Conditions of the methods that an estimator has: those that mean something for the model it wraps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sklearn.utils import get_tags

from .. import conversion
from .fitted_estimator import is_final

if TYPE_CHECKING:
    from ..models import Scores

__all__ = ["has_decisions", "has_densities", "has_probabilities", "predicts", "wraps"]


def _type(estimator: Any) -> str | None:
    fitted = estimator._fitted
    if is_final(fitted):  # tags cost more than a prediction
        return fitted.problem.estimator_type
    return get_tags(estimator).estimator_type


def _head(estimator: Any) -> Scores | None:
    """Return the scores of a graph; None before the fit, and for a graph with its own loss."""
    fitted = estimator._fitted
    return fitted.problem.trainable.head if is_final(fitted) else None


def has_decisions(estimator: Any) -> bool:
    """Return whether there are scores to decide by; that a graph has none is known once it is converted."""
    head = _head(estimator)
    if head is not None and not head.has_decisions:
        raise AttributeError("The graph of this model has no tensor of scikit-learn's decision_function.")
    return _type(estimator) in ("classifier", "outlier_detector")


def has_probabilities(estimator: Any) -> bool:
    """Return whether the wrapped model has probabilities."""
    if _type(estimator) not in ("classifier", "density_estimator"):
        raise AttributeError("predict_proba is for classifiers and mixtures; this model is neither.")
    head = _head(estimator)
    if head is not None and head.probabilities is None:
        raise AttributeError("The graph of this model has no tensor of scikit-learn's predict_proba.")
    wrapped = estimator.estimator
    return conversion.is_onnx_source(wrapped) or hasattr(wrapped, "predict_proba")


def predicts(estimator: Any) -> bool:
    """Return whether there is something to predict: a transformer only transforms, a density only scores."""
    wrapped = estimator.estimator
    if conversion.is_onnx_source(wrapped) or hasattr(wrapped, "predict"):
        return True
    return not any(hasattr(wrapped, method) for method in ("transform", "score_samples"))


def wraps(*methods: str) -> Callable[[Any], bool]:
    """Return the condition that a scikit-learn model with some methods is wrapped."""

    def condition(estimator: Any) -> bool:
        wrapped = estimator.estimator
        return not conversion.is_onnx_source(wrapped) and all(hasattr(wrapped, name) for name in methods)

    return condition


def has_densities(estimator: Any) -> bool:
    """Return whether the wrapped model is a density or an outlier detector that scores samples."""
    wrapped = estimator.estimator
    known = _type(estimator) in ("density_estimator", "outlier_detector")
    only = not any(hasattr(wrapped, method) for method in ("predict", "transform"))
    return (known or only) and hasattr(wrapped, "score_samples")
