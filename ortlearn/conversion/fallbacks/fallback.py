"""Steps without an ONNX form, before the trained part of a pipeline, stay in scikit-learn."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from onnx import ModelProto
from sklearn.pipeline import Pipeline

from ...exceptions import ConversionError, FallbackWarning, warn_user
from ...quiet import quiet
from ..inputs.digits import rounded_columns, title_of_columns
from ..inputs.first_readers import IDLE_STEPS
from ..inputs.inputs import InputSchema, matrix_schema
from ..inputs.schemas import input_schema
from ..preparation.overwriting import untouched
from ..sklearn_converter import sklearn_to_onnx
from .culprits import find_culprit
from .faithfulness import Run, difference, probe_rows
from .two_types import join_in_float32

__all__ = ["Converted", "convert_with_fallback"]

Steps = list[tuple[str, Any]]


class FrontPipeline(Pipeline):
    """Fitted steps before the graph; they need not end with one that has fitted attributes."""

    def __sklearn_is_fitted__(self) -> bool:
        return True


@dataclass(frozen=True)
class Converted:
    """A fitted estimator as a graph, and what of it stays in scikit-learn.

    Attributes
    ----------
    model : onnx.ModelProto
        Graph of the estimator, from its inputs or from the result of ``front``.
    schema : InputSchema
        Inputs of the graph.
    estimator : estimator
        What the graph was converted from.
    preprocessing : onnx.ModelProto or None
        Graph of the steps before the last one alone.
    front : Pipeline or None
        Fitted steps that run in scikit-learn, before the graph.
    """

    model: ModelProto
    schema: InputSchema
    estimator: Any
    preprocessing: ModelProto | None = None
    front: Pipeline | None = None


def convert_with_fallback(
    estimator: Any,
    X: Any = None,
    *,
    n_features: int | None = None,
    dtype: Any = np.float32,
    run: Run | None = None,
    wide_front: bool = True,
) -> Converted:
    """Convert a fitted estimator, but for steps that scikit-learn must run itself.

    Parameters
    ----------
    estimator : estimator
        Fitted estimator or pipeline.
    X : array-like, sparse matrix or frame, default=None
        Rows to train on. Without any, the model takes a matrix of ``n_features`` columns, and every step
        must convert.
    n_features : int, default=None
        Number of columns where X is None.
    dtype : dtype, default=numpy.float32
        Floating-point type of the graph.
    run : callable, default=None
        Runs a graph; steps before the last one whose graph gives something else than they do are
        then left to scikit-learn, too.
    wide_front : bool, default=True
        Whether steps before the last one may be in float64, with inputs to match, where float32 rounds
        away digits of X that matter.

    Returns
    -------
    Converted
        Graph, inputs, and the steps before it.

    Raises
    ------
    ConversionError
        If the last step has no ONNX form, or any step where X is None.

    Warns
    -----
    FallbackWarning
        If steps stay in scikit-learn.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import SplineTransformer
    >>> from ortlearn.conversion.fallbacks.fallback import convert_with_fallback
    >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
    >>> model = make_pipeline(SplineTransformer(), Ridge()).fit(X, X.ravel())
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     converted = convert_with_fallback(model, X)
    >>> converted.front.steps[-1][0], converted.schema.n_features, caught[0].category.__name__
    ('splinetransformer', 7, 'FallbackWarning')
    """
    steps = flat_steps(estimator)
    if X is None:
        schema = matrix_schema(n_features, dtype)
        graph = sklearn_to_onnx(Pipeline(steps[:-1]), schema, dtype) if len(steps) > 1 else None
        return Converted(sklearn_to_onnx(estimator, schema, dtype), schema, estimator, graph)
    probe = probe_rows(X) if len(steps) > 1 else X
    may_be_wide = wide_front and np.dtype(dtype) == np.float32
    lost = _rounded(steps, X) if may_be_wide and len(steps) > 1 else []
    if lost:
        wide = _in_two_types(steps, X, probe, run)
        if wide is not None:
            return replace(wide, estimator=estimator)
        columns = title_of_columns(lost)
        fault = f"float32 rounds away digits of {columns}, and the steps up to it do not convert to float64"
        return _cut(steps, len(steps) - 1, fault, X, probe, dtype, run, may_be_wide)
    trial = _try(steps[:-1], X, probe, dtype, run)
    if trial.fault is None:
        assert trial.schema is not None
        schema = trial.schema if steps[:-1] else input_schema(X, estimator, dtype)
        return Converted(sklearn_to_onnx(estimator, schema, dtype), schema, estimator, trial.graph)
    return _split(steps, X, probe, dtype, run, trial.fault, may_be_wide)


def _rounded(steps: Steps, X: Any) -> list[Hashable]:
    """Return the columns of X that lose digits in float32, on their way to several steps."""
    try:
        return rounded_columns(X, input_schema(X, FrontPipeline(steps[:-1]), np.float32))
    except ConversionError:
        return []


def _in_two_types(steps: Steps, X: Any, probe: Any, run: Run | None) -> Converted | None:
    """Convert the steps before the last one in float64, the last one in float32; None where that fails."""
    trial = _try(steps[:-1], X, probe, np.float64, run)
    if trial.schema is None or trial.graph is None:
        return None
    try:
        model = join_in_float32(trial.graph, steps[-1][1])
    except ConversionError:
        return None
    return Converted(model, trial.schema, Pipeline(steps), trial.graph)


def flat_steps(estimator: Any) -> Steps:
    """Return the steps of a pipeline that do something, those of a pipeline at its end included."""
    if not isinstance(estimator, Pipeline):
        return [("", estimator)]
    steps = [step for step in estimator.steps if step[1] not in IDLE_STEPS] or [estimator.steps[-1]]
    name, last = steps.pop()
    inner = flat_steps(last)
    if len(inner) == 1:
        return [*steps, (name, inner[0][1])]
    taken = {own for own, _ in steps}
    return [*steps, *((f"{name}__{own}" if own in taken else own, step) for own, step in inner)]


@dataclass(frozen=True)
class _Trial:
    """What came of converting some steps."""

    schema: InputSchema | None = None
    graph: ModelProto | None = None
    fault: str | None = None


def _try(steps: Steps, X: Any, probe: Any, dtype: Any, run: Run | None) -> _Trial:
    """Convert transformers, and compare the graph's results with theirs."""
    if not steps:
        return _Trial(matrix_schema(None, dtype))
    transformer = FrontPipeline(steps)
    try:
        schema = input_schema(X, transformer, dtype)
        graph = sklearn_to_onnx(transformer, schema, dtype)
    except ConversionError as error:
        return _Trial(fault=_reason(error))
    if run is not None:
        gap = difference(transformer, graph, schema, probe, run)
        if gap is not None:
            return _Trial(fault=gap)
    return _Trial(schema, graph)


def _reason(error: ConversionError) -> str:
    """Say in a few words why a step does not convert."""
    cause = error.__cause__
    if cause is None:
        return str(error).rstrip(".")
    if type(cause).__name__ in ("MissingConverter", "MissingShapeCalculator"):
        return "skl2onnx has no converter for it"
    return f"skl2onnx cannot convert it ({str(cause).splitlines()[0].partition('. ')[0].rstrip('.')})"


def _split(
    steps: Steps, X: Any, probe: Any, dtype: Any, run: Run | None, fault: str, may_be_wide: bool
) -> Converted:
    """Cut a pipeline after the last step that has no faithful ONNX form, and convert the rest."""
    position, fault = _last_fault(steps[:-1], probe, dtype, run, fault)
    return _cut(steps, position, fault, X, probe, dtype, run, may_be_wide)


def _cut(
    steps: Steps,
    position: int,
    fault: str,
    X: Any,
    probe: Any,
    dtype: Any,
    run: Run | None,
    may_be_wide: bool,
) -> Converted:
    """Leave the steps before a position to scikit-learn, and convert the rest."""
    front, rest = FrontPipeline(steps[:position]), Pipeline(steps[position:])
    some = _transform(front, probe)
    if not hasattr(some, "dtype"):  # of a frame, few rows may not show every kind of value
        some = _transform(front, X)
    wide = may_be_wide and len(rest.steps) > 1 and _rounded(rest.steps, some)
    converted = _in_two_types(rest.steps, some, some, run) if wide else None
    if converted is None:
        schema = input_schema(some, rest, dtype)
        graph = sklearn_to_onnx(Pipeline(rest.steps[:-1]), schema, dtype) if len(rest.steps) > 1 else None
        converted = Converted(sklearn_to_onnx(rest, schema, dtype), schema, rest, graph)
    before = _transform(FrontPipeline(steps[: position - 1]), probe) if position > 1 else probe
    guilty, cause = find_culprit(
        steps[position - 1], before, fault, lambda inner, rows: _try([inner], rows, rows, dtype, run).fault
    )
    warn_user(_message(steps[position - 1], guilty, cause, converted.schema), FallbackWarning)
    return replace(converted, front=front)


def _message(step: tuple[str, Any], guilty: tuple[str, Any], cause: str, schema: InputSchema) -> str:
    """Say which step stays in scikit-learn, what inside it is the reason, and what to do about it."""
    name, culprit = _title(step), _title(guilty)
    reason = f": {cause}" if guilty is step else f", because of {culprit} in it: {cause}"
    return (
        f"Step {name} stays in scikit-learn{reason}. It runs once before the training and before every "
        f"prediction. The trained ONNX model begins after it and takes its {schema.n_features} columns. For "
        f"an ONNX model that takes the columns of X, replace {guilty[0]!r} by a step that converts, or "
        f"register a converter of {type(guilty[1]).__name__} with skl2onnx.update_registered_converter."
    )


def _title(step: tuple[str, Any]) -> str:
    return f"{step[0]!r} ({type(step[1]).__name__})"


def _last_fault(steps: Steps, probe: Any, dtype: Any, run: Run | None, fault: str) -> tuple[int, str]:
    """Return the number of steps up to the last one at fault, and what is wrong with it."""
    inputs = [probe]
    for step in steps[:-1]:
        inputs.append(_transform(FrontPipeline([step]), inputs[-1]))
    for index in range(len(steps) - 1, -1, -1):
        trial = _try([steps[index]], inputs[index], inputs[index], dtype, run)
        if trial.fault is not None:
            return index + 1, trial.fault
    return len(steps), fault  # each step converts, all of them together do not


def _transform(front: Pipeline, X: Any) -> Any:
    with quiet():
        return front.transform(*untouched(front, X))
