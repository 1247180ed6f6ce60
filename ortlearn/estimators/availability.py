"""Conditions under which an estimator has a method, depending on the wrapped model."""

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
    if is_final(fitted):  # computing tags takes longer than a prediction
        return fitted.problem.estimator_type
    return get_tags(estimator).estimator_type


def _scores(estimator: Any) -> Scores | None:
    """Return the scores of a graph; None before ``fit`` and for a graph with its own loss."""
    fitted = estimator._fitted
    return fitted.problem.trainable.scores if is_final(fitted) else None


def _wrapped(estimator: Any) -> Any:
    """Return the wrapped model, fitted if possible: some have methods only then."""
    fitted = estimator._fitted
    source = fitted.problem.source if is_final(fitted) else None
    return estimator.estimator if source is None else source


def has_decisions(estimator: Any) -> bool:
    """Return whether ``decision_function`` is available; a graph is examined only after ``fit``."""
    scores = _scores(estimator)
    if scores is not None and not scores.has_decisions:
        raise AttributeError(
            "decision_function is not available: the graph of this model does not compute it."
        )
    return _type(estimator) in ("classifier", "outlier_detector")


def has_probabilities(estimator: Any) -> bool:
    """Return whether the wrapped model has probabilities."""
    if _type(estimator) not in ("classifier", "density_estimator"):
        raise AttributeError(
            "predict_proba applies to classifiers and mixtures only, and this model is neither."
        )
    scores = _scores(estimator)
    if scores is not None and scores.probabilities is None:
        raise AttributeError("predict_proba is not available: the graph of this model does not compute it.")
    wrapped = _wrapped(estimator)
    return conversion.is_onnx_source(wrapped) or hasattr(wrapped, "predict_proba")


def predicts(estimator: Any) -> bool:
    """Return whether ``predict`` is available; transformers and densities may lack it."""
    wrapped = _wrapped(estimator)
    if conversion.is_onnx_source(wrapped) or hasattr(wrapped, "predict"):
        return True
    return not any(hasattr(wrapped, method) for method in ("transform", "score_samples"))


def wraps(*methods: str) -> Callable[[Any], bool]:
    """Return the condition that the wrapped scikit-learn model has all of these methods."""

    def condition(estimator: Any) -> bool:
        wrapped = _wrapped(estimator)
        return not conversion.is_onnx_source(wrapped) and all(hasattr(wrapped, name) for name in methods)

    return condition


def has_densities(estimator: Any) -> bool:
    """Return whether the wrapped model is a density or an outlier detector with ``score_samples``."""
    wrapped = _wrapped(estimator)
    known = _type(estimator) in ("density_estimator", "outlier_detector")
    only = not any(hasattr(wrapped, method) for method in ("predict", "transform"))
    return (known or only) and hasattr(wrapped, "score_samples")
