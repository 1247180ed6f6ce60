"""Graphs of fitted estimators, trained models and ONNX files, and how X becomes their inputs."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from onnx import ModelProto
from onnx.helper import np_dtype_to_tensor_dtype
from scipy.sparse import issparse
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing

from ..data.columns import Columns
from ..exceptions import ConversionError
from ..graphs import (
    GraphBuilder,
    TensorType,
    append_nodes,
    graph_names,
    initializer_arrays,
    make_value_info,
    opset_versions,
    value_types,
)
from ..graphs.output_shapes import with_computed_shapes
from ..models import Scores, unwrapped
from ..models.fusion import FusedForm
from ..onnx_files.loading import is_onnx_source
from ..onnx_files.opening import open_file
from ..onnx_files.probed_shapes import with_probed_shapes
from ..preprocessing.column_reading import check_categories, read_columns
from ..preprocessing.columns import as_array_like
from ..preprocessing.estimator_checks import check_is_a_model, check_trains_one_model, is_trainer, last_step
from ..preprocessing.initial_fit import is_fitted, untouched
from ..preprocessing.missing import accepts_missing
from ..preprocessing.pipeline_split import split_pipeline
from ..preprocessing.schema import InputSchema, graph_inputs, schema_of_graph
from ..preprocessing.skl2onnx_steps import UndefinedModelError
from ..problem.input_validation import InputFeatures
from ..quiet import quiet
from ..runtime.graph_run import run_graph
from ..trainable.conversion import TrainableModel, to_trainable
from ..trainable.from_estimator import write_split

__all__ = ["Source", "open_density", "open_source", "open_transformation"]

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Source:
    """The graph of a model, with the names of its tensors, and its inputs."""

    name: str
    model: ModelProto
    scores: Scores | None
    schema: InputSchema
    read: Callable[[Any], Arrays]
    estimator: Any = None  # scikit-learn estimator, to ask for methods and shapes
    classes: Any = None
    parameters: dict[str, str] = field(default_factory=dict)  # original name -> initializer
    fused: tuple[FusedForm, ...] = ()
    sklearn_steps: Pipeline | None = None
    y_ndim: int | None = None
    exact: ModelProto | None = None  # the graph with the thresholds of trees, if they are smoothed

    @property
    def columns(self) -> dict[str, Hashable]:
        """Column of X of each input, if inputs are columns."""
        return {} if self.schema.is_matrix else {item.name: item.column for item in self.schema.inputs}

    @property
    def takes_matrix(self) -> bool:
        """Whether one input takes all of X, as numbers of any shape."""
        return self.schema.is_matrix


def open_source(model: Any, X: Any, dtype: Any) -> Source:
    """Return the graph of a model: a fitted estimator, a fitted trainer, or an ONNX file."""
    if dtype is not None and np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype={dtype!r} must be numpy.float32 or numpy.float64.")
    if is_onnx_source(model):
        return _of_file(model, dtype)
    if is_trainer(model):
        check_trains_one_model(model)
        return _of_trainer(model, X, dtype)
    if isinstance(model, type) or not hasattr(model, "get_params"):
        raise ConversionError(
            f"model must be a fitted scikit-learn estimator, an estimator of ortlearn, or an ONNX model "
            f"(ModelProto, bytes or a path), not {type(model).__name__}."
        )
    if not is_fitted(model):
        raise ConversionError(f"{type(model).__name__} is not fitted: call fit first.")
    return _of_estimator(model, X, np.dtype(np.float64 if dtype is None else dtype))


def open_transformation(source: Source, X: Any, dtype: Any) -> Source:
    """Return the graph of ``transform`` of a predictor, which is written if it is a step of a pipeline."""
    model = source.estimator
    samples = np.zeros((1, model.n_features_in_)) if X is None else _safe_indexing(X, np.array([0]))
    with quiet():
        transformed = np.asarray(model.transform(samples))
    if transformed.ndim != 2:
        raise ConversionError(f"transform of {source.name} does not return a matrix.")
    return replace(_before_identity([("model", model)], transformed, X, dtype), name=source.name)


def _before_identity(steps: list[tuple[str, Any]], transformed: np.ndarray, X: Any, dtype: Any) -> Source:
    """Return the graph of steps, and of one that keeps their result."""
    identity = StandardScaler(with_mean=False, with_std=False).fit(transformed)
    return open_source(Pipeline([*steps, ("identity", identity)]), X, dtype)


def open_density(source: Source, X: Any, dtype: Any) -> Source:
    """Return the graph of ``score_samples`` of PCA: the logarithm of a normal density."""
    model = source.estimator
    last, steps = (model[-1], model.steps[:-1]) if isinstance(model, Pipeline) else (model, [])
    if last is not last_step(model):  # in a nested pipeline
        return source
    found = _before_identity(steps, last.mean_[None], X, dtype)
    assert found.scores is not None and found.scores.transformed is not None
    precision, graph = last.get_precision(), found.model
    options: Any = {"existing_names": graph_names(graph.graph), "prefix": "density_"}
    op = GraphBuilder(
        opset_versions(graph)[""], dtype=found.scores.dtype, types=value_types(graph), **options
    )
    centred = op.Sub(found.scores.transformed, last.mean_.astype(op.float_dtype))
    squares = op.Mul(op.MatMul(centred, precision.astype(op.float_dtype)), centred)
    constant = len(precision) * np.log(2 * np.pi) - np.linalg.slogdet(precision)[1]
    density = op.Mul(op.Add(op.ReduceSum(squares, [1], keepdims=1), op.constant(constant)), op.constant(-0.5))
    info = make_value_info(density, TensorType(np_dtype_to_tensor_dtype(op.float_dtype), (None, 1)))
    model = append_nodes(graph, op, outputs=[*graph.graph.output, info])
    scores = replace(found.scores, likelihood=density)
    return replace(found, name=source.name, model=model, scores=scores, estimator=source.estimator)


def _of_estimator(model: Any, X: Any, dtype: np.dtype) -> Source:
    """Return the graph of a fitted scikit-learn estimator."""
    n_features = getattr(model, "n_features_in_", 0) or None
    if n_features is None and X is None:
        raise ConversionError(
            f"The number of features of {type(model).__name__} is unknown: pass some samples as X=..."
        )
    check_is_a_model(unwrapped(model))
    X = None if X is None else as_array_like(X)
    split = split_pipeline(model, X, n_features=n_features, dtype=dtype)
    common: dict[str, Any] = {"estimator": model, "sklearn_steps": split.sklearn_steps}
    try:
        written = write_split(split, dtype)
    except UndefinedModelError:
        found = to_trainable(model, X=X, n_features=n_features, dtype=dtype)
        source = _of_trainable(found, found.model, type(model).__name__)
        return replace(source, read=_reader(model, found.entry.schema, split.sklearn_steps), **common)
    except (TypeError, ValueError) as error:  # such as texts where numbers were assumed
        if X is not None:
            raise
        raise ConversionError(
            f"{str(error).rstrip('.')}. If X has columns of text or of several types, or steps that stay in "
            "scikit-learn, pass some samples as X=..."
        ) from error
    read, graph = _reader(model, split.schema, split.sklearn_steps), with_computed_shapes(written.model)
    if not split.schema.is_number_matrix and X is not None:  # texts have no known ranks
        with suppress(Exception):
            samples = [read(_safe_indexing(X, np.arange(count))) for count in (1, 2, 3)]
            graph = with_probed_shapes(graph, run_graph, samples)
    return Source(
        name=type(unwrapped(last_step(model) or model)).__name__,
        model=graph,
        scores=written.scores,
        schema=split.schema,
        read=read,
        classes=written.scores.classes,
        parameters={name: name for name, known in written.parameters.items() if known.learned},
        fused=written.fused,
        **common,
    )


def _reader(model: Any, schema: InputSchema, steps: Pipeline | None) -> Callable[[Any], Arrays]:
    """Return the function that checks X as scikit-learn does, and returns the inputs of the graph."""
    names = getattr(model, "feature_names_in_", None)
    features = InputFeatures(type(model).__name__, getattr(model, "n_features_in_", None), names)
    return partial(_read, schema=schema, steps=steps, features=features, missing=accepts_missing(model))


def _read(
    X: Any,
    schema: InputSchema,
    steps: Any = None,
    features: InputFeatures | None = None,
    missing: bool = True,
) -> Arrays:
    """Return the inputs of a graph; X is checked by the features of an estimator."""
    X = as_array_like(X)
    X = X.toarray() if issparse(X) else X
    if features is not None and steps is not None:
        features.check_columns(X)
        X = steps.transform(*untouched(steps, X))
        X = X.toarray() if issparse(X) else X
    elif features is not None and schema.is_number_matrix:
        samples = features.read_matrix(X, schema.float_dtype, missing)
        check_categories(samples, schema)
        return {schema.inputs[0].name: samples}
    return read_columns(X, schema)


def _of_trainer(model: Any, X: Any, dtype: Any) -> Source:
    """Return the trained graph of a fitted estimator of this package."""
    fitted = model._model()
    problem, trainable = fitted.problem, fitted.problem.trainable
    if dtype is not None and np.dtype(dtype) != problem.dtype:
        if problem.source is None:
            raise ConversionError(
                f"The trained graph computes in {problem.dtype}: use dtype=None, or train with dtype={dtype}."
            )
        return open_source(model.to_sklearn(), X, dtype)
    source = _of_trainable(trainable, fitted.trained, type(model).__name__)
    targets = problem.targets
    classes = targets.classes if targets.classes is not None else source.classes
    read = partial(_read_trained, fitted)
    return replace(source, read=read, classes=classes, y_ndim=targets.ndim, estimator=model)


def _read_trained(fitted: Any, X: Any) -> Arrays:
    """Return the inputs of a trained graph."""
    samples = fitted.read(X)
    samples = samples.toarray() if issparse(samples) else samples
    name = fitted.problem.trainable.input_name
    return dict(samples.arrays) if isinstance(samples, Columns) else {name: samples}


def _of_trainable(found: TrainableModel, model: ModelProto, name: str) -> Source:
    """Return the graph of a trainable model, without a function that reads X."""
    return Source(
        name=found.origin or name,
        model=found.for_inference(model, fused=False),
        scores=found.scores,
        schema=found.entry.schema,
        read=partial(_read, schema=found.entry.schema),
        classes=None if found.scores is None else found.scores.classes,
        parameters={found.original_names[name]: found.original_names[name] for name in found.trained},
        fused=found.fused,
        sklearn_steps=found.entry.sklearn_steps,
    )


def _of_file(source: Any, dtype: Any) -> Source:
    """Return the graph of an ONNX file; scores are found if its weights can be trained."""
    trainable = None
    with suppress(ConversionError):
        trainable = to_trainable(source)
    if trainable is not None:
        found = _of_trainable(trainable, trainable.model, "the ONNX model")
    else:
        model = with_computed_shapes(open_file(source, trainable=True).model)
        schema = schema_of_graph(graph_inputs(model, value_types(model), None))
        weights = {name: name for name, array in initializer_arrays(model).items() if array.dtype.kind == "f"}
        reader = partial(_read, schema=schema)
        found = Source("the ONNX model", model, None, schema, reader, parameters=weights)
    if dtype is not None and np.dtype(dtype) != found.schema.float_dtype:
        raise ConversionError(
            f"The ONNX model computes in {found.schema.float_dtype}: use dtype=None, or convert the file."
        )
    return found
