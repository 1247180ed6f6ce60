"""From an estimator whose parts all have model definitions to a graph that can be trained, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto
from sklearn.pipeline import Pipeline

from .. import models
from ..exceptions import WriteBackError
from ..graphs import extract_model, initializer_arrays, name_nodes
from ..models.constraints.reparametrisation import constrain, release
from ..models.scores import label_of
from .heads import Head
from .inputs.first_readers import IDLE_STEPS, selects_by_name
from .inputs.inputs import InputSchema
from .output_shapes import with_computed_shapes
from .preparation.kinds import ModelKind, describe
from .preparation.target_transforms import write_inverse
from .preparation.unwrapping import Threshold, Unwrapped, unwrap
from .trainable_model import TrainableModel
from .weights.learned_parameters import CONSTANT
from .weights.weight_choice import asked_for, reached_weights, select_weights
from .weights.weight_facts import Examined, explained
from .weights.weight_names import renamed_weights
from .weights.weight_selection import Weight
from .write_back.checks import EDGE, OF_LARGEST, is_close, refusal
from .write_back.shapes import shape_predictions

__all__ = ["has_steps_in_front", "trainable_from_definitions", "write_declared"]


def has_steps_in_front(estimator: Any) -> bool:
    """Return whether an estimator is a pipeline of two steps or more that do something.

    Parameters
    ----------
    estimator : estimator
        Estimator.

    Returns
    -------
    bool
        Whether it is.
    """
    if not isinstance(estimator, Pipeline):
        return False
    steps = [step for _, step in estimator.steps if step not in IDLE_STEPS]
    return len(steps) > 1


def trainable_from_definitions(
    unwrapped: Unwrapped, schema: InputSchema, dtype: Any, origin: str, link: str, weights_to_train: Any
) -> TrainableModel:
    """Return the graph of an estimator, its parameters as its definitions declare them.

    Parameters
    ----------
    unwrapped : Unwrapped
        Fitted estimator and what was around it.
    schema : InputSchema
        Inputs; those of float64 are for steps in float64 before the last one.
    dtype : dtype
        Type of the last step.
    origin : str
        Name of the estimator or step that is trained.
    link : {"identity", "log"}
        What the scores of a regressor are to be of its predictions.
    weights_to_train : str, sequence of str or None
        Names or glob patterns; those that the definitions train by default.

    Returns
    -------
    TrainableModel
        Graph, parameters and scores.
    """
    estimator, kind = unwrapped.estimator, replace(describe(unwrapped), link=link)
    written = _write(estimator, schema, dtype, kind)
    scores = written.scores
    model, original_names = renamed_weights(name_nodes(with_computed_shapes(written.model)))
    weights = _weights_of(model, original_names, written.parameters)
    part = extract_model(model, [scores.score])
    examined = Examined(model, part, scores.score, weights, original_names, estimator)
    with explained(examined, weights_to_train):
        trained = select_weights(weights, weights_to_train, original_names)
        named = None if weights_to_train is None else asked_for(weights, weights_to_train, original_names)
        trained = reached_weights(part, trained, scores.score, original_names, named)
    weights = {name: replace(w, learned=name in trained or w.learned) for name, w in weights.items()}
    found = {name: written.parameters[original_names[name]].constraint for name in trained}
    constraints = {name: constraint for name, constraint in found.items() if constraint is not None}
    model, parameters = constrain(model, constraints)
    return TrainableModel(
        model=model,
        schema=schema,
        head=_head(scores, np.dtype(dtype)),
        weights=weights,
        trained=trained,
        original_names=original_names,
        origin=origin,
        kind=replace(kind, core=None),
        constraints=constraints,
        parameters=parameters,
        selects_by_name=selects_by_name(estimator),
        declared=True,
    )


def _write(estimator: Any, schema: InputSchema, dtype: Any, kind: ModelKind) -> models.WrittenModel:
    def finish(op: models.ModelWriter, scores: models.Scores) -> models.Scores:
        if scores.task == "regression":
            scores = scores.with_link(op, kind.link)
            if kind.target_transformers:
                prediction = scores.predicted
                for transformer in reversed(kind.target_transformers):
                    prediction = write_inverse(op, transformer, prediction)
                scores = replace(scores, prediction=prediction)
        if kind.threshold is not None and scores.task == "classification" and len(scores.classes) == 2:
            scores = _thresholded(op, scores, kind.threshold)
        return scores

    types = {item.name: item.known for item in schema.inputs}
    return models.write_model(estimator, types, dtype, finish, schema.float_dtype)


def _thresholded(op: models.ModelWriter, scores: models.Scores, threshold: Threshold) -> models.Scores:
    """Return the outputs of a classifier of two classes that decides by a threshold."""
    if threshold.of_probability and isinstance(scores.probabilities, str):
        value = op.Gather(scores.probabilities, [threshold.positive], axis=1)
    else:
        value = scores.decision or scores.score
        if scores.n_outputs == 2:
            first, second = (op.Gather(value, [column], axis=1) for column in (0, 1))
            value = op.Sub(second, first)
        value = value if threshold.positive == 1 else op.Neg(value)
    above = op.Cast(op.GreaterOrEqual(value, float(threshold.value)), to=TensorProto.INT64)
    classes = scores.classes if threshold.positive == 1 else scores.classes[::-1]
    return replace(scores, label=label_of(op, op.Reshape(above, [-1]), classes))


def _weights_of(
    model: ModelProto, original_names: Mapping[str, str], parameters: Mapping[str, models.Parameter]
) -> dict[str, Weight]:
    """Return every floating-point initializer: parameters as they are declared, and constants."""
    weights = {}
    for name, array in initializer_arrays(model).items():
        if array.dtype.kind != "f":
            continue
        known = parameters.get(original_names[name])
        if known is None:
            weights[name] = Weight(name, "other", False, drawn=False, reason=CONSTANT)
            continue
        fans = (array.shape[0], array.shape[1]) if known.role == "weight" and array.ndim == 2 else (1, 1)
        weights[name] = Weight(
            name,
            known.role,
            not known.reason,
            fans,
            known.expression,
            known.step,
            known.drawn,
            known.reason,
            known.form.text,
        )
    return weights


def _head(scores: models.Scores, dtype: np.dtype) -> Head:
    outputs = {
        name: getattr(scores, name)
        for name in (
            *("label", "probabilities", "classes", "prediction", "transformed", "decision", "likelihood"),
            "groups",
        )
    }
    task = "regression" if scores.task == "transformation" else scores.task
    return Head(task, scores.score, scores.link, scores.n_outputs, dtype, **outputs)


def write_declared(
    source: Any, trainable: TrainableModel, weights: Mapping[str, np.ndarray], y_ndim: int | None = None
) -> Any:
    """Return a copy of a fitted estimator whose attributes hold trained weights.

    Parameters
    ----------
    source : estimator
        Fitted estimator that was converted; it is not changed.
    trainable : TrainableModel
        Graph that its definitions wrote.
    weights : mapping of str to ndarray
        Trained weights, by the names of the parameters.
    y_ndim : {1, 2}, default=None
        Dimensions of y, which predictions of a regressor of one output get where its attributes can tell.

    Returns
    -------
    estimator
        Copy that predicts as the trained graph does.

    Raises
    ------
    WriteBackError
        If the estimator has changed since it was converted, or cannot hold what was trained.
    """
    estimator = unwrap(source).estimator
    assert trainable.head is not None
    kind = replace(trainable.kind, link="identity")
    written = _write(estimator, trainable.schema, trainable.head.dtype, kind)
    if trainable.kind.link == "log" and written.scores.link != "log" and written.scores.task == "regression":
        raise refusal(trainable, "an exponential: with this loss the trained model predicts exp(score)")
    _check_unchanged(written.parameters, trainable)
    result = models.write_parameters(source, written.parameters, weights)
    head = trainable.head
    if y_ndim in (1, 2) and head is not None and head.task == "regression" and head.n_outputs == 1:
        shape_predictions(result, y_ndim)
    return result


def _check_unchanged(parameters: Mapping[str, models.Parameter], trainable: TrainableModel) -> None:
    model = release(trainable.model, trainable.constraints, trainable.parameters)
    for name, array in initializer_arrays(model, trainable.weights).items():
        known = parameters.get(trainable.original_names[name])
        if known is None:
            continue
        tolerance = EDGE if name in trainable.constraints else OF_LARGEST
        if not is_close(known.value().astype(array.dtype), array, tolerance):
            raise WriteBackError(
                f"{trainable.origin} has been changed since it was converted for training "
                f"({trainable.weights[name].origin}): there is nothing to write the weights into. Fit again."
            )
