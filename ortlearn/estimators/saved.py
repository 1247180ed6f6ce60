"""Convert estimators to the contents of saved files, and back."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import version
from inspect import signature
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto
from sklearn.utils.validation import check_is_fitted

from .. import conversion
from .._version import __version__
from ..exceptions import OmittedWarning, SavedFileError, warn_user
from ..fitting.fitted_model import FittedModel
from ..fitting.resumed_training import record_of, state_of
from ..fitting.saved_types import TYPES
from ..graphs import initializer_arrays
from ..onnx_files.loading import read_onnx
from ..parameters import OTHER_NAMES
from ..problem.input_validation import InputFeatures
from ..problem.problem import Problem
from ..saving.decoder import Decoder, read_model
from ..saving.encoder import Encoder
from ..saving.files import Content
from ..saving.record_types import Omitted
from ..training.state import TrainingState
from .base import BaseOrtGradientEstimator
from .forward_backward_optimizer import OrtGradientForwardBackwardOptimizer
from .gradient_optimizer import OrtGradientOptimizer

__all__ = ["content_of", "estimator_of"]

#: Classes of ortlearn in scikit-learn models.
OWN = ("ortlearn.preprocessing.pipeline_split.SklearnSteps",)
#: Parameters that are plugins.
PLUGINS = ("learning_loss", "learning_rate", "learning_penalty")
CLASSES = {cls.__name__: cls for cls in (OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer)}
PACKAGES = ("numpy", "onnx", "scikit-learn", "scipy")
#: File with the trained model, which any onnxruntime can run.
MODEL = "model.onnx"


def content_of(estimator: BaseOrtGradientEstimator, written: dict | None = None) -> Content:
    """Return the content of the file of an estimator.

    ``written`` caches the output of skops for checkpoints of the same training.
    """
    check_is_fitted(estimator)
    if hasattr(estimator, "to_local"):  # a connection to a cluster is not saved
        estimator = estimator.to_local()
    fitted, encoder = estimator._fitted, Encoder(TYPES, written={} if written is None else written)
    assert isinstance(fitted, FittedModel)
    encoder.files[MODEL] = fitted.onnx.SerializeToString()
    _check_steps(encoder, fitted.problem)
    parameters = _parameters(estimator)
    record = {
        "parameters": {name: encoder.encode(value) for name, value in parameters.items()},
        "problem": encoder.encode(fitted.problem),
        "features": encoder.encode(fitted.features),
        "state": encoder.encode(fitted.state),
    }
    summary = {
        "estimator": type(estimator).__name__,
        "epochs": fitted.state.n_iter,
        "batches": len(fitted.state.objectives),
        "finished": fitted.state.fingerprint is None,
    }
    versions = {"ortlearn": __version__, "python": platform.python_version()}
    versions |= {name: version(name) for name in PACKAGES}
    manifest = {"versions": versions, "summary": summary, "omitted": encoder.omitted, "record": record}
    return Content(manifest, encoder.all_files())


def _check_steps(encoder: Encoder, problem: Problem) -> None:
    """Raise an error if scikit-learn steps or transformers of labels cannot be written."""
    scores, steps = problem.trainable.scores, problem.trainable.entry.sklearn_steps
    for step in (steps, *(() if scores is None else scores.target_transformers)):
        if step is not None and encoder.encode(step)["$"] == "omitted":
            raise SavedFileError(
                f"Steps of this model that run in scikit-learn cannot be saved: {encoder.omitted[-1]}."
            )


def _parameters(estimator: BaseOrtGradientEstimator) -> dict[str, Any]:
    """Return the parameters to save; bytes or the path of an ONNX model are replaced by the model."""
    parameters = estimator.get_params(deep=False)
    if conversion.is_onnx_source(parameters["estimator"]):
        parameters["estimator"] = read_onnx(parameters["estimator"])[0]
    return parameters


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value.lower() == "auto"


def estimator_of(content: Content, trusted: Sequence[str] = ()) -> BaseOrtGradientEstimator:
    """Return the estimator of a file."""
    decoder, record = Decoder(TYPES, content.files, (*trusted, *OWN)), record_of(content)
    problem, features = (decoder.decode(record[name]) for name in ("problem", "features"))
    fitted = _fitted_of(problem, features, state_of(record, decoder))
    given = record["parameters"].items()
    values = {OTHER_NAMES.get(name, name): decoder.decode(value) for name, value in given}
    cls = CLASSES[content.manifest["summary"]["estimator"]]
    known = signature(cls.__init__).parameters
    if not values.keys() <= known.keys():
        raise SavedFileError(f"It has unknown parameters {sorted(values.keys() - known.keys())}.")
    if "estimator" not in values:
        raise SavedFileError("It lacks the parameter 'estimator'.")
    if fitted.problem.source is None and not isinstance(values.get("estimator"), ModelProto):
        values |= _without_source(values, fitted, content)
    for name, value in values.items():
        if isinstance(value, Omitted):  # a later fit raises an error with the name of a missing plugin
            values[name] = value.name if name in PLUGINS else known[name].default
    if decoder.omitted:
        warn_user(f"It is loaded without {'; '.join(decoder.omitted)}.", OmittedWarning)
    estimator = cls(**values)
    estimator._fitted = fitted
    return estimator


def _without_source(values: dict[str, Any], fitted: FittedModel, content: Content) -> dict[str, Any]:
    """Return parameters for an estimator without its scikit-learn model, by which to resolve "auto"."""
    tables = fitted.problem.targets.class_weights
    own = {
        "learning_loss": fitted.problem.loss,
        "learning_penalty": fitted.penalty,
        "class_weight": tables[0] if tables and len(tables) == 1 else tables,
    }
    found = {name: value for name, value in own.items() if _is_auto(values.get(name))}
    return {**found, "estimator": _model(content)} if isinstance(values["estimator"], Omitted) else found


def _model(content: Content) -> ModelProto:
    if MODEL not in content.files:
        raise SavedFileError(f"The file lacks {MODEL}.")
    return read_model(content.files[MODEL])


def _fitted_of(problem: Any, features: Any, state: TrainingState) -> FittedModel:
    """Return a fitted model after checks of its parts."""
    for name, value, cls in (("problem", problem, Problem), ("features", features, InputFeatures)):
        if not isinstance(value, cls):
            raise SavedFileError(f"Its {name} has the wrong type {type(value).__name__}.")
    trainable = problem.trainable
    arrays = initializer_arrays(trainable.model, trainable.trained)
    if _forms(state.weights) != _forms(arrays):
        raise SavedFileError("Its weights do not match its graph.")
    _check_names(trainable)
    _check_parts(problem, state)
    return FittedModel(problem, features, state)


def _check_names(trainable: Any) -> None:
    """Raise an error unless all weights are described, and the graph has inputs of X."""
    for name, known in (("weights", trainable.weights), ("original_names", trainable.original_names)):
        missing = sorted({*trainable.trained} - known.keys())
        if missing:
            raise SavedFileError(f"Its record {name} lacks {missing}.")
    inputs = trainable.entry.schema.inputs
    if not inputs or any(item.known.elem_type not in TensorProto.DataType.values() for item in inputs):
        raise SavedFileError("Its record of the inputs has none, or one of an unknown type.")


def _check_parts(problem: Problem, state: TrainingState) -> None:
    """Raise an error unless class weights belong to classes, and epochs have losses."""
    tables, classes = problem.targets.class_weights, problem.targets.classes
    n_outputs = len(classes) if isinstance(classes, list) else 1
    if tables is not None and (classes is None or len(tables) != n_outputs):
        raise SavedFileError("Its class weights do not match its classes.")
    head = problem.trainable.scores
    for step in () if head is None else head.target_transformers:
        if not hasattr(step, "inverse_transform"):
            raise SavedFileError(f"Its transformer of the labels is of type {type(step).__name__}.")
    for record in state.history:
        if missing := sorted({"epoch", "loss", "validation_loss", "validation_score"} - record.keys()):
            raise SavedFileError(f"Its record of an epoch lacks {missing}.")


def _forms(arrays: dict[str, Any]) -> dict[str, tuple]:
    """Return the shape and type of each array, and an empty tuple for other values."""
    return {
        name: (array.shape, array.dtype) if isinstance(array, np.ndarray) else ()
        for name, array in arrays.items()
    }
