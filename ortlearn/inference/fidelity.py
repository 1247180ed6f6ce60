"""Whether the ONNX model and the scikit-learn estimator differ, and the precision that they need."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

from ..exceptions import FidelityWarning, PrecisionWarning, warn_user
from ..preprocessing.initial_fit import final_step
from ..preprocessing.rounding import LOST, rounded_columns, rounding, title_of_columns
from ..problem.configuration import Configuration, Runtime
from ..problem.input_validation import InputFeatures, read_samples
from ..problem.problem import Problem
from ..problem.samples import Samples, take
from ..quiet import quiet
from .running import Inference

__all__ = ["ROUNDED", "TOLERANCE", "WIDENED", "differences", "faithful", "loses_digits"]

#: Largest difference that is attributed to rounding.
TOLERANCE = 1e-3
#: Largest difference in float64, relative to that in float32, with which float64 is used.
NEARER = 0.1
#: Number of samples that are compared.
SAMPLES = 64
#: Fraction of samples whose classes may differ at a boundary.
TIES = 0.02
ROUNDED = f"float32 rounds y by more than {LOST:.1%} of its standard deviation."
ADVICE = (
    "Training and predictions use the ONNX model: compare both on your data. If float32 is the cause, such "
    "as for features equal to thresholds of trees or coefficients of support vectors above 1000, set "
    "dtype='float64'."
)
WIDENED = (
    "The model is therefore trained in float64 (dtype='auto'), and the trained ONNX model requires double "
    "(float64). Scaled features may make float32 precise enough."
)


class Fault(NamedTuple):
    """Why predictions are not those of the estimator, and what to do."""

    reason: str
    advice: str
    category: type[FidelityWarning]
    size: float = np.inf  # largest difference


def faithful(
    configuration: Configuration, problem: Problem, samples: Samples, features: InputFeatures, inputs: Any
) -> tuple[Problem, Any]:
    """Return a problem and its inputs, under ``dtype="auto"`` in float64 if float32 is not precise enough.

    Warn if float32 rounds X or y, or if predictions differ from scikit-learn.
    """
    runtime = configuration.runtime
    is_chosen = configuration.conversion.dtype == "auto" and problem.dtype == np.float32
    may_widen = is_chosen and problem.source is not None
    if may_widen and any(known.form.wide for known in problem.trainable.parameters.values()):
        problem, inputs = _in_float64(configuration, problem, samples, features)
    faults = _faults(problem, samples, inputs, runtime)
    if faults and may_widen and problem.dtype == np.float32:
        wide, others = _in_float64(configuration, problem, samples, features)
        remaining = _faults(wide, samples, others, runtime)
        if max((own.size for own in remaining), default=0.0) < NEARER * max(own.size for own in faults):
            warn_user(f"{faults[0].reason} {WIDENED}", PrecisionWarning)
            problem, inputs, faults = wide, others, remaining
    for fault in faults:
        warn_user(f"{fault.reason} {fault.advice}", fault.category)
    return problem, inputs


def _in_float64(
    configuration: Configuration, problem: Problem, samples: Samples, features: InputFeatures
) -> tuple[Problem, Any]:
    """Return the problem with the same fitted model in float64, and its inputs."""
    known = replace(configuration.in_type(np.float64), source=problem.source)
    wide = Problem.of(known, samples.X, samples.y, samples.sample_weight)
    return replace(wide, targets=problem.targets), read_samples(wide, samples.X, features)


def _faults(problem: Problem, samples: Samples, inputs: Any, runtime: Runtime) -> list[Fault]:
    steps, X = problem.trainable.entry.sklearn_steps, samples.X
    some = X if steps is None else steps.transform(take(X, _some_samples(inputs.shape[0])))
    found = _roundings(problem, some, samples.y)
    if problem.source is None or found:
        return found
    runner = Inference(problem, problem.trainable.model, runtime, fused=False)
    return differences(runner, problem.source, X, inputs, samples.y)


def _some_samples(n_samples: int) -> np.ndarray:
    """Return the indices of a few evenly spaced samples."""
    return np.unique(np.linspace(0, n_samples - 1, SAMPLES).astype(np.int64))


def differences(
    runner: Inference, estimator: BaseEstimator, X: Any, inputs: Any, y: Any = None
) -> list[Fault]:
    """Return whether a graph and the fitted estimator that it was converted from differ on a few samples.

    X is the input of the estimator, ``inputs`` that of the graph. Predictions of a regressor are compared
    relative to the standard deviation of y. Classes are compared if probabilities or decisions do not tell
    them apart, since a few samples at a boundary may differ.
    """
    chosen = _some_samples(inputs.shape[0])
    method = _method(runner, estimator)
    # With another link function, predictions differ on purpose.
    if method is None or not hasattr(estimator, method) or runner.problem.trainable.link != "identity":
        return []
    given, few = take(X, chosen), inputs[chosen]
    with quiet():  # the same warnings were shown before
        theirs = getattr(estimator, method)(given)
    apart = _differences(getattr(runner, method)(few), theirs, _spread(y) if method == "predict" else 0.0)
    if np.max(apart) <= TOLERANCE and method in ("predict_proba", "decision_function") and _is_tied(theirs):
        method = "predict"
        with quiet():
            labels = _differences(runner.predict(few), estimator.predict(given), 0.0)
        apart = labels if np.mean(labels) > TIES else apart
    if np.max(apart) <= TOLERANCE:
        return []
    largest = int(np.argmax(apart))
    text = _message(estimator, method, apart, chosen[largest])
    return [Fault(text, ADVICE, FidelityWarning, float(apart[largest]))]


def _is_tied(values: Any) -> bool:
    """Return whether several samples have equal probabilities, or decisions of zero."""
    if isinstance(values, list):
        return any(map(_is_tied, values))
    rows = np.sort(np.nan_to_num(np.asarray(values).reshape(len(values), -1)), axis=1)
    margins = rows[:, -1] - rows[:, -2] if rows.shape[1] > 1 else np.abs(rows[:, 0])
    return bool(np.mean(margins <= TOLERANCE) > TIES)


def _message(estimator: Any, method: str, difference: np.ndarray, number: int) -> str:
    many = int(np.sum(difference > TOLERANCE))
    last = final_step(estimator)
    return (
        f"The ONNX model of {type(last).__name__} differs from scikit-learn's {method} by up to "
        f"{difference.max():.3g}, at sample {number} ({many} of {len(difference)} compared samples differ by "
        f"more than {TOLERANCE})."
    )


def _method(runner: Inference, estimator: Any) -> str | None:
    """Return the method to compare: the most detailed one that both have."""
    scores = runner.problem.trainable.scores
    if scores is None:
        return None
    if scores.transformed is not None:
        return "transform"
    if scores.likelihood is not None:
        return "score_samples"
    if scores.probabilities is not None and hasattr(estimator, "predict_proba"):
        return "predict_proba"
    if scores.task != "regression" and scores.has_decisions and hasattr(estimator, "decision_function"):
        return "decision_function"  # labels of samples at the decision boundary may differ
    return "predict"


def _spread(y: Any) -> float:
    """Return the standard deviation of labels that are numbers, 0 for others."""
    if y is None or issparse(y) or np.asarray(y).dtype.kind not in "fiu":
        return 0.0
    values = np.asarray(y, dtype=np.float64)
    with np.errstate(over="ignore"):
        # The standard deviation of a constant column may be nonzero by rounding.
        deviations = np.where(np.ptp(values, axis=0) > 0, np.std(values, axis=0), 0.0)
    return float(np.max(deviations, initial=0.0))


def _differences(ours: Any, theirs: Any, scale: float) -> np.ndarray:
    """Return the difference of each sample: 0 or 1 for classes, relative to a scale for numbers."""
    if isinstance(theirs, list):
        return np.max([_differences(a, b, scale) for a, b in zip(ours, theirs, strict=True)], axis=0)
    theirs, ours = (found.toarray() if issparse(found) else np.asarray(found) for found in (theirs, ours))
    ours = ours.reshape(theirs.shape)
    if theirs.dtype.kind != "f":
        apart = (ours != theirs).astype(np.float64)
    else:
        scale = scale or max(1.0, float(np.max(np.abs(theirs), initial=0.0)))
        with np.errstate(invalid="ignore"):  # differences of infinities
            apart = np.nan_to_num(np.abs(ours - theirs) / scale, nan=np.inf)
        apart[(ours == theirs) | (np.isnan(ours) & np.isnan(theirs))] = 0.0
    return apart.reshape(len(apart), -1).max(axis=1)


def _roundings(problem: Problem, X: Any, y: Any) -> list[Fault]:
    """Return whether X or y lose significant digits in float32; warn of steps before in float64.

    X is the input of the graph before its conversion to float32.
    """
    if problem.dtype != np.float32:
        return []
    found, schema = [], problem.trainable.entry.schema
    lost = rounded_columns(X, schema)
    if lost and schema.float_dtype == np.float64:
        if problem.source is not None:
            inputs = [item.name for item in schema.inputs if item.dtype == np.float64]
            warn_user(_message_of_wide_inputs(title_of_columns(lost), inputs), PrecisionWarning)
    elif lost:
        reason = (
            f"float32, the input type of the ONNX model, rounds {title_of_columns(lost)} of X by more than "
            f"{LOST:.1%} of the standard deviation."
        )
        by_type = "" if problem.source is None else ", or set dtype='float64'"
        advice = (
            "Subtract an offset from such columns in float64, or put a scaler before the model in a pipeline"
            f"{by_type}."
        )
        found.append(Fault(reason, advice, PrecisionWarning))
    if problem.targets.classes is None and problem.needs_labels and loses_digits(y):
        reason = ROUNDED
        advice = "Subtract an offset from y in float64, or set dtype='float64'."
        found.append(Fault(reason, advice, PrecisionWarning))
    return found


def _message_of_wide_inputs(columns: str, inputs: list[str]) -> str:
    return (
        f"float32 rounds {columns} of X by more than {LOST:.1%} of the standard deviation. The steps before "
        "the last one are therefore computed in float64, and the trained ONNX model requires double "
        f"(float64) for {title_of_columns(inputs).replace('column', 'input', 1)}."
    )


def loses_digits(y: Any) -> bool:
    """Return whether labels lose significant digits in float32."""
    if y is None or issparse(y):
        return False
    values = np.asarray(y)
    if values.dtype.kind not in "fiu":
        return False
    columns = values.reshape(len(values), -1).T
    # Values that overflow are an error when labels are encoded.
    return any(LOST < rounding(column) < np.inf for column in columns)
