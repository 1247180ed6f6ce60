"""One ONNX file of all members with intervals as further outputs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from onnx import ModelProto, TensorProto, helper

from ..exceptions import ConversionError
from ..graphs import (
    GraphBuilder,
    TensorType,
    append_nodes,
    graph_names,
    make_value_info,
    map_names,
    opset_versions,
    value_types,
)
from ..inference.method_outputs import MethodOutputs
from ..training.graphs.step_graphs import append_model
from .members import Member

__all__ = ["GROUP", "Writer", "composed"]

#: Input with the group of each sample.
GROUP = "group"
#: Oldest opset that the nodes of intervals are written in.
OLDEST = 13
Writer = Callable[[GraphBuilder, list[str], str], dict[str, str]]


def composed(
    members: tuple[Member, ...], write: Writer, named: Mapping[str, Any], groups: tuple, keeps_own: bool
) -> ModelProto:
    """Return one model of all members.

    ``write`` appends the nodes of intervals to their outputs and the row of each sample, and returns the new
    outputs. ``named`` is stored as metadata. The outputs of the first member are kept if ``keeps_own``.
    """
    first = members[0].estimator
    plain = any(member.tensor for member in members)
    model = first.get_trained_onnx(fused=not plain)
    if opset_versions(model).get("", OLDEST) < OLDEST:
        model = first.get_trained_onnx(keep_upgrade=True)
    model = _with_free_names(model, first)
    op = GraphBuilder(
        opset_versions(model).get("", OLDEST),
        dtype=first._model().problem.dtype,
        existing_names=graph_names(model.graph),
        types=value_types(model),
        prefix="interval_",
    )
    outputs = [_column(op, _output_name(first, model))]
    for number, member in enumerate(members[1:], start=1):
        if member.tensor:  # of the first member
            outputs.append(_inner(member.tensor, model))
            continue
        outputs.append(_appended(op, model, member, outputs[0], f"member{number}_"))
    row, inputs = "", []
    if groups:
        row = _row(op, groups)
        of_groups = TensorProto.STRING if isinstance(groups[0], str) else TensorProto.INT64
        inputs.append(make_value_info(GROUP, TensorType(of_groups, ("N",))))
    found = write(op, outputs, row)
    infos = []
    for name, tensor in found.items():
        op.node("Identity", tensor, outputs=[name])
        kind, shape = op.type(tensor) or TensorType(helper.np_dtype_to_tensor_dtype(op.float_dtype), None)
        infos.append(make_value_info(name, TensorType(kind, shape)))
    own = [value for value in model.graph.output if keeps_own and value.name not in found]
    result = append_nodes(model, op, inputs=inputs, outputs=[*own, *infos])
    helper.set_model_props(result, {**_metadata(result), "ortlearn.intervals": json.dumps(named)})
    return result


def _metadata(model: ModelProto) -> dict[str, str]:
    return {item.key: item.value for item in model.metadata_props}


def _with_free_names(model: ModelProto, estimator: Any) -> ModelProto:
    """Return the model with other names for its tensors that have those of our outputs."""
    taken = {"prediction", "lower", "upper", "quantiles", "set", GROUP} & graph_names(model.graph)
    return map_names(model, {name: f"model_{name}" for name in taken}) if taken else model


def _output_name(estimator: Any, model: ModelProto) -> str:
    """Return the output of a model that its predictions are read from."""
    fitted = estimator._model()
    scores = fitted.problem.trainable.scores
    if fitted.problem.trainable.entry.sklearn_steps is not None or (scores and scores.target_transformers):
        raise ConversionError(
            "Steps of this model run in scikit-learn, since they cannot be converted to ONNX, so that no "
            "file has the whole model: apply them to X or y first, and fit a model without them."
        )
    plan = MethodOutputs(fitted.problem, fitted.trained).plan("predict")[0]
    names = [value.name for value in model.graph.output]
    found = [name for name in (plan[0], f"model_{plan[0]}") if name in names] or names * (len(names) == 1)
    if not found:
        raise ConversionError(f"The file lacks the output {plan[0]!r}, which predictions are read from.")
    return found[0]


def _inner(tensor: str, model: ModelProto) -> str:
    """Return a tensor of the training graph that the file has, too."""
    if tensor not in graph_names(model.graph):
        raise ConversionError(f"The file lacks the tensor {tensor!r} of the training: use another method.")
    return tensor


def _column(op: GraphBuilder, name: str) -> str:
    """Write an output as a matrix in the type of the graph."""
    known = op.type(name)
    kind = helper.np_dtype_to_tensor_dtype(op.float_dtype)
    if known is not None and known.elem_type != kind:
        name = op.Cast(name, to=kind)
    shape = None if known is None else known.shape
    if shape is not None and len(shape) == 2:
        return name
    return op.Reshape(name, [-1, 1])


def _appended(op: GraphBuilder, model: ModelProto, member: Member, prediction: str, prefix: str) -> str:
    """Append a member, and return its output."""
    part = member.estimator.get_trained_onnx()
    output, names = _output_name(member.estimator, part), graph_names(part.graph)
    mapping = {name: prefix + name for name in names}
    if member.reads == "X":
        mapping |= {value.name: value.name for value in part.graph.input}
    else:
        source = model.graph.input[0].name
        read = prediction if member.reads == "prediction" else op.Concat(prediction, source, axis=1)
        mapping[part.graph.input[0].name] = read
    types = value_types(part)
    append_model(op, part, mapping, prefix + "{}")
    if output in types:
        op.set_type(mapping[output], *types[output])
    return _column(op, mapping[output])


def _row(op: GraphBuilder, groups: tuple) -> str:
    """Write the row of the constants for the group of each sample."""
    kind = "strings" if isinstance(groups[0], str) else "int64s"
    options: Any = {f"keys_{kind}": list(groups), "values_int64s": list(range(len(groups)))}
    options["default_int64"] = len(groups)
    return op.node("LabelEncoder", GROUP, domain="ai.onnx.ml", domain_version=2, **options)
