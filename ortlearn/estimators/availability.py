"""Which methods a trainer has: those that mean something for the model it wraps."""

from __future__ import annotations

from typing import Any

from sklearn.utils import get_tags

from .. import conversion

__all__ = [
    "has_decisions",
    "has_densities",
    "has_probabilities",
    "names_features",
    "predicts",
    "predicts_own_rows",
    "transforms",
]


def _type(owner: Any) -> str | None:
    kind = owner.__dict__.get("_kind", "")  # known once fitted; tags cost more than a prediction
    return get_tags(owner).estimator_type if kind == "" else kind


def has_decisions(owner: Any) -> bool:
    """Tell whether there are scores to decide by; that the graph has none is known once it is converted."""
    problem = owner.__dict__.get("_problem")
    head = None if problem is None else problem.trainable.head
    if head is not None and not head.has_decisions:
        raise AttributeError("The graph of this model has no tensor of scikit-learn's decision_function.")
    return _type(owner) in ("classifier", "outlier_detector")


def has_probabilities(owner: Any) -> bool:
    """Tell whether probabilities mean something: the wrapped classifier has them."""
    if _type(owner) not in ("classifier", "density_estimator"):
        raise AttributeError("predict_proba is for classifiers and mixtures; this model is neither.")
    return conversion.is_onnx_source(owner.estimator) or hasattr(owner.estimator, "predict_proba")


def predicts(owner: Any) -> bool:
    """Tell whether there is something to predict: a transformer only transforms."""
    wrapped = owner.estimator
    return (
        conversion.is_onnx_source(wrapped) or hasattr(wrapped, "predict") or not hasattr(wrapped, "transform")
    )


def predicts_own_rows(owner: Any) -> bool:
    """Tell whether the wrapped model is a clusterer, a mixture or an outlier detector."""
    return predicts(owner) and hasattr(owner.estimator, "fit_predict")


def transforms(owner: Any) -> bool:
    """Tell whether the wrapped model transforms."""
    return not conversion.is_onnx_source(owner.estimator) and hasattr(owner.estimator, "transform")


def names_features(owner: Any) -> bool:
    """Tell whether the wrapped model transforms, and names what it gives."""
    return transforms(owner) and hasattr(owner.estimator, "get_feature_names_out")


def has_densities(owner: Any) -> bool:
    """Tell whether the wrapped model is a mixture or an outlier detector that scores rows."""
    known = _type(owner) in ("density_estimator", "outlier_detector")
    return known and hasattr(owner.estimator, "score_samples")
