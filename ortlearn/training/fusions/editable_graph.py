"""A graph that passes edit: nodes, their producers and readers, constants and types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper

from ...graphs import GraphBuilder, TensorType, graph_names, node_inputs, opset_versions, prune, value_types

__all__ = ["EditableGraph"]


class EditableGraph:
    """Nodes, constants and types of a graph, for passes that replace nodes.

    Parameters
    ----------
    model : onnx.ModelProto
        Graph of a step.

    Attributes
    ----------
    nodes : list of onnx.NodeProto
        Nodes, in order.
    outputs : set of str
        Tensors that must keep their names.
    """

    def __init__(self, model: ModelProto):
        self._model = model
        self.nodes = [NodeProto.FromString(node.SerializeToString()) for node in model.graph.node]
        self.outputs = {value.name for value in model.graph.output}
        self._types = value_types(model)
        self._constants = {t.name: t for t in model.graph.initializer}
        self._values: dict[str, np.ndarray] = {}
        self._op = GraphBuilder(
            opset_versions(model)[""], existing_names=graph_names(model.graph), prefix="fused_"
        )
        self._index()

    def _index(self) -> None:
        self.producers = {name: node for node in self.nodes for name in node.output if name}
        self.readers: dict[str, int] = {}
        self._inner: set[str] = set()
        for node in self.nodes:
            reads = node_inputs(node)
            self._inner |= reads - set(node.input)
            times = Counter(node.input)
            for name in reads:
                self.readers[name] = self.readers.get(name, 0) + max(1, times[name])

    def replace(self, nodes: Iterable[NodeProto]) -> None:
        """Take other nodes, without those nothing needs."""
        needed, kept = set(self.outputs), []
        for node in reversed(list(nodes)):
            if needed.intersection(node.output):
                kept.append(node)
                needed |= node_inputs(node)
        self.nodes = kept[::-1]
        self._index()

    def producer(self, name: str, op_type: str | None = None) -> NodeProto | None:
        """Return the node that makes a tensor, if it is of a kind."""
        node = self.producers.get(name)
        if node is None or node.domain not in ("", "ai.onnx"):
            return None
        return node if op_type is None or node.op_type == op_type else None

    def read_once(self, name: str) -> bool:
        """Return whether a single node reads a tensor and nobody outside does."""
        return self.readers.get(name, 0) == 1 and name not in self.outputs

    def keeps_name(self, name: str) -> bool:
        """Return whether a tensor must keep its name: it is an output, or a subgraph reads it."""
        return name in self.outputs or name in self._inner

    def value(self, name: str) -> np.ndarray | None:
        """Return the value of a constant, None for any other tensor."""
        if name not in self._values:
            tensor = self._constants.get(name)
            if tensor is None:
                return None
            self._values[name] = numpy_helper.to_array(tensor)
        return self._values[name]

    def is_constant(self, name: str, value: float) -> bool:
        """Return whether a tensor is a constant with a single element of that value."""
        array = self.value(name)
        return array is not None and array.size == 1 and float(array.reshape(())) == value

    def type(self, name: str) -> TensorType | None:
        """Return what is known of a tensor."""
        return self._types.get(name)

    def shape(self, name: str) -> tuple | None:
        """Return the shape of a tensor where every dimension is a number, None otherwise."""
        known = self._types.get(name)
        if known is None or known.shape is None or not all(isinstance(d, int) for d in known.shape):
            return None
        return known.shape

    def is_float(self, name: str) -> bool:
        """Return whether a tensor is known to be float32 or float64: some operators know no other type."""
        known = self._types.get(name)
        return known is not None and known.elem_type in (TensorProto.FLOAT, TensorProto.DOUBLE)

    def is_single(self, name: str) -> bool:
        """Return whether a tensor has one element."""
        shape = self.shape(name)
        return shape is not None and int(np.prod(shape, dtype=np.int64)) == 1

    def constant(self, array: np.ndarray) -> str:
        """Return the name of a new constant."""
        name = self._op.constant(array)
        tensor = next(t for t in self._op.initializers if t.name == name)
        self._constants[name] = tensor
        self._types[name] = TensorType(tensor.data_type, array.shape)
        return name

    def make(self, op_type: str, *inputs: str, like: str, output: str | None = None, **attributes: Any):
        """Return a new node whose output has the type of another tensor, and its output."""
        outputs = None if output is None else [output]
        name = self._op.node(op_type, *inputs, outputs=outputs, **attributes)
        node = self._op.nodes.pop()
        if output is None and like in self._types:
            self._types[name] = self._types[like]
        return node, name

    def to_model(self) -> ModelProto:
        """Return the graph with the nodes as they are now."""
        result = prune(self._model)
        del result.graph.node[:]
        result.graph.node.extend(self.nodes)
        del result.graph.initializer[:]
        result.graph.initializer.extend(self._constants.values())
        del result.graph.value_info[:]
        return prune(result)
