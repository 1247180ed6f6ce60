"""Everything a training needs to know of a model, found once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto
from sklearn.base import BaseEstimator, is_classifier
from sklearn.pipeline import Pipeline

from ..exceptions import ConversionError
from ..graphs import (
    TensorType,
    copy_model,
    extract_model,
    graph_names,
    initializer_arrays,
    make_inputs_of,
    map_names,
    name_nodes,
    set_initializers,
    value_types,
)
from .decompositions import decompose_operators
from .heads import Head, find_head
from .loading import is_onnx_source, load_onnx
from .simplify import remove_idle_nodes
from .sklearn_converter import preprocessing_graph, sklearn_to_onnx
from .weight_names import renamed_weights, restored_names
from .weight_selection import Weight, find_weights, select_weights

__all__ = ["TrainableModel", "source_task", "to_trainable"]

#: How the names begin that training graphs add to a model.
RESERVED = "ortlearn_"


@dataclass(frozen=True)
class TrainableModel:
    """A graph that can be trained, its weights under stable names.

    Attributes
    ----------
    model : onnx.ModelProto
        Graph for inference, initializers named ``I0_...``, nodes named uniquely.
    input_name : str
        Input that takes X.
    n_features : int or None
        Number of its columns, where the graph says so.
    input_dtype : numpy.dtype
        Type of X in the graph.
    head : Head or None
        What is trained; None for a graph with its own loss.
    weights : dict of str to Weight
        Every floating-point initializer.
    trained : list of str
        Those to train, sorted.
    original_names : dict of str to str
        Original name by stable name.
    loss, label : str or None
        Loss output and label input of a graph that has them.
    origin : str or None
        scikit-learn estimator, or step of a pipeline, that the trained part comes from.
    reserved_names : dict of str to str
        Original names of tensors that had a name training graphs use.
    """

    model: ModelProto
    input_name: str
    n_features: int | None
    input_dtype: np.dtype
    head: Head | None
    weights: dict[str, Weight]
    trained: list[str]
    original_names: dict[str, str]
    loss: str | None = None
    label: str | None = None
    origin: str | None = None
    reserved_names: dict[str, str] = field(default_factory=dict)

    def initial_weights(self) -> dict[str, np.ndarray]:
        """Return the model's own values of the weights to train."""
        return {name: array.copy() for name, array in initializer_arrays(self.model, self.trained).items()}

    @property
    def objective_tensor(self) -> str:
        """Name of what is trained: the scores, or the graph's own loss."""
        name = self.loss if self.head is None else self.head.score
        assert name is not None
        return name

    def score_graph(self) -> ModelProto:
        """Return the graph from X (and the labels) to what is trained, the trained weights as inputs.

        Its inputs are X, the label of a graph with its own loss, then the weights in sorted order.
        """
        part = extract_model(self.model, [self.objective_tensor])
        return make_inputs_of(remove_idle_nodes(part), self.trained)

    def with_stable_weights(self, arrays: dict[str, np.ndarray]) -> ModelProto:
        """Return the graph with new weights, under stable names, its own loss included."""
        return set_initializers(self.model, arrays)

    def with_weights(self, arrays: dict[str, np.ndarray]) -> ModelProto:
        """Return the graph for inference with new weights, under the names it came with."""
        model = set_initializers(self.model, arrays)
        if self.loss is not None:
            rest = [value.name for value in model.graph.output if value.name != self.loss]
            if rest:
                model = extract_model(model, rest)
        return map_names(restored_names(model, self.original_names), self.reserved_names)


def to_trainable(
    source: Any,
    weights_to_train: Any = None,
    *,
    n_features: int | None = None,
    dtype: Any = np.float32,
    loss_output_name: str = "loss",
    label_name: str = "label",
    forced_task: str | None = None,
) -> TrainableModel:
    """Convert a model into a graph that can be trained.

    Parameters
    ----------
    source : estimator, onnx.ModelProto, bytes, str or os.PathLike
        Fitted scikit-learn estimator or pipeline, or an ONNX model.
    weights_to_train : str or sequence of str, default=None
        Names or glob patterns of the weights to train; the learned ones by default.
    n_features : int, default=None
        Number of columns of X, for a scikit-learn estimator without ``n_features_in_``.
    dtype : dtype, default=numpy.float32
        Type that a scikit-learn estimator is converted to.
    loss_output_name, label_name : str
        An ONNX model with such an output and such an input is trained as it is.
    forced_task : {"regression", "classification"}, default=None
        Kind of the model where its outputs do not tell: an ONNX classifier without an output of labels.

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
    preprocessing: ModelProto | None = None
    task = origin = None
    has_intercept = True
    if is_onnx_source(source):
        model = decompose_operators(load_onnx(source))
    elif isinstance(source, BaseEstimator) or hasattr(source, "get_params"):
        count = getattr(source, "n_features_in_", n_features)
        if count is None:
            raise ConversionError(
                f"The number of features of {type(source).__name__} is unknown: fit it first."
            )
        model = sklearn_to_onnx(source, count, dtype)
        preprocessing = preprocessing_graph(source, count, dtype)
        task = "classification" if is_classifier(source) else "regression"
        origin = _origin(source)
        has_intercept = getattr(_last_step(source), "fit_intercept", True) is not False
    else:
        raise ConversionError(
            f"{type(source).__name__} is neither a scikit-learn estimator nor an ONNX model (ModelProto, "
            "bytes or path)."
        )
    return _assemble(
        model,
        weights_to_train,
        preprocessing,
        forced_task or task,
        loss_output_name,
        label_name,
        origin,
        has_intercept,
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


def _assemble(
    model: ModelProto,
    weights_to_train: Any,
    preprocessing: ModelProto | None,
    task: str | None,
    loss_output_name: str,
    label_name: str,
    origin: str | None,
    has_intercept: bool,
) -> TrainableModel:
    model, reserved = _without_reserved_names(_with_free_rows(model))
    model, original_names = renamed_weights(name_nodes(model))
    original_names = {new: reserved.get(old, old) for new, old in original_names.items()}
    types = value_types(model)
    weights = find_weights(model, _shared_with(model, preprocessing))
    if not has_intercept:
        weights = {
            name: replace(weight, learned=weight.learned and weight.role != "intercept")
            for name, weight in weights.items()
        }
    trained = select_weights(weights, weights_to_train, original_names)
    weights = {
        name: Weight(name, weight.role, name in trained or weight.learned, weight.fans)
        for name, weight in weights.items()
    }
    loss, label = _own_loss(model, loss_output_name, label_name)
    head = None if loss else find_head(model, types, weights, task)
    target = str(loss) if head is None else head.score
    trained = _reaching(model, trained, target, original_names, explicit=weights_to_train is not None)
    input_name, known = _single_input(model, types, label)
    columns = known.shape[1] if known.shape is not None and len(known.shape) == 2 else None
    return TrainableModel(
        model=model,
        input_name=input_name,
        n_features=columns if isinstance(columns, int) else None,
        input_dtype=np.dtype(np.float64 if known.elem_type == TensorProto.DOUBLE else np.float32),
        head=head,
        weights=weights,
        trained=trained,
        original_names=original_names,
        loss=loss,
        label=label,
        origin=origin,
        reserved_names=reserved,
    )


def _last_step(source: Any) -> Any:
    return _last_step(source.steps[-1][1]) if isinstance(source, Pipeline) else source


def _without_reserved_names(model: ModelProto) -> tuple[ModelProto, dict[str, str]]:
    """Return the model without names that training graphs use, and the old name of each new one."""
    names = graph_names(model.graph)
    taken = sorted(name for name in names if name.startswith(RESERVED))
    renamed = {}
    for name in taken:
        new = f"user_{name}"
        while new in names:
            new = f"user_{new}"
        names.add(new)
        renamed[name] = new
    return map_names(model, renamed), {new: old for old, new in renamed.items()}


def _origin(source: Any) -> str:
    """Name the estimator, or the last step of a pipeline, that is trained."""
    if isinstance(source, Pipeline):
        name, last = source.steps[-1]
        return f"{type(last).__name__} (step {name!r})"
    return type(source).__name__


def _with_free_rows(model: ModelProto) -> ModelProto:
    """Return the model for any number of rows: exporters often fix the one they were shown."""
    model = copy_model(model)
    weights = {tensor.name for tensor in model.graph.initializer}
    for value in (*model.graph.input, *model.graph.output):
        dims = value.type.tensor_type.shape.dim
        if dims and dims[0].HasField("dim_value") and value.name not in weights:
            dims[0].dim_param = "rows"
    del model.graph.value_info[:]
    return model


def _shared_with(model: ModelProto, preprocessing: ModelProto | None) -> list[str]:
    """Return the names of the initializers that the preprocessing uses in the same way."""
    frozen = set() if preprocessing is None else set(_uses(preprocessing).values())
    return [name for name, use in _uses(model).items() if use in frozen]


def _uses(model: ModelProto) -> dict[str, tuple]:
    """Return what identifies each initializer in another conversion: its value, and its first reader."""
    readers: dict[str, tuple[str, int]] = {}
    for node in model.graph.node:
        for position, name in enumerate(node.input):
            readers.setdefault(name, (node.op_type, position))
    return {
        name: (*readers[name], array.dtype.str, array.shape, array.tobytes())
        for name, array in initializer_arrays(model).items()
        if array.dtype.kind != "O" and name in readers
    }


def _own_loss(model: ModelProto, loss: str, label: str) -> tuple[str | None, str | None]:
    outputs = {value.name for value in model.graph.output}
    inputs = {value.name for value in model.graph.input}
    return (loss, label) if loss in outputs and label in inputs else (None, None)


def _reaching(
    model: ModelProto, trained: list[str], output: str, original: dict[str, str], explicit: bool
) -> list[str]:
    """Return the weights that what is trained depends on; a weight asked for that does not is an error."""
    kept = {tensor.name for tensor in extract_model(model, [output]).graph.initializer}
    lost = [original.get(name, name) for name in trained if name not in kept]
    if lost and (explicit or len(lost) == len(trained)):
        raise ConversionError(
            f"Weights {lost} come after the scores that are trained ({output!r}): leave them out of "
            "weights_to_train."
        )
    return [name for name in trained if name in kept]


def _single_input(
    model: ModelProto, types: dict[str, TensorType], label: str | None
) -> tuple[str, TensorType]:
    initializers = {tensor.name for tensor in model.graph.initializer}
    names = [value.name for value in model.graph.input if value.name not in initializers | {label}]
    if len(names) != 1:
        raise ConversionError(f"The graph must have one input for X, it has {names}.")
    known = types.get(names[0])
    if known is None or known.elem_type not in (TensorProto.FLOAT, TensorProto.DOUBLE):
        raise ConversionError(f"Input {names[0]!r} of the graph must be a float32 or float64 tensor.")
    return names[0], known
