"""View of a graph for reading and rewriting: nodes, producers, readers, constants, types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from .builder import GraphBuilder, TensorType
from .editing import renamed_node, with_fields
from .external_tensors import tensor_array
from .nodes import captured_names, constant_value, needed_nodes, node_inputs
from .queries import graph_names, opset_versions
from .types import value_types

__all__ = ["GraphView", "NodeRule", "replace_nodes"]

#: Tables that are created on first use, and again after the nodes have changed.
TABLES = ("producers", "readers", "captured")


#: Writes the replacement of a node with a builder, under the names of its outputs, and returns True; or
#: returns a tensor to read in place of its output; False to keep it.
NodeRule = Callable[[NodeProto, GraphBuilder], bool | str]


class GraphView:
    """The nodes of a main graph, with tables of producers, readers and constants, created on first use.

    The model itself is never changed: :meth:`rewrite` and :meth:`drop_unused` replace nodes of the view, and
    :meth:`to_model` returns a new model with them.
    """

    def __init__(
        self,
        model: ModelProto | GraphProto,
        types: Mapping[str, TensorType] | None = None,
        *,
        dtype: Any = np.float32,
        prefix: str = "",
    ):
        self.model = model
        self.graph = model.graph if isinstance(model, ModelProto) else model
        self.nodes = list(self.graph.node)
        self.outputs = [value.name for value in self.graph.output]
        self._options = {"dtype": dtype, "prefix": prefix}
        self._types = types
        self._values: dict[str, np.ndarray | None] = {}

    # -- tables ------------------------------------------------------------------------------------

    @cached_property
    def producers(self) -> dict[str, NodeProto]:
        """The node that computes each tensor."""
        return {name: node for node in self.nodes for name in node.output if name}

    @cached_property
    def readers(self) -> dict[str, list[NodeProto]]:
        """The nodes that read each tensor, once per input; once if only their subgraphs read it."""
        found: dict[str, list[NodeProto]] = {}
        for node in self.nodes:
            times = Counter(node.input)
            for name in node_inputs(node):
                found.setdefault(name, []).extend([node] * max(1, times[name]))
        return found

    @cached_property
    def captured(self) -> set[str]:
        """The tensors that subgraphs read."""
        return set().union(*map(captured_names, self.nodes))

    @cached_property
    def initializers(self) -> dict[str, TensorProto]:
        """The constant initializers, which are not also inputs."""
        inputs = {value.name for value in self.graph.input}
        return {tensor.name: tensor for tensor in self.graph.initializer if tensor.name not in inputs}

    @cached_property
    def op(self) -> GraphBuilder:
        """Builder of new nodes, with the names and types of the graph."""
        types = value_types(self.model) if self._types is None else self._types
        opset = opset_versions(self.model).get("", 18)
        return GraphBuilder(opset, existing_names=graph_names(self.graph), types=types, **self._options)

    # -- queries ---------------------------------------------------------------------------------

    def origin(self, name: str, passing: Collection[str] = ("Identity",)) -> str:
        """Return the tensor before nodes of some operators, following their first inputs."""
        node = self.producers.get(name)
        while node is not None and node.op_type in passing:
            name = node.input[0]
            node = self.producers.get(name)
        return name

    def producer(
        self, name: str, op_type: str | None = None, passing: Collection[str] = ()
    ) -> NodeProto | None:
        """Return the node that computes a tensor, if it is a given operator of the default domain.

        Nodes of the operators in ``passing`` are skipped, as in :meth:`origin`.
        """
        node = self.producers.get(self.origin(name, passing))
        wanted = node is not None and node.op_type == op_type and node.domain in ("", "ai.onnx")
        return node if op_type is None or wanted else None

    def value(self, name: str) -> np.ndarray | None:
        """Return the value of a constant: an initializer that is not an input, or the result of Constant."""
        if name not in self._values:
            self._values[name] = self._constant(name)
        return self._values[name]

    def _constant(self, name: str) -> np.ndarray | None:
        if name in self.producers:
            return constant_value(self.producers[name])
        written = self.__dict__["op"].initializers if "op" in self.__dict__ else ()
        tensor = self.initializers.get(name) or next((t for t in written if t.name == name), None)
        return None if tensor is None else tensor_array(tensor)

    def is_constant(self, name: str, value: float) -> bool:
        """Return whether a tensor is a constant with a single element of that value."""
        array = self.value(name)
        return array is not None and array.size == 1 and float(array.item()) == value

    def sizes(self, name: str) -> tuple[int, ...] | None:
        """Return the shape of a tensor, or None unless every dimension is a number."""
        shape = self.op.shape(name)
        sizes = tuple(dim for dim in shape or () if isinstance(dim, int))
        return sizes if shape is not None and len(sizes) == len(shape) else None

    def is_single(self, name: str) -> bool:
        """Return whether a tensor is known to have one element."""
        sizes = self.sizes(name)
        return sizes is not None and all(size == 1 for size in sizes)

    def is_float(self, name: str) -> bool:
        """Return whether a tensor is known to be float32 or float64."""
        known = self.op.type(name)
        return known is not None and known.elem_type in (TensorProto.FLOAT, TensorProto.DOUBLE)

    def read_once(self, name: str) -> bool:
        """Return whether exactly one node reads a tensor, which is not an output."""
        return len(self.readers.get(name, ())) == 1 and name not in self.outputs

    def keeps_name(self, name: str) -> bool:
        """Return whether a tensor is an output or is captured by a subgraph."""
        return name in self.outputs or name in self.captured

    def copy_type(self, name: str, like: str) -> str:
        """Set type and shape of a tensor to those of another one, and return its name."""
        known = self.op.type(like)
        return name if known is None else self.op.set_type(name, *known)

    # -- changes -------------------------------------------------------------------------------

    def rewrite(self, rule: Callable[[NodeProto], bool | str]) -> bool:
        """Apply a rule to each node in turn, and return whether anything has changed."""
        op, renamed, changed = self.op, dict[str, str](), False
        for node in self.nodes:
            if renamed:
                node = renamed_node(node, renamed)
                self.producers.update(dict.fromkeys(node.output, node))
            start = len(op.nodes)
            result = rule(node)
            if not result:
                del op.nodes[start:]  # nodes of a rule that returned False
                op.nodes.append(node)
                continue
            changed = True
            if isinstance(result, str) and node.output[0] in self.outputs:
                op.node("Identity", result, outputs=node.output)
            elif isinstance(result, str):
                renamed[node.output[0]] = result
        self._take(op.nodes)
        op.nodes.clear()
        return changed

    def rename(self, names: Mapping[str, str]) -> None:
        """Rename tensors that nodes compute; an Identity from one to the other is removed."""
        nodes = [renamed_node(node, names) for node in self.nodes]
        self._take([node for node in nodes if list(node.input) != list(node.output)])

    def drop_unused(self) -> None:
        """Remove the nodes that no output depends on."""
        self._take(needed_nodes(self.nodes, self.outputs))

    def _take(self, nodes: list[NodeProto]) -> None:
        self.nodes = list(nodes)
        for table in TABLES:
            self.__dict__.pop(table, None)

    def to_model(self) -> ModelProto:
        """Return a model with the current nodes, and the constants of new nodes."""
        constants = [*self.graph.initializer, *self.op.initializers]
        return with_fields(self.model, self.op.opsets, node=self.nodes, initializer=constants)


def replace_nodes(model: ModelProto, rules: Mapping[tuple[str, str], NodeRule]) -> ModelProto:
    """Return the model with some nodes of its main graph replaced; the same model if nothing was replaced.

    The rules, by domain and operator, get the node and a builder that knows the types of the tensors.
    """

    def rule(node: NodeProto) -> bool | str:
        found = rules.get(_key(node))
        return found is not None and found(node, view.op)

    view = GraphView(model)
    if not any(_key(node) in rules for node in model.graph.node):
        return model
    return view.to_model() if view.rewrite(rule) else model


def _key(node: NodeProto) -> tuple[str, str]:
    return ("" if node.domain == "ai.onnx" else node.domain), node.op_type
