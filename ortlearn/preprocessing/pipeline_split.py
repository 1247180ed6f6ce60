"""Split pipelines into steps that run in scikit-learn, since they do not convert to ONNX, and the rest."""

import copy
from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline

from ..exceptions import ConversionError, FallbackWarning, warn_user
from ..models import unwrapped, write_model
from ..models.registry import doubtful_part, inner_part, needs_float64
from ..models.transformations.pipelines import working_steps
from ..models.written_model import TextOutputError
from ..quiet import quiet
from .comparison import Run, difference, probe_samples
from .initial_fit import untouched
from .rounding import has_wide_numbers, rounded_columns, title_of_columns
from .schema import InputSchema, input_schema, matrix_schema
from .skl2onnx_steps import append_converted

Steps = list[tuple[str, Any]]


class SklearnSteps(Pipeline):
    """Fitted steps that run in scikit-learn before the graph."""

    def __sklearn_is_fitted__(self) -> bool:
        return True


class Split(NamedTuple):
    """A fitted estimator, split into steps in scikit-learn and a graph."""

    estimator: Any  # to convert to a graph
    schema: InputSchema  # inputs of the graph
    sklearn_steps: Pipeline | None = None  # fitted steps that run in scikit-learn


class Fault(NamedTuple):
    """Reason why steps run in scikit-learn, and the class that causes it, if known."""

    reason: str
    part: str = ""


def split_pipeline(
    estimator: Any,
    X: Any = None,
    *,
    n_features: int | None = None,
    dtype: Any = np.float32,
    run: Run | None = None,
    allow_float64: bool = True,
) -> Split:
    """Split a fitted pipeline after the last step whose graph is missing or differs from scikit-learn."""
    # Without samples, the graph takes a matrix of n_features columns. With allow_float64, samples are float64
    # before a float32 model if X is and trees compare it, or if float32 rounds away significant digits of X.
    if X is None:
        return Split(estimator, matrix_schema(n_features, dtype))
    steps = _flat_steps(estimator)
    allow_float64 = allow_float64 and np.dtype(dtype) == np.float32
    compared = allow_float64 and _compared(estimator, X)
    if len(steps) == 1:
        return Split(estimator, input_schema(X, estimator, np.float64 if compared else dtype))
    rounded = _rounded(steps, X) if allow_float64 else []
    steps_dtype = np.dtype(np.float64 if rounded or compared else dtype)
    trusted = all(doubtful_part(step) is None for _, step in steps[:-1])
    probe = None if trusted else probe_samples(X)
    fault = None if trusted else _fault_of(steps[:-1], X, probe, steps_dtype, run)
    if fault is not None and compared and not rounded:  # float32 may convert
        steps_dtype, fault = np.dtype(dtype), _fault_of(steps[:-1], X, probe, dtype, run)
    if fault is None:
        return Split(estimator, input_schema(X, estimator, steps_dtype))
    if rounded:
        columns = title_of_columns(rounded)
        reason = f"float32 rounds away digits of {columns}, and the steps up to it do not convert to float64"
        position, fault = len(steps) - 1, Fault(reason, fault.part)
    else:
        position, fault = _last_fault(steps[:-1], probe, dtype, run, fault)
    split = _split_at(position, estimator, steps, X, probe, dtype)
    warn_user(_message(steps[position - 1], fault, split.schema), FallbackWarning)
    return split


def _split_at(position: int, estimator: Any, steps: Steps, X: Any, probe: Any, dtype: Any) -> Split:
    """Return an estimator split at a position of its steps."""
    sklearn_steps, left = SklearnSteps(steps[:position]), steps[position:]
    some = _transform(sklearn_steps, probe)
    if not hasattr(some, "dtype"):  # a few samples of a frame may lack types of values
        some = _transform(sklearn_steps, X)
    rest = rest_of(estimator, sklearn_steps)
    if np.dtype(dtype) == np.float32 and (_compared(rest, some) or (len(left) > 1 and _rounded(left, some))):
        dtype = np.float64
    return Split(rest, input_schema(some, rest, dtype), sklearn_steps)


def _compared(estimator: Any, X: Any) -> bool:
    """Return whether trees compare samples that scikit-learn computes in float64."""
    return needs_float64(estimator) and has_wide_numbers(X)


def _rounded(steps: Steps, X: Any) -> list[Hashable]:
    """Return the columns of X that lose significant digits in float32."""
    try:
        return rounded_columns(X, input_schema(X, SklearnSteps(steps[:-1]), np.float32))
    except ConversionError:
        return []


def _flat_steps(estimator: Any) -> Steps:
    """Return the steps that are not idle, including those of a nested pipeline at the end."""
    estimator = unwrapped(estimator)
    if not isinstance(estimator, Pipeline):
        return [("", estimator)]
    steps = working_steps(estimator) or [estimator.steps[-1]]
    name, last = steps.pop()
    inner = _flat_steps(last)
    if len(inner) == 1:
        return [*steps, (name, inner[0][1])]
    taken = {key for key, _ in steps}
    return [*steps, *((f"{name}__{key}" if key in taken else key, step) for key, step in inner)]


def rest_of(estimator: Any, sklearn_steps: Pipeline | None) -> Any:
    """Return a shallow copy of a fitted estimator without the steps that run in scikit-learn."""
    return estimator if sklearn_steps is None else _without(estimator, len(sklearn_steps.steps))


def _without(estimator: Any, count: int) -> Any:
    """Return an estimator, in the same wrappers, without its first steps."""
    inner = inner_part(estimator)
    if inner is not None:
        name, part = inner
        wrapper = copy.copy(estimator)
        setattr(wrapper, name, _without(part, count))
        for known in ("n_features_in_", "feature_names_in_"):  # refer to X
            vars(wrapper).pop(known, None)
        return wrapper
    steps = working_steps(estimator)
    return Pipeline(steps[count:]) if count < len(steps) else _without(steps[-1][1], count - len(steps) + 1)


def _fault_of(steps: Steps, X: Any, probe: Any, dtype: Any, run: Run | None) -> Fault | None:
    """Return the fault in the conversion of transformers, None without one."""
    transformer = SklearnSteps(steps)
    try:
        schema = input_schema(X, transformer, dtype)
        options: Any = {"columns": schema.input_of_column(), "undefined": append_converted}
        graph = write_model(transformer, schema.types(), dtype, **options).model
    except TextOutputError:  # later steps read the text
        return None
    except ConversionError as error:
        cause, reason = error.__cause__, str(error).rstrip(".")
        if type(cause).__name__ in ("MissingConverter", "MissingShapeCalculator"):
            reason = "neither ortlearn nor skl2onnx converts it to ONNX"
        elif cause is not None:
            message = str(cause).splitlines()[0].partition(". ")[0].rstrip(".")
            reason = f"skl2onnx cannot convert it ({message})"
        return Fault(reason, error.part)
    other = None if run is None else difference(transformer, graph, schema, probe, run)
    return None if other is None else Fault(other)


def _message(step: tuple[str, Any], fault: Fault, schema: InputSchema) -> str:
    """Return the message of the warning about a step that runs in scikit-learn."""
    name, kind = step[0], type(step[1]).__name__
    part = fault.part or type(doubtful_part(step[1]) or step[1]).__name__
    inside = "" if part == kind else f", because of {part} in it"
    return (
        f"Step {name!r} ({kind}) stays in scikit-learn{inside}: {fault.reason}. It runs once before "
        "training and before every prediction, and the trained ONNX model takes its "
        f"{schema.n_features} columns. For an ONNX model that takes the columns of X, replace {part} by a "
        f"step that converts, declare a model definition of {part} in the entry-point group "
        "'ortlearn.models', or register a converter with skl2onnx.update_registered_converter."
    )


def _last_fault(steps: Steps, probe: Any, dtype: Any, run: Run | None, fault: Fault) -> tuple[int, Fault]:
    """Return the number of steps up to the last faulty step, and its fault."""
    inputs = [probe]
    for step in steps[:-1]:
        inputs.append(_transform(SklearnSteps([step]), inputs[-1]))
    for index in range(len(steps) - 1, -1, -1):
        if doubtful_part(steps[index][1]) is None:
            continue
        found = _fault_of([steps[index]], inputs[index], inputs[index], dtype, run)
        if found is not None:
            return index + 1, found
    return len(steps), fault  # only their combination does not convert


def _transform(steps: Pipeline, X: Any) -> Any:
    with quiet():
        return steps.transform(*untouched(steps, X))
