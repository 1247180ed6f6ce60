"""Losses as outputs of a graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from onnx import ModelProto, TensorProto, helper

from .. import plugins
from ..graphs import (
    GraphBuilder,
    TensorType,
    append_nodes,
    graph_names,
    inline_functions,
    make_value_info,
    opset_versions,
    value_types,
)
from ..penalties import ElasticPenalty
from ..runtime.errors import runtime_errors
from .base import BaseLoss
from .raw_scores import find_raw_scores
from .resolve import resolve_loss

__all__ = ["add_loss_output"]

#: Opset of the loss if the graph imports only other domains.
DEFAULT_OPSET = 18
#: Oldest opset in which ReduceSum takes axes as an input.
MIN_OPSET = 13
FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE)


@runtime_errors()
def add_loss_output(
    onx: ModelProto,
    score_name: Any = "squared_error",
    loss_name: str = "loss",
    label_name: str | None = None,
    weight_name: str | None = None,
    penalty: Mapping[str, Any] | None = None,
    output_index: int | str | None = None,
    **kwargs: Any,
) -> ModelProto:
    """Return a graph with a loss as its first output and the labels as an additional input.

    The loss is the sum over samples and outputs, not a mean; each sample is multiplied by its weight if
    there are weights: ``squared_error`` is the sum of ``(f - y) ** 2``, without a factor 1/2.

    Parameters
    ----------
    onx : onnx.ModelProto
        Model; it is not changed.
    score_name : str, type or BaseLoss, default="squared_error"
        Loss. ``"log_loss"`` takes int64 labels of shape (n,) and raw scores: if the output is a softmax or
        sigmoid, the loss reads the input of this operator. The other built-in losses take labels with the
        shape and type of the output.
    loss_name : str, default="loss"
        Name of the new output, a scalar of shape ().
    label_name : str, default=None
        Name of the new input; by default ``"label"``, or ``"y_true"`` if the graph already has a tensor with
        that name, as those of classifiers do.
    weight_name : str, default=None
        Name of an input for sample weights, of shape (n,); no weights by default.
    penalty : dict, default=None
        ``{weight: {"l1": a, "l2": b}}`` or ``{weight: b}`` adds ``a * |w| + b * w ** 2``, summed
        over an initializer or an input of the graph.
    output_index : int or str, default=None
        Output that is compared with the labels, by index or name; required if several outputs are floats.
    **kwargs
        Parameters of the loss, such as ``l1_weight`` and ``l2_weight`` of ``"elastic"``.

    Returns
    -------
    onnx.ModelProto
        New graph, whose outputs are the loss and those of the model.

    Raises
    ------
    ValueError
        If the output does not exist, or is not a float tensor of two dimensions; if the loss takes raw scores
        and those of the output's probabilities are not found; if a name exists already; if a penalty names no
        weight of the graph; if the opset is older than 13.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.losses import add_loss_output
    >>> model = parser.parse_model(
    ...     '<ir_version: 8, opset_import: ["": 18]> g (float[N,2] x) => (float[N,2] y) { y = Neg (x) }'
    ... )
    >>> [output.name for output in add_loss_output(model).graph.output]
    ['loss', 'y']
    """
    onx = inline_functions(onx)
    types = value_types(onx)
    output = _pick_output(onx, output_index, types)
    known = _check_output(output, types.get(output))
    if label_name is None:
        label_name = "y_true" if "label" in graph_names(onx.graph) else "label"
    names = _claim_names(onx, loss_name, label_name, weight_name)
    loss = _definition(score_name, kwargs)
    if loss.integer_labels:
        output = find_raw_scores(onx, output, types)
        known = _check_output(output, types.get(output))
    op = GraphBuilder(
        _check_opset(onx),
        dtype=helper.tensor_dtype_to_np_dtype(known.elem_type),
        existing_names=names,
        types=types,
        prefix="loss_",
    )
    n_samples = (known.shape or (None,))[:1]
    label = TensorType(TensorProto.INT64, n_samples) if loss.integer_labels else known
    op.set_type(label_name, *label)
    op.set_type(output, *known)
    with plugins.blamed(loss, "forward"):
        losses = loss.forward(op, label_name, output)
    inputs = [make_value_info(label_name, label)]
    if weight_name is not None:
        inputs.append(make_value_info(weight_name, TensorType(known.elem_type, n_samples)))
        losses = op.Mul(losses, weight_name)
    weights = {value.name for value in (*onx.graph.input, *onx.graph.initializer)}
    terms = [op.ReduceSum(losses, keepdims=0), *_penalties(op, penalty or {}, weights)]
    total = terms[0]
    for term in terms[1:]:
        total = op.Add(total, term)
    op.node("Identity", total, outputs=[loss_name])
    scalar = make_value_info(loss_name, TensorType(known.elem_type, ()))
    return append_nodes(onx, op, inputs=inputs, outputs=[scalar, *onx.graph.output])


def _definition(spec: Any, params: dict[str, Any]) -> BaseLoss:
    """Return a loss, with the parameters of its textbook definition unless it is given as an object."""
    loss = resolve_loss(spec, **params)
    if not isinstance(spec, BaseLoss):
        loss.set_params(**{k: v for k, v in loss.definition_params.items() if k not in params})
    return loss


def _claim_names(onx: ModelProto, *new_names: str | None) -> set[str]:
    """Return all names of the graph with the new ones, or raise an error if a name exists already."""
    names = graph_names(onx.graph)
    for name in filter(None, new_names):
        if name in names:
            raise ValueError(f"The graph already has a tensor named {name!r}. Choose another name.")
        names.add(name)
    return names


def _check_opset(onx: ModelProto) -> int:
    version = opset_versions(onx).get("", DEFAULT_OPSET)
    if version < MIN_OPSET:
        raise ValueError(
            f"The graph has opset {version}, and a loss requires {MIN_OPSET} or later. Convert the graph "
            "with ortlearn.conversion.pin_versions first."
        )
    return version


def _pick_output(onx: ModelProto, index: int | str | None, types: Mapping[str, TensorType]) -> str:
    names = [output.name for output in onx.graph.output]
    floats = [name for name in names if name in types and types[name].elem_type in FLOATS]
    candidates = floats if len(floats) == 1 else names
    if index is None and len(candidates) == 1:
        return candidates[0]
    if isinstance(index, str) and index in names:
        return index
    if isinstance(index, int) and -len(names) <= index < len(names):
        return names[index]
    raise ValueError(
        f"output_index={index!r} is not an output. Pass the name or the index of one of {names}."
    )


def _check_output(name: str, known: TensorType | None) -> TensorType:
    if known is None or known.elem_type not in FLOATS:
        raise ValueError(f"Output {name!r} must be a float32 or float64 tensor to compare with labels.")
    if known.shape is None or len(known.shape) != 2:
        raise ValueError(f"Output {name!r} must have two dimensions (samples, outputs), not {known.shape}.")
    return known


def _penalties(op: GraphBuilder, penalty: Mapping[str, Any], weights: set[str]) -> Iterator[Any]:
    for weight, factors in penalty.items():
        if weight not in weights:
            raise ValueError(
                f"The penalty names {weight!r}, which is not an initializer or input of the graph."
            )
        factors = factors if isinstance(factors, Mapping) else {"l2": factors}
        unknown = set(factors) - {"l1", "l2"}
        if unknown or not any(factors.values()) or any((factor or 0) < 0 for factor in factors.values()):
            raise ValueError(
                f"The penalty of {weight!r} is {dict(factors)}. Set l1, l2 or both to numbers above zero."
            )
        yield ElasticPenalty(l1=factors.get("l1") or 0.0, l2=factors.get("l2") or 0.0).forward(op, weight)
