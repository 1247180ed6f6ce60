"""Convert an estimator into a trainable graph, and write trained weights back into the estimator."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import ModelProto

from .. import models
from ..exceptions import WriteBackError, limit_address
from ..graphs import initializer_arrays, name_nodes, prune
from ..graphs.output_shapes import with_computed_shapes
from ..models.constraints.reparametrisation import Reparametrisation
from ..models.parameters import CONSTANT, NO_PART, Parameter, set_parameters
from ..models.registry import shape_predictions
from ..models.weight_names import renamed_weights
from ..preprocessing.pipeline_split import Split, rest_of
from ..preprocessing.readers import selected_names
from ..preprocessing.schema import matrix_schema
from ..preprocessing.skl2onnx_steps import append_converted
from .selection import with_trained_weights
from .trainable_model import Entry, TrainableModel

__all__ = ["sklearn_to_onnx", "trainable_from_definitions", "write_split", "write_weights"]

#: Rounding errors of float32, relative to a value, and to the largest value of its weight.
TOLERANCE, OF_LARGEST = 1e-5, 1e-6
BOUNDARY = 1e-4  # distance of constrained values from the boundary, relative to the largest value


def trainable_from_definitions(
    split: Split, dtype: Any, origin: str, link: str, weights_to_train: Any
) -> TrainableModel:
    """Return the graph of an estimator with the parameters that its definitions declare."""
    written = write_split(split, dtype, link)
    scores = written.scores
    model, original_names = renamed_weights(name_nodes(with_computed_shapes(written.model)))
    by_name = selected_names(split.sklearn_steps or split.estimator) is not None
    candidate = TrainableModel(
        model=model,
        entry=Entry(split.schema, split.sklearn_steps, by_name),
        scores=scores,
        parameters=_parameters_of(model, original_names, written.parameters),
        trained=[],
        original_names=original_names,
        origin=origin,
        link=link,
        declared=True,
        fused=written.fused,
        members=written.members,
        text_steps=written.text_steps,
    )
    found = with_trained_weights(candidate, weights_to_train, split.estimator)
    declared = {name: found.parameters[name].constraint for name in found.trained}
    constraints = {name: constraint for name, constraint in declared.items() if constraint is not None}
    model, reparametrisation = Reparametrisation.of(model, constraints)
    if scores.task == "transformation":
        scores = replace(scores, task="regression")
    return replace(found, model=model, scores=scores, reparametrisation=reparametrisation)


def sklearn_to_onnx(
    estimator: Any, n_features: int | tuple[int, ...] | None = None, dtype: Any = np.float32
) -> ModelProto:
    """Return the graph of a fitted estimator on a numeric matrix.

    Parameters
    ----------
    estimator : estimator
        Fitted estimator, transformer or pipeline.
    n_features : int or tuple of int, default=None
        Number of columns of X, if the estimator has no ``n_features_in_``; for images the shape,
        (height, width) or (height, width, n_channels).
    dtype : {numpy.float32, numpy.float64}, default=numpy.float32
        Type of floats and weights.

    Returns
    -------
    onnx.ModelProto
        Graph with one input ``X`` of shape (None, n_features).

    Raises
    ------
    ConversionError
        If a part of the estimator cannot be written as ONNX.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn.conversion import sklearn_to_onnx
    >>> model = sklearn_to_onnx(Ridge().fit([[0.0], [1.0]], [0.0, 1.0]))
    >>> [node.op_type for node in model.graph.node]
    ['MatMul', 'Add', 'Identity']
    """
    count = getattr(estimator, "n_features_in_", 0) or n_features
    written = write_split(Split(estimator, matrix_schema(count, dtype)), dtype, "identity")
    return prune(written.model)  # without nodes for training only


def write_split(split: Split, dtype: Any, link: str | None = None) -> models.WrittenModel:
    """Return the graph that the definitions of a split estimator write."""
    schema = split.schema
    return models.write_model(
        split.estimator,
        schema.types(),
        dtype,
        link,
        np.promote_types(schema.float_dtype, dtype),
        schema.input_of_column(),
        append_converted,
    )


def _parameters_of(
    model: ModelProto, original_names: Mapping[str, str], declared: Mapping[str, Parameter]
) -> dict[str, Parameter]:
    """Return the floating-point initializers: declared parameters, and constants."""
    return {
        name: replace(declared[original_names[name]], name=name)
        if original_names[name] in declared
        else Parameter(name, "other", False, drawn=False, reason=CONSTANT)
        for name, array in initializer_arrays(model).items()
        if array.dtype.kind == "f"
    }


def write_weights(
    source: Any, trainable: TrainableModel, weights: Mapping[str, np.ndarray], y_ndim: int | None = None
) -> Any:
    """Return a copy of a fitted estimator whose attributes hold trained weights.

    Parameters
    ----------
    source : estimator
        Fitted estimator that was converted; it is not changed.
    trainable : TrainableModel
        Converted model.
    weights : mapping of str to ndarray
        Trained weights by original name, as returned by :meth:`TrainableModel.coefficients`.
    y_ndim : {1, 2}, default=None
        Number of dimensions of y, and of the predictions of a regressor with one output if its attributes
        determine it; unchanged by default.

    Returns
    -------
    estimator
        Copy with the predictions of the trained graph.

    Raises
    ------
    WriteBackError
        If the estimator has changed since it was converted, or cannot represent the trained model.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn.conversion import to_trainable, write_weights
    >>> model = Ridge().fit([[0.1], [1.3]], [0.7, 3.1])
    >>> weights = {"coef": np.array([[2.0]]), "intercept": np.array([0.5])}
    >>> written = write_weights(model, to_trainable(model), weights)
    >>> written.coef_, float(written.intercept_)
    (array([2.]), 0.5)
    """
    if not trainable.declared or trainable.scores is None:
        raise _write_back_error(trainable, "the trained weights: it has no model definition")
    if any(known.attribute and known.path is None for known in trainable.parameters.values()):
        trainable = _with_paths(source, trainable)
    scores, steps, names = trainable.scores, trainable.entry.sklearn_steps, trainable.original_names
    assert scores is not None
    if scores.appended_link:
        raise _write_back_error(
            trainable, "an exponential: with this loss the trained model predicts exp(score)"
        )
    _check_unchanged(rest_of(source, steps), trainable)
    result = copy.deepcopy(source)
    parameters = {names[name]: parameter for name, parameter in trainable.parameters.items()}
    set_parameters(rest_of(result, steps), parameters, weights)
    if y_ndim in (1, 2) and scores.task == "regression" and scores.n_outputs == 1:
        shape_predictions(result, y_ndim)
    return result


def _with_paths(source: Any, trainable: TrainableModel) -> TrainableModel:
    """Return a model of a file of version 0.2.0, which has no paths and forms, with those of a new graph."""
    scores, entry = trainable.scores, trainable.entry
    assert scores is not None
    written = write_split(Split(rest_of(source, entry.sklearn_steps), entry.schema), scores.dtype, "identity")
    parameters = dict(trainable.parameters)
    for name, old in parameters.items():
        found = written.parameters.get(trainable.original_names[name], old)
        parameters[name] = replace(old, form=found.form, path=found.path, access=found.access)
    is_appended = trainable.link == "log" and written.scores.link != "log"
    scores = replace(scores, appended_link=is_appended and written.scores.task == "regression")
    return replace(trainable, parameters=parameters, scores=scores)


def _write_back_error(trainable: TrainableModel, reason: str) -> WriteBackError:
    """Return the error for an estimator that cannot represent the trained model."""
    return WriteBackError(
        f"{trainable.origin} cannot represent {reason}. Use the trained ONNX model instead: "
        f"get_trained_onnx, save_onnx_graph.{limit_address('weights-that-cannot-be-written-back')}"
    )


def _check_unchanged(estimator: Any, trainable: TrainableModel) -> None:
    """Raise an error if the parameters of an estimator are not those of the converted model."""
    model = trainable.reparametrisation.undone(trainable.model)
    for name, array in initializer_arrays(model, trainable.parameters).items():
        known = trainable.parameters[name]
        if known.path is None:
            continue
        tolerance = BOUNDARY if name in trainable.constraints else OF_LARGEST
        with suppress(*NO_PART):
            if _is_close(known.value(estimator).astype(array.dtype), array, tolerance):
                continue
        raise WriteBackError(
            f"{trainable.origin} has been changed since it was converted for training "
            f"({known.origin}): weights cannot be written into it. Call fit again."
        )


def _is_close(found: np.ndarray, expected: np.ndarray, of_largest: float) -> bool:
    """Return whether two arrays are equal up to rounding."""
    finite = expected[np.isfinite(expected)]
    largest = float(np.abs(finite).max(initial=0.0))
    return found.shape == expected.shape and np.allclose(
        found, expected, rtol=TOLERANCE, atol=of_largest * largest, equal_nan=True
    )
