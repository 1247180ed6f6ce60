"""Transformers inside of what skl2onnx converts, written by their model definitions."""

from __future__ import annotations

from typing import Any

from ...exceptions import ConversionError
from ...models import ModelWriter, definition_of
from .writing import add_nodes, new_builder, start, write_as

__all__ = ["convert"]


def convert(scope: Any, operator: Any, container: Any) -> None:
    """Write a transformer as its definition does."""
    estimator = operator.raw_operator
    definition = definition_of(estimator)
    if not definition.covers(estimator):
        raise ConversionError(f"{estimator!r} has no form in ONNX with these parameters")
    first, x = start(scope, operator)
    op = ModelWriter(first.float_dtype)
    op.prefix = new_builder(scope).prefix
    transformed = definition.write(op, estimator, x).transformed
    assert transformed is not None
    write_as(op, transformed, operator.outputs[0])
    names = {name: op.unique(name) for name in op.parameters}
    for tensor in op.initializers:
        tensor.name = names.get(tensor.name, tensor.name)
    for node in op.nodes:
        node.input[:] = [names.get(name, name) for name in node.input]
    op.nodes[:0] = first.nodes
    add_nodes(container, op)
