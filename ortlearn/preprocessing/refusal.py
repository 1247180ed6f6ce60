"""What has a ``fit`` and yet is no model to train."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline

from ..exceptions import ConversionError
from .readers import IDLE_STEPS

__all__ = ["check_is_a_model", "is_trainer"]


def is_trainer(estimator: Any) -> bool:
    """Tell whether an object is one that trains models, such as :class:`~ortlearn.OrtGradientOptimizer`."""
    return hasattr(estimator, "get_trained_onnx")


def check_is_a_model(estimator: Any) -> None:
    """Raise an error for a trainer in a trainer, and for a pipeline without a model at its end.

    Parameters
    ----------
    estimator : estimator
        Estimator or pipeline.

    Raises
    ------
    ConversionError
        If it is one of them.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from ortlearn.preprocessing.refusal import check_is_a_model
    >>> check_is_a_model(make_pipeline(StandardScaler(), "passthrough"))
    Traceback (most recent call last):
    ...
    ortlearn.exceptions.ConversionError: The pipeline ends with 'passthrough', where nothing is trained...
    """
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
        if estimator in IDLE_STEPS:
            raise ConversionError(
                f"The pipeline ends with {estimator!r}, where nothing is trained: leave that step out, or "
                "put a model in its place."
            )
    if is_trainer(estimator):
        raise ConversionError(
            f"{type(estimator).__name__} trains models and is none itself: pass the model that it has "
            "trained, its attribute onnx_, or the one that it was given, its parameter estimator. To go on "
            "training, call its partial_fit, or fit with warm_start=True."
        )
