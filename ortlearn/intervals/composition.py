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
    prune,
    value_types,
)
from ..onnx_files.loading import INTERVALS
from ..training.graphs.step_graphs import append_model
from .members import OLDEST, Member, output_name

__all__ = ["GROUP", "Writer", "composed"]

#: Input with the group of each sample.
GROUP = "group"
#: Types of classes.
LABELS = (TensorProto.INT64, TensorProto.INT32, TensorProto.STRING)
Writer = Callable[[GraphBuilder, list[str], str, str], dict[str, str]]


def composed(
    members: tuple[Member, ...],
    write: Writer,
    named: Mapping[str, Any],
    groups: tuple,
    keeps_own: bool,
    model: ModelProto | None = None,
) -> ModelProto:
    """Return one model of all members.

    ``write`` appends nodes to their outputs, the row of each sample and the labels of the first member, and
    returns the new outputs. ``named`` is stored as metadata. The outputs of the first member are kept if
    ``keeps_own``. ``model`` replaces its file.
    """
    first = members[0].estimator
    model = model or members[0].file or first.get_trained_onnx()
    inner = {member.tensor for member in members if member.tensor}
    for others in ({}, {"fused": False}):
        if not inner <= graph_names(model.graph):
            model = first.get_trained_onnx(**others)
    if missing := inner - graph_names(model.graph):
        raise ConversionError(f"The file lacks {missing}, tensors of the training: use another method.")
    model = _with_free_names(model)
    op = GraphBuilder(
        opset_versions(model).get("", OLDEST),
        dtype=first._model().problem.dtype,
        existing_names=graph_names(model.graph),
        types=value_types(model),
        prefix="interval_",
    )
    outputs = [_matrix(op, members[0], model, "")]
    for number, member in enumerate(members[1:], start=1):
        appended = member.tensor or _appended(op, model, member, outputs[0], f"member{number}_")
        outputs.append(appended)  # a tensor is one of the first member
    row, inputs = "", []
    if groups:
        row = _row(op, groups)
        of_groups = TensorProto.STRING if isinstance(groups[0], str) else TensorProto.INT64
        inputs.append(make_value_info(GROUP, TensorType(of_groups, ("N",))))
    labels = [v.name for v in model.graph.output if v.type.tensor_type.elem_type in LABELS]
    found = write(op, outputs, row, labels[0] if labels else "")
    infos = []
    for name, tensor in found.items():
        op.node("Identity", tensor, outputs=[name])
        kind, shape = op.type(tensor) or TensorType(helper.np_dtype_to_tensor_dtype(op.float_dtype), None)
        infos.append(make_value_info(name, TensorType(kind, shape)))
    own = [value for value in model.graph.output if keeps_own and value.name not in found]
    result = prune(append_nodes(model, op, inputs=inputs, outputs=[*own, *infos]))
    names, added = getattr(first, "feature_names_in_", None), {INTERVALS: json.dumps(named)}
    if names is not None and len(model.graph.input) == 1:
        added["feature_names"] = json.dumps(names.tolist())
    helper.set_model_props(result, {**added, **{item.key: item.value for item in result.metadata_props}})
    return result


def _with_free_names(model: ModelProto) -> ModelProto:
    """Return the model with other names for its tensors that have those of our outputs."""
    taken = {"prediction", "lower", "upper", "quantiles", "set", GROUP} & graph_names(model.graph)
    return map_names(model, {name: f"model_{name}" for name in taken}) if taken else model


def _matrix(op: GraphBuilder, member: Member, model: ModelProto, prefix: str) -> str:
    """Write what a member gives, of shape (n, k)."""
    fitted = member.estimator._model()
    name, scores = output_name(fitted, model, member.method), fitted.problem.trainable.scores
    name = _column(op, prefix + name)
    if member.gives == "prediction" or scores is None:
        return name
    width = (op.shape(name) or (None,))[-1]
    one = width == 1 if isinstance(width, int) else scores.n_outputs == 1 and scores.label is None
    if scores.label is None and scores.probabilities == scores.score:
        name = op.Sigmoid(name) if one else op.Softmax(name, axis=1)
    if not one:
        return name
    return op.Concat(op.Sub(op.constant(1.0), name), name, axis=1)


def _column(op: GraphBuilder, name: str) -> str:
    """Write an output as a matrix in the type of the graph."""
    shape, kind = op.shape(name), helper.np_dtype_to_tensor_dtype(op.float_dtype)
    name = name if op.dtype(name) in (None, op.float_dtype) else op.Cast(name, to=kind)
    return name if shape is not None and len(shape) == 2 else op.Reshape(name, [-1, 1])


def _appended(op: GraphBuilder, model: ModelProto, member: Member, prediction: str, prefix: str) -> str:
    """Append a member, and return its output."""
    part = member.estimator.get_trained_onnx()
    names = graph_names(part.graph)
    mapping = {name: prefix + name for name in names}
    if member.reads == "X":
        mapping |= {value.name: value.name for value in part.graph.input}
    else:
        kind = part.graph.input[0].type.tensor_type.elem_type
        given = [prediction] if member.reads == "prediction" else [prediction, model.graph.input[0].name]
        dtype = helper.tensor_dtype_to_np_dtype(kind)
        given = [name if op.dtype(name) == dtype else op.Cast(name, to=kind) for name in given]
        mapping[part.graph.input[0].name] = op.Concat(*given, axis=1) if len(given) > 1 else given[0]
    types = value_types(part)
    append_model(op, part, mapping, prefix + "{}")
    for name, known in types.items():
        op.set_type(mapping.get(name, name), *known)
    return _matrix(op, member, part, prefix)


def _row(op: GraphBuilder, groups: tuple) -> str:
    """Write the row of the constants for the group of each sample."""
    kind = "strings" if isinstance(groups[0], str) else "int64s"
    options: Any = {f"keys_{kind}": list(groups), "values_int64s": list(range(len(groups)))}
    options["default_int64"] = len(groups)
    return op.node("LabelEncoder", GROUP, domain="ai.onnx.ml", domain_version=2, **options)
