"""Replace the head of a network: cut it at a tensor, and append a linear layer."""

import difflib
import json
import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

from ..differentiation.types.inference import infer_types
from ..exceptions import ConversionError
from ..graphs import (
    GraphBuilder,
    TensorType,
    append_nodes,
    extract_model,
    graph_names,
    make_value_info,
    opset_versions,
    value_types,
)
from ..runtime.errors import runtime_errors
from .loading import prepare_onnx, read_onnx
from .versions import MIN_IR_VERSION
from .weight_locations import FLOATS

TRAINED = "ortlearn_weights_to_train"  # metadata entry with the names of the weights to train by default
POOLING = {"mean": "ReduceMean", "max": "ReduceMax"}


@runtime_errors()
def replace_head(
    file: Any,
    at: str,
    n_outputs: int | None = None,
    *,
    classes: Sequence[Any] | None = None,
    task: str = "classification",
    axis: int = 1,
    pooling: str | None = None,
    name: str = "head",
) -> ModelProto:
    """Return an ONNX model that is cut at a tensor, with a new linear layer on it.

    The layer has the weights ``head.weight`` of shape (n_features, n_outputs) and ``head.bias``, which are
    initialized to zero. Estimators train only these two by default; ``weights_to_train`` selects others by
    their names in the file.

    Parameters
    ----------
    file : onnx.ModelProto, bytes, str or os.PathLike
        ONNX model; it is not changed.
    at : str
        Name of the tensor with the features, an output of a node. Nodes that it does not depend on are
        removed.
    n_outputs : int, default=None
        Number of classes or targets. None uses the number of ``classes``.
    classes : sequence of int or of str, default=None
        Class labels, in the order of the outputs. None uses integers from zero.
    task : {"classification", "regression"}, default="classification"
        A classifier has the outputs ``label`` and ``probabilities`` (softmax), a regressor ``prediction``.
    axis : int, default=1
        Axis of the features: 1 for (n, d) and for the channels of images (n, c, h, w), -1 for sequences
        (n, t, d).
    pooling : {"mean", "max", "flatten"} or None, default=None
        Reduction of the features of several positions to one vector: their mean, their maximum, or their
        concatenation. None requires features of shape (n, d), or ``axis=-1`` for an output at every position.
    name : str, default="head"
        Prefix of the names of new weights and nodes. A number is appended if the file has this prefix.

    Returns
    -------
    onnx.ModelProto
        Model with the opset and the inputs of ``file``.

    Raises
    ------
    ConversionError
        If the file cannot be read, or lacks the tensor, or if the tensor is not floating-point or has an
        unknown number of features.
    ValueError
        If an argument is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> from onnx import parser
    >>> from ortlearn import OrtGradientOptimizer
    >>> from ortlearn.onnx_files import replace_head
    >>> file = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,2] x) => (float[N,1] y) <float[2,2] v = {1, 1, 1, -1}, float[2,1] w = {1, 2}>
    ...     { h = MatMul (x, v) a = Abs (h) y = MatMul (a, w) }''')
    >>> new = replace_head(file, at="a", classes=["far", "near"])
    >>> X = np.random.default_rng(0).normal(size=(200, 2)).astype(np.float32)
    >>> y = np.where(np.abs(X).max(axis=1) > 1, "far", "near")
    >>> trained = OrtGradientOptimizer(new, random_state=0).fit(X, y)
    >>> list(trained.get_weights()), trained.score(X, y) > 0.9
    (['head.weight', 'head.bias'], True)
    """
    labels = _class_table(classes)
    n_outputs = _checked_outputs(n_outputs, labels, task)
    if pooling not in (None, "flatten", *POOLING):
        raise ValueError(f"pooling={pooling!r} must be 'mean', 'max', 'flatten' or None.")
    model, label = read_onnx(file)
    known = _features(model, label, at)
    dtype = helper.tensor_dtype_to_np_dtype(known.elem_type)
    body = extract_model(model, [at])
    names = graph_names(body.graph)
    name = _unused_prefix(name, names)
    op = GraphBuilder(
        opset_versions(model)[""], existing_names=names, dtype=dtype, types={at: known}, prefix=f"{name}/"
    )
    features, width, rank = _pooled(op, at, known, axis, pooling)
    weights = [f"{name}.weight", f"{name}.bias"]
    for weight, shape in zip(weights, ((width, n_outputs), (n_outputs,)), strict=True):
        op.initializers.append(numpy_helper.from_array(np.zeros(shape, dtype), weight))
    product = op.Gemm(features, *weights) if rank == 2 else op.MatMul(features, weights[0])
    score = product if rank == 2 else op.Add(product, weights[1])
    positions = tuple(known.shape or ())[: rank - 1] if rank > 2 else (None,)
    outputs = _outputs(op, score, TensorType(known.elem_type, (*positions, n_outputs)), labels, task)
    result = append_nodes(body, op, outputs=outputs)
    result.ir_version = max(result.ir_version, MIN_IR_VERSION)  # the new weights are not inputs
    helper.set_model_props(result, {**_metadata(result), TRAINED: json.dumps(weights)})
    return result


def default_weights(file: ModelProto) -> list[str] | None:
    """Return the weights to train by default according to the metadata of a file, None without."""
    found = _metadata(file).get(TRAINED)
    try:
        names = None if found is None else json.loads(found)
    except ValueError:
        names = found
    if names is None or (isinstance(names, list) and names and all(isinstance(n, str) for n in names)):
        return names
    raise ConversionError(
        f"The metadata entry {TRAINED} of the file is {found!r}, not a JSON list of names of weights: "
        "correct or remove it."
    )


def _metadata(model: ModelProto) -> dict[str, str]:
    return {entry.key: entry.value for entry in model.metadata_props}


def _class_table(classes: Sequence[Any] | None) -> np.ndarray | None:
    """Return classes as an array of integers or text."""
    if classes is None:
        return None
    table = np.asarray(classes, dtype=object)  # as other types, numpy makes texts of mixed values
    values = table.ravel().tolist()
    texts = all(isinstance(value, str) for value in values)
    whole = all(isinstance(value, int) and not isinstance(value, bool) for value in values)
    if table.ndim != 1 or not (texts or whole) or len({*values}) < len(values):
        raise ValueError(f"classes={classes!r} must be unique integers or unique strings.")
    return table.astype(object if texts else np.int64)


def _checked_outputs(n_outputs: int | None, labels: np.ndarray | None, task: str) -> int:
    """Return the number of outputs, checked against the classes and the task."""
    if task not in ("classification", "regression"):
        raise ValueError(f"task={task!r} must be 'classification' or 'regression'.")
    if labels is not None and task == "regression":
        raise ValueError("classes require task='classification'.")
    number = len(labels) if n_outputs is None and labels is not None else n_outputs
    least = 2 if task == "classification" else 1
    if labels is not None and len(labels) < 2:
        raise ValueError(f"classes={labels.tolist()} must have two or more entries.")
    if number is None:
        alternative = ", or the list of classes" if task == "classification" else ""
        raise ValueError(f"n_outputs is missing: pass the number of outputs{alternative}.")
    if not isinstance(number, int | np.integer) or isinstance(number, bool) or number < least:
        raise ValueError(f"n_outputs={n_outputs!r} must be an integer, {least} or more for {task}.")
    if labels is not None and len(labels) != number:
        raise ValueError(f"n_outputs={n_outputs} must be the number of classes, {len(labels)}.")
    return int(number)


def _features(model: ModelProto, label: str, at: str) -> TensorType:
    """Return the type and shape of the tensor of features."""
    types, declared = value_types(infer_types(prepare_onnx(model, label)), infer=False), value_types(model)
    made = [name for node in model.graph.node for name in node.output if name]
    known = {value.name for value in model.graph.input}.union(made)
    if at not in known:
        close = difflib.get_close_matches(at, sorted(known), n=3)
        hint = f"did you mean one of {close}?" if close else f"the last tensors are {_listed(made)}."
        raise ConversionError(f"at={at!r} is not a tensor of the main graph of the file: {hint}")
    found = types.get(at) or declared.get(at) or TensorType(TensorProto.UNDEFINED)
    elem_type, shape = declared.get(at, found).elem_type, found.shape
    if elem_type not in FLOATS:
        kind = TensorProto.DataType.Name(elem_type).lower() if elem_type else "unknown type"
        matrices = [
            n for n in made if n in types and types[n].elem_type in FLOATS and len(types[n].shape or ()) > 1
        ]
        raise ConversionError(
            f"Tensor {at!r} has the type {kind} instead of floating-point features: cut the file at the "
            f"input of its last layer, such as {_listed(matrices)}."
        )
    if shape is None or len(shape) < 2:
        found_shape = "an unknown shape" if shape is None else f"the shape {shape}"
        raise ConversionError(
            f"Tensor {at!r} has {found_shape}, but features require two or more dimensions, samples first: "
            "cut the file at another tensor, or export it with shapes."
        )
    return TensorType(elem_type, shape)


def _listed(names: Sequence[str]) -> str:
    """Return the last three names for a message."""
    return ", ".join(map(repr, names[-3:]))


def _pooled(
    op: GraphBuilder, at: str, known: TensorType, axis: int, pooling: str | None
) -> tuple[str, int, int]:
    """Return the input of the linear layer, its number of features, and its rank."""
    shape = known.shape or ()
    rank = len(shape)
    if not -rank <= axis < rank or axis % rank == 0:
        raise ValueError(f"axis={axis} must be an axis of {at!r}, of shape {shape}, other than the first.")
    axis %= rank
    others = [i for i in range(1, rank) if i != axis]
    if pooling is None and others and axis != rank - 1:
        raise ConversionError(
            f"Tensor {at!r} of shape {shape} has features (axis={axis}) at several positions: pool them with "
            "pooling='mean', 'max' or 'flatten', or predict at every position with axis=-1."
        )
    sizes = shape[1:] if pooling == "flatten" else (shape[axis],)
    numbers = [size for size in sizes if isinstance(size, int)]
    if len(numbers) < len(sizes):
        raise ConversionError(
            f"Tensor {at!r} of shape {shape} has an unknown number of features: export the file with shapes, "
            "or use pooling='mean' or 'max'."
        )
    if pooling is None or not others:
        return at, math.prod(numbers), rank
    if pooling == "flatten":
        return op.Flatten(at, axis=1), math.prod(numbers), 2
    axes: dict[str, Any] = {"axes": others} if op.opset < 18 else {}
    name = op.node(POOLING[pooling], at, *([] if axes else [others]), keepdims=0, **axes)
    return name, math.prod(numbers), 2


def _unused_prefix(name: str, taken: Collection[str]) -> str:
    """Return a prefix for the names of a head that is unused in the file."""
    prefix, number = name, 1
    while any(other.startswith((f"{prefix}.", f"{prefix}/")) for other in taken):
        number += 1
        prefix = f"{name}_{number}"
    return prefix


def _outputs(
    op: GraphBuilder, score: str, known: TensorType, labels: np.ndarray | None, task: str
) -> list[Any]:
    """Append the outputs of a classifier or a regressor, and return their types."""

    def named(output: str) -> str:
        return output if op.claim(output) else op.unique(output)

    if task == "regression":
        output = op.node("Identity", score, outputs=[named("prediction")])
        return [make_value_info(output, known)]
    shape = known.shape or ()
    axis, label = len(shape) - 1, named("label")
    probabilities = op.node("Softmax", score, outputs=[named("probabilities")], axis=axis)
    if labels is None:
        op.node("ArgMax", score, outputs=[label], axis=axis, keepdims=0)
    else:
        number = op.ArgMax(score, axis=axis, keepdims=0)
        op.node("Gather", op.constant(labels), number, outputs=[label], axis=0)
    kind = TensorProto.STRING if labels is not None and labels.dtype == object else TensorProto.INT64
    return [make_value_info(label, TensorType(kind, shape[:-1])), make_value_info(probabilities, known)]
