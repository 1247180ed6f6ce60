"""Convert estimators and ONNX models into trainable graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from ..differentiation.random_feed import random_feed
from ..exceptions import ConversionError, NoTrainableWeightError
from ..graphs import value_types
from ..graphs.output_shapes import with_computed_shapes
from ..models import unwrapped
from ..onnx_files.decompositions import decompose_operators
from ..onnx_files.heads import default_weights
from ..onnx_files.loading import is_onnx_source, load_onnx
from ..onnx_files.low_rank.adapters import LoRA
from ..onnx_files.opening import open_file
from ..onnx_files.probed_shapes import RANDOM, with_probed_shapes
from ..onnx_files.scores.outputs import chosen_outputs, computed_outputs
from ..onnx_files.weight_locations import weight_locations
from ..onnx_files.weights import find_weights
from ..preprocessing.column_reading import read_columns
from ..preprocessing.comparison import Run
from ..preprocessing.estimator_checks import check_is_a_model
from ..preprocessing.pipeline_split import Split, split_pipeline
from ..preprocessing.schema import graph_inputs, schema_of_graph
from ..preprocessing.skl2onnx_steps import UndefinedModelError, convert
from ..runtime.errors import runtime_errors
from .from_estimator import trainable_from_definitions
from .from_file import trainable_from_graph
from .trainable_model import TrainableModel

__all__ = ["TrainableModel", "source_task", "to_trainable"]

#: Numbers of samples in runs that find the ranks of tensors.
COUNTS = (1, 2, 3)


@runtime_errors()
def to_trainable(
    source: Any,
    weights_to_train: Any = None,
    *,
    X: Any = None,
    run: Run | None = None,
    n_features: int | None = None,
    dtype: Any = np.float32,
    loss_output_name: str = "loss",
    label_name: str = "label",
    weight_name: str = "sample_weight",
    forced_task: str | None = None,
    link: str = "identity",
    label_shape: tuple[int, ...] | None = None,
    lora: LoRA | None = None,
    straight_through: bool = False,
    output_name: str | None = None,
) -> TrainableModel:
    """Convert a model into a trainable graph.

    Parameters
    ----------
    source : estimator, onnx.ModelProto, bytes, str or os.PathLike
        Fitted scikit-learn estimator or pipeline, or an ONNX model.
    weights_to_train : str or sequence of str, default=None
        Names or glob patterns of the weights to train; the learned ones by default.
    X : array-like, sparse matrix or frame, default=None
        Training samples. They determine the types of the columns, and the steps of a pipeline that stay in
        scikit-learn because their ONNX form has different results.
    run : callable, default=None
        Function that runs a graph on arrays by input name, and returns its first output.
    n_features : int, default=None
        Number of columns of X, for a scikit-learn estimator without ``n_features_in_``, if X is None.
    dtype : dtype, default=numpy.float32
        Type of the graph of a scikit-learn estimator.
    loss_output_name, label_name : str
        An ONNX model with this output and input is trained with its own loss.
    weight_name : str, default="sample_weight"
        Input of such a model for sample weights, if it has one.
    forced_task : {"regression", "classification"}, default=None
        Task of an ONNX model if its outputs do not determine it: a classifier without labels.
    link : {"identity", "log"}, default="identity"
        Link function from the predictions of a regressor to its scores.
    label_shape : tuple of int, default=None
        Shape of the labels of all samples, which determines the class axis of an ONNX classifier of pixels or
        time steps.
    lora : LoRA, default=None
        Low-rank adapters of an ONNX model, which are trained instead of all weights that ``weights_to_train``
        does not name.
    straight_through : bool, default=False
        Whether weights that an ONNX model stores as integers before a DequantizeLinear are trained, as
        floats that the graph rounds.
    output_name : str, default=None
        Output of an ONNX model to train, if it has several.

    Returns
    -------
    TrainableModel
        Graph, weights and scores.

    Raises
    ------
    ConversionError
        If the model cannot be converted, read or trained.
    NoTrainableWeightError
        If it has no weight to train.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from ortlearn.conversion import to_trainable
    >>> to_trainable(LinearRegression().fit([[0.0], [1.0]], [1.0, 3.0])).trained
    ['I0_coef', 'I1_intercept']
    """
    if is_onnx_source(source):
        options: dict[str, Any] = {
            "task": forced_task,
            "label_shape": label_shape,
            "output_name": output_name,
        }
        options |= {"own_loss_names": (loss_output_name, label_name, weight_name), "lora": lora, "link": link}
        return _from_file(source, weights_to_train, X, run, straight_through, options)
    _check_estimator(source, lora=lora, output_name=output_name)
    n_features = getattr(source, "n_features_in_", 0) or n_features
    if n_features is None and X is None:
        name = type(source).__name__
        raise ConversionError(f"The number of features of {name} is unknown: fit it, or pass X.")
    check_is_a_model(unwrapped(source))
    options = {"n_features": n_features, "dtype": dtype, "run": run}
    for allow_float64 in (True, False):
        split = split_pipeline(source, X, allow_float64=allow_float64, **options)
        try:
            found = trainable_from_definitions(split, dtype, _origin(source), link, weights_to_train)
        except UndefinedModelError as undefined:
            return _converted(split, weights_to_train, link, _origin(source), undefined)
        if not _trains_two_types(found):
            break
    return found


def _from_file(
    source: Any,
    weights_to_train: Any,
    X: Any,
    run: Run | None,
    straight_through: bool,
    options: dict[str, Any],
) -> TrainableModel:
    """Return the trainable graph of an ONNX model, with options of :func:`trainable_from_graph`."""
    runs: dict[str, Any] = {} if run is None else {"feeds": RANDOM, "run": run}
    opened = open_file(source, integers=straight_through, trainable=True, **runs)
    file, model = opened.file, opened.model
    if X is not None and run is not None:
        with suppress(Exception):  # X is validated later, with the schema of the trainable graph
            feeds = [_feed_of(model, X, n_samples, options["own_loss_names"][1:]) for n_samples in COUNTS]
            model = with_probed_shapes(model, run, feeds)
    model = with_computed_shapes(model)
    options |= {"file": file, "default_weights": default_weights(file)}
    try:
        return trainable_from_graph(model, weights_to_train, **options)
    except NoTrainableWeightError as error:
        raise (error if straight_through else _with_integers(error, file)) from None


def _feed_of(model: ModelProto, X: Any, n_samples: int, others: Sequence[str]) -> dict[str, np.ndarray]:
    """Return values of the inputs of a graph for the first samples; ``others`` are inputs not in X."""
    types = value_types(model, infer=False)
    if isinstance(X, Mapping):
        some: Any = {name: values[:n_samples] for name, values in X.items()}
    else:
        some = _safe_indexing(X, np.arange(n_samples))
    schema = schema_of_graph(graph_inputs(model, types, *others))
    return random_feed(model, n_samples) | read_columns(some, schema)


def _check_estimator(source: Any, **file_options: Any) -> None:
    """Raise an error for a model that is not an estimator, and for options of ONNX files."""
    for name, value in file_options.items():
        if value is not None:
            raise ConversionError(
                f"{name} is for ONNX files, {type(source).__name__} is a scikit-learn estimator: use "
                f"{name}=None, or train its ONNX model, from ortlearn.conversion.sklearn_to_onnx."
            )
    if not hasattr(source, "get_params"):
        raise ConversionError(
            f"{type(source).__name__} is neither a scikit-learn estimator nor an ONNX model: pass a fitted "
            "estimator, or a ModelProto, bytes or a path."
        )


def _converted(
    split: Split, weights_to_train: Any, link: str, origin: str, undefined: UndefinedModelError
) -> TrainableModel:
    """Return the graph of a model without a definition, converted by skl2onnx."""
    try:
        model = convert(split.estimator, split.schema.types())
    except ConversionError as error:
        missing = type(error.__cause__).__name__ in ("MissingConverter", "MissingShapeCalculator")
        reason = "has no converter for it." if missing else f"does not convert it: {error.__cause__ or error}"
        raise ConversionError(f"{undefined} skl2onnx {reason}") from error
    task = "classification" if is_classifier(split.estimator) else None
    options: Any = {"task": task, "link": link, "origin": origin, "fitted": split.estimator}
    model = with_computed_shapes(decompose_operators(model))
    found = trainable_from_graph(model, weights_to_train, **options)
    return replace(found, entry=replace(found.entry, sklearn_steps=split.sklearn_steps))


def _with_integers(error: NoTrainableWeightError, file: ModelProto) -> NoTrainableWeightError:
    """Return an error that also names the weights that a file stores as integers."""
    names = [name for name, location in weight_locations(file).items() if location.quantisation is not None]
    if not names:
        return error
    first, _, rest = str(error).partition("\n")
    advice = f"The weights {names} are stored as integers: pass straight_through=True to train them."
    return NoTrainableWeightError("\n".join(filter(None, (f"{first} {advice}", rest))), error.facts)


def _trains_two_types(trainable: TrainableModel) -> bool:
    """Return whether float64 weights of steps are trained for float32 scores."""
    scores = trainable.scores
    return scores is not None and any(a.dtype != scores.dtype for a in trainable.initial_weights().values())


def source_task(source: Any, output_name: str | None = None) -> str | None:
    """Return the task of an ONNX model, classification if it outputs labels; None if it cannot be read."""
    try:
        model = source if isinstance(source, ModelProto) and output_name is None else load_onnx(source)
        computed = computed_outputs(model.graph)
        if output_name is not None:
            learned = [name for name, weight in find_weights(model).items() if weight.learned]
            computed = chosen_outputs(model, output_name, learned)
    except ConversionError:
        return None
    kinds = {value.type.tensor_type.elem_type for value in model.graph.output if value.name in computed}
    return "regression" if kinds <= {TensorProto.FLOAT, TensorProto.DOUBLE} else "classification"


def _origin(source: Any) -> str:
    """Return the name of the estimator, or of the last step of a pipeline."""
    if isinstance(source, Pipeline):
        name, last = source.steps[-1]
        return f"{type(last).__name__} (step {name!r})"
    return type(source).__name__
