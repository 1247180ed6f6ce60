"""Make a differentiable function of a model."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from ..exceptions import ConversionError, GradientError
from ..preprocessing.estimator_checks import is_trainer, last_step
from ..runtime.errors import runtime_errors
from .function import DifferentiableFunction
from .outputs import with_output
from .smooth_trees import smoothed
from .sources import open_density, open_source, open_transformation

__all__ = ["differentiable"]


@runtime_errors()
def differentiable(
    model: Any,
    output: str = "predict",
    wrt: str = "X",
    *,
    X: Any = None,
    dtype: Any = None,
    smooth: Any = None,
) -> DifferentiableFunction:
    """Return a fitted model as a function with gradients.

    Parameters
    ----------
    model : estimator, onnx.ModelProto, bytes, str or os.PathLike
        Fitted scikit-learn estimator or pipeline, fitted estimator of ortlearn, or ONNX file. It need not
        have been trained with ortlearn, and is not changed.
    output : str, default="predict"
        Method: ``"predict"`` of a regressor, ``"predict_proba"``, ``"predict_log_proba"``,
        ``"decision_function"``, ``"transform"`` or ``"score_samples"``; ``"raw_score"`` for the scores before
        a sigmoid, a softmax or an exponential; or the name of an output of an ONNX file. Probabilities of
        several labels, which scikit-learn returns as a list of arrays, are columns of one array.
    wrt : {"X", "transformed"}, default="X"
        ``"transformed"`` differentiates with respect to the columns that the steps which stay in scikit-learn
        compute; X is still the argument of the function.
    X : array-like or frame of shape (n_samples, n_features), default=None
        Some samples, from which the types of columns are read; required if columns contain text, or steps
        stay in scikit-learn.
    dtype : {numpy.float32, numpy.float64}, default=None
        Type of the graph; float64 for a scikit-learn estimator, otherwise the type of the graph.
    smooth : float or array-like of shape (n_features,), default=None
        Width of smoothed thresholds, in units of the features: a sample goes right in a node of a tree with
        probability ``sigmoid((x - threshold) / smooth)``, and the values of leaves are averaged. After steps
        that do more than scale columns, such as PCA, in units of the columns that the trees read.

    Returns
    -------
    DifferentiableFunction
        Function.

    Raises
    ------
    ConversionError
        If the model cannot be written as a graph, or steps stay in scikit-learn and ``wrt="X"``.
    GradientError
        If the output is piecewise constant; the message says what to use instead.
    ValueError
        If the model has no such output.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from ortlearn.functions import differentiable
    >>> model = LogisticRegression().fit([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], [0, 1, 1])
    >>> f = differentiable(model, "decision_function")
    >>> f([[0.5, 0.5]]).shape, bool((f.gradient([[0.5, 0.5]]) == model.coef_).all())
    ((1,), True)
    """
    if wrt not in ("X", "transformed"):
        raise ValueError(f"wrt={wrt!r} must be 'X' or 'transformed'.")
    source = open_source(model, X, dtype)
    scores = source.scores
    if source.estimator is not None and scores is not None and not is_trainer(model):
        last = last_step(model) or model
        is_density = output == "score_samples" and hasattr(last, "get_precision") and hasattr(last, "mean_")
        if output == "transform" and hasattr(model, "predict") and not scores.transformed:
            with suppress(ConversionError, AttributeError):  # of predictors that are no step of a graph
                source = open_transformation(source, X, dtype)
        elif is_density and scores.likelihood is None:
            source = open_density(source, X, dtype)
    if source.sklearn_steps is not None and wrt == "X":
        names = [f"{name!r} ({type(step).__name__})" for name, step in source.sklearn_steps.steps]
        raise GradientError(
            f"The steps {', '.join(names)} stay in scikit-learn and have no gradient: pass wrt='transformed' "
            "to differentiate with respect to the columns that they compute."
        )
    if smooth is not None:
        source = smoothed(source, smooth)
    return DifferentiableFunction(source, with_output(source, output), output)
