"""The derivatives of a function as graphs, compositions of the transforms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from onnx import ModelProto

from ..graphs import (
    GraphBuilder,
    append_nodes,
    graph_names,
    make_value_info,
    map_names,
    opset_versions,
    value_types,
)
from ..transforms import directional, gradient
from ..transforms.reverse import value_and_gradient

__all__ = ["FunctionGraphs"]


@dataclass
class FunctionGraphs:
    """Graphs of a function with one output, and of its derivatives with respect to some inputs."""

    value: ModelProto
    wrt: list[str]

    @cached_property
    def output(self) -> str:
        """Name of the output."""
        return self.value.graph.output[0].name

    @cached_property
    def inputs(self) -> list[str]:
        """Names of all inputs."""
        given = {tensor.name for tensor in self.value.graph.initializer}
        return [value.name for value in self.value.graph.input if value.name not in given]

    @cached_property
    def rank(self) -> int | None:
        """Rank of the output, None if it is unknown."""
        known = value_types(self.value)[self.output].shape
        return None if known is None else len(known)

    @cached_property
    def output_shape(self) -> tuple[int, ...] | None:
        """Shape of the output of a sample, None if it is unknown."""
        shape = (value_types(self.value)[self.output].shape or (None, None))[1:]
        known = tuple(size for size in shape if isinstance(size, int))
        return known if len(known) == len(shape) else None

    def selected(self, index: int | None) -> ModelProto:
        """Return the output, and the gradient of the sum of one of its columns; of all values for None."""
        names, types = graph_names(self.value.graph), value_types(self.value)
        op = GraphBuilder(
            opset_versions(self.value)[""], existing_names=names, types=types, prefix="selected_"
        )
        known = types[self.output]
        column = self.output if index is None else op.Gather(self.output, index, axis=1)
        total = op.ReduceSum(column, keepdims=0)
        info = make_value_info(total, known._replace(shape=()))
        model = append_nodes(self.value, op, outputs=[*self.value.graph.output, info])
        return value_and_gradient(model, total, self.wrt)

    @cached_property
    def vjp(self) -> ModelProto:
        """Gradient of the product of the output and ``<output>_grad``."""
        return gradient(self.value, self.wrt)

    @cached_property
    def jvp(self) -> ModelProto:
        """Derivative along ``<input>_direction``."""
        return directional(self.value, self.wrt)

    @cached_property
    def hessian_vector(self) -> ModelProto:
        """Derivative along ``<input>_direction`` of the gradient, by reverse mode over reverse mode."""
        second = gradient(self.vjp, self.wrt)
        seeds = [value.name for value in second.graph.input][len(self.inputs) + 1 :]
        products = [value.name for value in second.graph.output]
        new = dict(zip(seeds, (f"{name}_direction" for name in self.wrt), strict=True))
        new |= dict(zip(products, (f"{name}_hessian_vector" for name in self.wrt), strict=True))
        return map_names(second, new)

    def of_parameters(self, names: Sequence[str]) -> ModelProto:
        """Return the gradient with respect to weights."""
        return gradient(self.value, names)
