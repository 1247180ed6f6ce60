"""Estimators and ONNX models -> graphs that can be trained."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from ..exceptions import ConversionError
from ..graphs import runtime_errors
from ..models import all_covered, is_continuous
from .assembling import Incoming, assemble
from .constraints.ties import tie_parameters
from .declared import has_steps_in_front, trainable_from_definitions
from .decompositions import decompose_operators
from .fallbacks.faithfulness import Run
from .fallbacks.fallback import Converted, convert_with_fallback
from .inputs.digits import rounded_columns
from .inputs.first_readers import selects_by_name
from .inputs.inputs import matrix_schema
from .inputs.schemas import input_schema
from .loading import is_onnx_source, load_onnx
from .ml_checks import check_ml_widths
from .output_shapes import with_computed_shapes
from .preparation.kinds import ModelKind, describe
from .preparation.refusal import check_is_a_model
from .preparation.unwrapping import unwrap
from .trainable_model import TrainableModel

__all__ = ["TrainableModel", "source_task", "to_trainable"]


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
) -> TrainableModel:
    """Convert a model into a graph that can be trained.

    Parameters
    ----------
    source : estimator, onnx.ModelProto, bytes, str or os.PathLike
        Fitted scikit-learn estimator or pipeline, or an ONNX model.
    weights_to_train : str or sequence of str, default=None
        Names or glob patterns of the weights to train; the learned ones by default.
    X : array-like, sparse matrix or frame, default=None
        Rows to train on: they tell which columns are numbers and which text, and with some of them
        steps of a scikit-learn pipeline are tried that may have to stay there.
    run : callable, default=None
        Runs a graph on arrays by the name of their inputs, and returns its first output.
    n_features : int, default=None
        Number of columns of X, for a scikit-learn estimator without ``n_features_in_``, if X is None.
    dtype : dtype, default=numpy.float32
        Type that a scikit-learn estimator is converted to.
    loss_output_name, label_name : str
        An ONNX model with such an output and such an input is trained as it is.
    weight_name : str, default="sample_weight"
        Input of such a model that takes the weights of the rows, where it has one.
    forced_task : {"regression", "classification"}, default=None
        Kind of the model where its outputs do not tell: an ONNX classifier without an output of labels.
    link : {"identity", "log"}, default="identity"
        What the scores of a regressor are to be of its predictions.

    Returns
    -------
    TrainableModel
        Graph, weights and head.

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
    if not is_onnx_source(source):
        declared = _declared(source, X, n_features, dtype, link, weights_to_train)
        if declared is not None:
            return declared
    for wide_front in (True, False):
        incoming, converted = _incoming(source, X, run, n_features, dtype, forced_task, wide_front)
        incoming = replace(incoming, kind=replace(incoming.kind, link=link))
        trainable = assemble(incoming, weights_to_train, loss_output_name, label_name, weight_name)
        if converted is None or not _trains_two_types(trainable):
            break
    return trainable if converted is None else _with_inputs(trainable, converted)


def _trains_two_types(trainable: TrainableModel) -> bool:
    """Return whether weights of steps in float64 are to be trained, for scores in float32."""
    head = trainable.head
    return head is not None and any(a.dtype != head.dtype for a in trainable.initial_weights().values())


def _declared(
    source: Any, X: Any, n_features: int | None, dtype: Any, link: str, weights_to_train: Any
) -> TrainableModel | None:
    """Return the graph that definitions write; None where a part has none or X is no matrix of numbers."""
    count = getattr(source, "n_features_in_", n_features)
    if not hasattr(source, "get_params") or (count is None and X is None):
        return None
    unwrapped = unwrap(source)
    check_is_a_model(unwrapped.estimator)
    if not all_covered(unwrapped.estimator):
        return None
    schema = matrix_schema(count, dtype) if X is None else input_schema(X, unwrapped.estimator, dtype)
    if not schema.is_number_matrix or schema.categories:
        return None
    in_front = X is not None and has_steps_in_front(unwrapped.estimator)
    if in_front and schema.float_dtype == np.float32 and not is_continuous(unwrapped.estimator):
        return None  # such steps may stay in scikit-learn
    if in_front and rounded_columns(X, schema):
        wide = matrix_schema(schema.n_features, np.float64)
        found = trainable_from_definitions(unwrapped, wide, dtype, _origin(source), link, weights_to_train)
        if not _trains_two_types(found):
            return found
    return trainable_from_definitions(unwrapped, schema, dtype, _origin(source), link, weights_to_train)


def _incoming(
    source: Any,
    X: Any,
    run: Run | None,
    n_features: int | None,
    dtype: Any,
    forced_task: str | None,
    wide_front: bool,
) -> tuple[Incoming, Converted | None]:
    """Return a model read or converted, and how an estimator was."""
    if is_onnx_source(source):
        model = with_computed_shapes(decompose_operators(load_onnx(source)))
        check_ml_widths(model)
        return Incoming(model, ModelKind(forced_task)), None
    if not isinstance(source, BaseEstimator) and not hasattr(source, "get_params"):
        raise ConversionError(
            f"{type(source).__name__} is neither a scikit-learn estimator nor an ONNX model (ModelProto, "
            "bytes or path)."
        )
    count = getattr(source, "n_features_in_", n_features)
    if count is None and X is None:
        name = type(source).__name__
        raise ConversionError(f"The number of features of {name} is unknown: fit it, or pass rows as X.")
    unwrapped = unwrap(source)
    check_is_a_model(unwrapped.estimator)
    converted = convert_with_fallback(
        unwrapped.estimator, X, n_features=count, dtype=dtype, run=run, wide_front=wide_front
    )
    model, loose = tie_parameters(converted.model, converted.estimator)
    incoming = Incoming(
        model, describe(unwrapped), converted.preprocessing, _origin(source), converted.estimator, loose
    )
    return incoming, converted


def _with_inputs(trainable: TrainableModel, converted: Converted) -> TrainableModel:
    """Return a trainable model that knows what its inputs take, and what comes before it."""
    renamed = {old: new for new, old in trainable.reserved_names.items()}
    by_name = selects_by_name(converted.estimator if converted.front is None else converted.front)
    return replace(
        trainable, schema=converted.schema.renamed(renamed), front=converted.front, selects_by_name=by_name
    )


def source_task(source: Any) -> str | None:
    """Return the kind of an ONNX model, None where it cannot be read.

    Parameters
    ----------
    source : onnx.ModelProto, bytes, str or os.PathLike
        Model.

    Returns
    -------
    {"regression", "classification"} or None
        A graph with an output of labels (int64 or text) is a classifier.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.conversion import source_task
    >>> text = '<ir_version: 8, opset_import: ["": 18]> g (float[N] x) => (float[N] y) { y = Neg (x) }'
    >>> source_task(parser.parse_model(text))
    'regression'
    """
    try:
        model = source if isinstance(source, ModelProto) else load_onnx(source)
    except ConversionError:
        return None
    kinds = {value.type.tensor_type.elem_type for value in model.graph.output}
    return "regression" if kinds <= {TensorProto.FLOAT, TensorProto.DOUBLE} else "classification"


def _origin(source: Any) -> str:
    """Name the estimator, or the last step of a pipeline, that is trained."""
    if isinstance(source, Pipeline):
        name, last = source.steps[-1]
        return f"{type(last).__name__} (step {name!r})"
    return type(source).__name__
