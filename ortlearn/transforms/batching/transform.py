"""The batched form of a whole graph."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
from onnx import ModelProto, ValueInfoProto

from ...differentiation.types.inference import infer_types
from ...graphs import GraphBuilder, TensorType, graph_names, make_value_info, opset_versions, value_types
from ...graphs.editing import with_fields
from .rules import RULES
from .scope import BatchScope

__all__ = ["batched_model"]


def batched_model(
    model: ModelProto, inputs: Collection[str], constants: Mapping[str, np.ndarray], size: int | str
) -> ModelProto:
    """Return the graph of ``size`` models at once, with a leading axis in ``inputs`` and ``constants``."""
    names, types = graph_names(model.graph), value_types(infer_types(model), infer=False)
    op = GraphBuilder(opset_versions(model)[""], existing_names=names, prefix="batched_")
    scope = BatchScope(model.graph, types, RULES, constants, size, op)
    scope.batched.update(inputs)
    scope.rewrite()
    infos = [_batched_info(value, size, value.name in inputs) for value in model.graph.input]
    outputs = []
    for value in model.graph.output:
        outputs.append(_batched_info(value, size, True))
        if value.name not in scope.batched:
            outputs[-1].name = scope.expanded(value.name)
    # Inference loses shapes between two loops: graphs that are batched twice need them.
    made = {name for node in op.nodes for name in node.output} - {value.name for value in outputs}
    inner = [
        _batched_info(make_value_info(name, known), size, name in scope.batched)
        for name, known in types.items()
        if name in made and known.shape is not None
    ]
    return with_fields(
        model,
        op.opsets,
        node=op.nodes,
        initializer=op.initializers,
        input=infos,
        output=outputs,
        value_info=inner,
    )


def _batched_info(value: ValueInfoProto, size: int | str, is_batched: bool) -> ValueInfoProto:
    if not is_batched:
        return value
    known = value.type.tensor_type
    dims = [dim.dim_value or dim.dim_param or None for dim in known.shape.dim]
    return make_value_info(value.name, TensorType(known.elem_type, (size, *dims)))
