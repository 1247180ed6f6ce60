"""Replace constrained initializers of a graph by free values, and convert them back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from onnx import ModelProto, NodeProto, helper, numpy_helper

from ... import graphs
from ...graphs.editing import with_fields
from .base import Constraint


@dataclass(frozen=True)
class Reparametrisation:
    """Constrained parameters of a graph, whose initializers are free values."""

    constraints: Mapping[str, Constraint] = field(default_factory=dict)  # by initializer
    tensors: Mapping[str, str] = field(default_factory=dict)  # names of the parameters, by initializer

    @classmethod
    def of(
        cls, model: ModelProto, constraints: Mapping[str, Constraint]
    ) -> tuple[ModelProto, Reparametrisation]:
        """Return an equivalent model of free values, and the reparametrisation applied."""
        if not constraints:
            return model, cls()
        arrays = graphs.initializer_arrays(model, constraints)
        op = graphs.GraphBuilder(
            graphs.opset_versions(model).get("", 18), existing_names=graphs.graph_names(model.graph)
        )
        free, tensors = {}, {}
        for name, constraint in constraints.items():
            dtype = arrays[name].dtype
            op.float_dtype = dtype
            free[name] = np.asarray(constraint.free(arrays[name]), dtype=dtype)
            op.set_type(name, helper.np_dtype_to_tensor_dtype(dtype), free[name].shape)
            tensors[name] = constraint.write(op, name)
        model = graphs.map_names(model, tensors)
        names = {tensor: name for name, tensor in tensors.items()}
        for tensor in model.graph.initializer:
            if tensor.name in names:
                name = names[tensor.name]
                tensor.CopyFrom(numpy_helper.from_array(free[name], name))
        return graphs.append_nodes(model, op, first=True), cls(constraints, tensors)

    @property
    def tables(self) -> dict[str, str]:
        """The initializers whose parameters are computed row by row, by the name of the parameter."""
        return {self.tensors[name]: name for name, item in self.constraints.items() if item.by_row}

    def by_rows(self, model: ModelProto) -> ModelProto:
        """Return the model, or a part of it, that computes only those rows of tables that it looks up."""
        tables = self.tables

        def first_look_up(node: NodeProto, op: graphs.GraphBuilder) -> bool:
            name = tables.get(node.input[0])
            axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
            if name is None or axis:
                return False
            op.float_dtype = op.dtype(name) or op.float_dtype
            rows = op.Gather(name, node.input[1], axis=0)
            self.constraints[name].write(op, rows)
            op.nodes[-1].output[:] = node.output
            return True

        return graphs.prune(graphs.replace_nodes(model, {("", "Gather"): first_look_up})) if tables else model

    def undone(self, model: ModelProto) -> ModelProto:
        """Return the model, or a part of it, with its parameters as initializers instead of free values."""
        if not self.constraints:
            return model
        model = graphs.copy_model(model)
        for tensor in model.graph.initializer:
            if tensor.name in self.constraints:
                array = numpy_helper.to_array(tensor)
                values = np.asarray(self.constraints[tensor.name].values(array), dtype=array.dtype)
                tensor.CopyFrom(numpy_helper.from_array(values, self.tensors[tensor.name]))
        return _read_free_values(model, self.tensors)

    def without_signs(self, model: ModelProto) -> ModelProto:
        """Return the model, or a part of it, without the absolute values of values that updates project."""
        equal = {n: self.tensors[n] for n, own in self.constraints.items() if own.projected and own.penalised}
        return _read_free_values(model, equal) if equal else model


def _read_free_values(model: ModelProto, tensors: Mapping[str, str]) -> ModelProto:
    """Return the model with free values in the places of the parameters."""
    computed = set(tensors.values())
    kept = [node for node in model.graph.node if computed.isdisjoint(node.output)]
    names = {tensor: name for name, tensor in tensors.items()}
    return graphs.prune(graphs.map_names(with_fields(model, node=kept), names))
