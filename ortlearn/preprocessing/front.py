"""Split pipelines after steps that stay in scikit-learn, because they cannot be written as ONNX."""

import copy
from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline

from ..exceptions import ConversionError, FallbackWarning, warn_user
from ..models import unwrapped, write_model
from ..models.pipelines import working_steps
from ..models.registry import doubtful_part, inner_part
from ..models.written_model import TextOutputError
from ..quiet import quiet
from .comparison import Run, difference, probe_rows
from .fitting import untouched
from .rounding import rounded_columns, title_of_columns
from .schema import InputSchema, input_schema, matrix_schema
from .skl2onnx_steps import append_converted

Steps = list[tuple[str, Any]]


class FrontPipeline(Pipeline):
    """Fitted steps before the graph."""

    def __sklearn_is_fitted__(self) -> bool:
        return True


class Split(NamedTuple):
    """A fitted estimator, split where its graph begins."""

    estimator: Any  # written as a graph
    schema: InputSchema  # of the graph
    front: Pipeline | None = None  # fitted steps that run in scikit-learn before it


class Fault(NamedTuple):
    """Why steps stay in scikit-learn, and the class that causes it, if known."""

    reason: str
    part: str = ""


def split_pipeline(
    estimator: Any,
    X: Any = None,
    *,
    n_features: int | None = None,
    dtype: Any = np.float32,
    run: Run | None = None,
    wide_front: bool = True,
) -> Split:
    """Split a fitted pipeline after the last step whose graph is missing or differs from scikit-learn."""
    # Without samples the graph takes a matrix of n_features columns. With wide_front, steps before a float32
    # model are in float64 if float32 rounds away digits of X that matter.
    if X is None:
        return Split(estimator, matrix_schema(n_features, dtype))
    steps = _flat_steps(estimator)
    if len(steps) == 1:
        return Split(estimator, input_schema(X, estimator, dtype))
    wide_front = wide_front and np.dtype(dtype) == np.float32
    lost = _rounded(steps, X) if wide_front else []
    front_dtype = np.dtype(np.float64 if lost else dtype)
    trusted = all(doubtful_part(step) is None for _, step in steps[:-1])
    probe = None if trusted else probe_rows(X)
    fault = None if trusted else _fault_of(steps[:-1], X, probe, front_dtype, run)
    if fault is None:
        return Split(estimator, input_schema(X, estimator, front_dtype))
    if lost:
        reason = f"float32 rounds away digits of {title_of_columns(lost)}, and the steps up to it do not "
        position, fault = len(steps) - 1, Fault(f"{reason}convert to float64", fault.part)
    else:
        position, fault = _last_fault(steps[:-1], probe, dtype, run, fault)
    front, left = FrontPipeline(steps[:position]), steps[position:]
    some = _transform(front, probe)
    if not hasattr(some, "dtype"):  # few samples of a frame may lack kinds of values
        some = _transform(front, X)
    wide = np.dtype(dtype) == np.float32 and len(left) > 1 and _rounded(left, some)
    rest = rest_of(estimator, front)
    schema = input_schema(some, rest, np.float64 if wide else dtype)
    warn_user(_message(steps[position - 1], fault, schema), FallbackWarning)
    return Split(rest, schema, front)


def _rounded(steps: Steps, X: Any) -> list[Hashable]:
    """Return the columns of X that lose digits in float32."""
    try:
        return rounded_columns(X, input_schema(X, FrontPipeline(steps[:-1]), np.float32))
    except ConversionError:
        return []


def _flat_steps(estimator: Any) -> Steps:
    """Return the steps that are not idle, including those of an inner pipeline at the end."""
    estimator = unwrapped(estimator)
    if not isinstance(estimator, Pipeline):
        return [("", estimator)]
    steps = working_steps(estimator) or [estimator.steps[-1]]
    name, last = steps.pop()
    inner = _flat_steps(last)
    if len(inner) == 1:
        return [*steps, (name, inner[0][1])]
    taken = {own for own, _ in steps}
    return [*steps, *((f"{name}__{own}" if own in taken else own, step) for own, step in inner)]


def rest_of(estimator: Any, front: Pipeline | None) -> Any:
    """Return a fitted estimator without the steps that run in scikit-learn, a shallow copy."""
    return estimator if front is None else _without(estimator, len(front.steps))


def _without(estimator: Any, count: int) -> Any:
    """Return an estimator without its first steps, in the same wrappers."""
    inner = inner_part(estimator)
    if inner is not None:
        name, part = inner
        wrapper = copy.copy(estimator)
        setattr(wrapper, name, _without(part, count))
        for known in ("n_features_in_", "feature_names_in_"):  # of X
            vars(wrapper).pop(known, None)
        return wrapper
    steps = working_steps(estimator)
    return Pipeline(steps[count:]) if count < len(steps) else _without(steps[-1][1], count - len(steps) + 1)


def _fault_of(steps: Steps, X: Any, probe: Any, dtype: Any, run: Run | None) -> Fault | None:
    """Return the fault of the graph of transformers, None without one."""
    transformer = FrontPipeline(steps)
    try:
        schema = input_schema(X, transformer, dtype)
        options: Any = {"columns": schema.input_of_column(), "undefined": append_converted}
        graph = write_model(transformer, schema.types(), dtype, **options).model
    except TextOutputError:  # read by the steps after it
        return None
    except ConversionError as error:
        cause, reason = error.__cause__, str(error).rstrip(".")
        if type(cause).__name__ in ("MissingConverter", "MissingShapeCalculator"):
            reason = "neither ortlearn nor skl2onnx has a form of it in ONNX"
        elif cause is not None:
            said = str(cause).splitlines()[0].partition(". ")[0].rstrip(".")
            reason = f"skl2onnx cannot convert it ({said})"
        return Fault(reason, error.part)
    other = None if run is None else difference(transformer, graph, schema, probe, run)
    return None if other is None else Fault(other)


def _message(step: tuple[str, Any], fault: Fault, schema: InputSchema) -> str:
    """Return the message of the warning: which step stays in scikit-learn, why, and what to do."""
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
    """Return the number of steps up to the last faulty one, and its fault."""
    inputs = [probe]
    for step in steps[:-1]:
        inputs.append(_transform(FrontPipeline([step]), inputs[-1]))
    for index in range(len(steps) - 1, -1, -1):
        if doubtful_part(steps[index][1]) is None:
            continue
        own = _fault_of([steps[index]], inputs[index], inputs[index], dtype, run)
        if own is not None:
            return index + 1, own
    return len(steps), fault  # each step converts, but not all of them together


def _transform(front: Pipeline, X: Any) -> Any:
    with quiet():
        return front.transform(*untouched(front, X))
