"""Put constraints on the initializers of a graph, and take them off again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from onnx import ModelProto, NodeProto, helper, numpy_helper

from ...graphs import (
    GraphBuilder,
    append_nodes,
    copy_model,
    graph_names,
    initializer_arrays,
    map_names,
    opset_versions,
    prune,
    replace_nodes,
)
from .base import Constraint


@dataclass(frozen=True)
class Reparametrisation:
    """Constraints on parameters of a graph, whose initializers are free numbers.

    Both mappings go by the name of the initializer; tensors are the names of the parameters.
    """

    constraints: Mapping[str, Constraint] = field(default_factory=dict)
    tensors: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, model: ModelProto, constraints: Mapping[str, Constraint]
    ) -> tuple[ModelProto, Reparametrisation]:
        """Return a model that computes the same from free numbers, and what was put on it."""
        if not constraints:
            return model, cls()
        arrays = initializer_arrays(model, constraints)
        op = GraphBuilder(opset_versions(model).get("", 18), existing_names=graph_names(model.graph))
        free, tensors = {}, {}
        for name, constraint in constraints.items():
            dtype = arrays[name].dtype
            op.float_dtype = dtype
            free[name] = np.asarray(constraint.free(arrays[name]), dtype=dtype)
            op.set_type(name, helper.np_dtype_to_tensor_dtype(dtype), free[name].shape)
            tensors[name] = constraint.write(op, name)
        model = map_names(model, tensors)
        names = {tensor: name for name, tensor in tensors.items()}
        for tensor in model.graph.initializer:
            if tensor.name in names:
                name = names[tensor.name]
                tensor.CopyFrom(numpy_helper.from_array(free[name], name))
        return append_nodes(model, op, first=True), cls(constraints, tensors)

    def by_rows(self, model: ModelProto) -> ModelProto:
        """Return the model, or a part of it, that computes only the rows it looks up of large tables."""
        tables = {self.tensors[name]: name for name, own in self.constraints.items() if own.by_row}

        def first_look_up(node: NodeProto, op: GraphBuilder) -> bool:
            name = tables.get(node.input[0])
            axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
            if name is None or axis:
                return False
            op.float_dtype = op.dtype(name) or op.float_dtype
            rows = op.Gather(name, node.input[1], axis=0)
            op.node("Identity", self.constraints[name].write(op, rows), outputs=list(node.output))
            return True

        return prune(replace_nodes(model, {("", "Gather"): first_look_up})) if tables else model

    def undone(self, model: ModelProto) -> ModelProto:
        """Return the model, or a part of it, whose initializers are its parameters again."""
        if not self.constraints:
            return model
        model = copy_model(model)
        for tensor in model.graph.initializer:
            if tensor.name in self.constraints:
                array = numpy_helper.to_array(tensor)
                values = np.asarray(self.constraints[tensor.name].values(array), dtype=array.dtype)
                tensor.CopyFrom(numpy_helper.from_array(values, self.tensors[tensor.name]))
        computed = set(self.tensors.values())
        kept = [node for node in model.graph.node if computed.isdisjoint(node.output)]
        del model.graph.node[:]
        model.graph.node.extend(kept)
        return map_names(prune(model), {tensor: name for name, tensor in self.tensors.items()})
