"""Graphs of the same structure: one of them, and the constants in which the others differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from ...graphs import copy_model, graph_names
from ...graphs.nodes import attribute

__all__ = ["Aligned", "align"]

#: A name of a model never begins like this.
CONSTANT_OF = "ortlearn_constant_of_candidates_{}"
#: Attributes of Gemm that fused graphs have constants in, and the operand that each scales.
FACTORS = (("alpha", 1), ("beta", 2))


@dataclass(frozen=True)
class Aligned:
    """Graphs that differ in nothing but constants.

    Attributes
    ----------
    model : onnx.ModelProto
        The first of them; constants in which they differ have names of their own.
    constants : dict of str to ndarray of shape (n_models, ...)
        Values of these.
    """

    model: ModelProto
    constants: dict[str, np.ndarray]


def align(models: Sequence[ModelProto], dtype: Any = np.float32) -> Aligned | None:
    """Return graphs as one with constants for each; None where they differ in more than that.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.search.batching import align
    >>> text = '''<ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N] x) => (float[N] y) <float a = {%d}> { y = Mul (x, a) }'''
    >>> found = align([parser.parse_model(text % value) for value in (1, 2)])
    >>> {name: values.tolist() for name, values in found.constants.items()}
    {'ortlearn_constant_of_candidates_0': [1.0, 2.0]}
    """
    if len({tuple(sorted((i.domain, i.version) for i in model.opset_import)) for model in models}) > 1:
        return None
    template = copy_model(models[0])
    walk = _Walk(np.dtype(dtype))
    try:
        walk.graphs(template.graph, [model.graph for model in models], None)
    except _Different:
        return None
    assert not graph_names(models[0].graph) & walk.constants.keys()
    return Aligned(template, walk.constants)


class _Different(Exception):
    """Two graphs have another structure."""


class _Names:
    """What the tensors of each graph are: constants, or tensors of the first graph under other names."""

    def __init__(self, graphs: Sequence[GraphProto], outer: _Names | None):
        self.constants = [{tensor.name: tensor for tensor in graph.initializer} for graph in graphs]
        self.same: list[dict[str, str]] = [{} for _ in graphs]
        self.outer = outer

    def add(self, names: Sequence[str]) -> None:
        for same, name in zip(self.same, names, strict=True):
            same[name] = names[0]

    def find(self, number: int, name: str) -> tuple[_Names, str | TensorProto]:
        """Return what a name of a graph stands for, and where that is known."""
        if name in self.same[number]:
            return self, self.same[number][name]
        if name in self.constants[number]:
            return self, self.constants[number][name]
        if self.outer is None:
            raise _Different
        return self.outer.find(number, name)


class _Walk:
    """A walk over some graphs at once, which writes the names of constants into the first one."""

    def __init__(self, dtype: np.dtype) -> None:
        self.constants: dict[str, np.ndarray] = {}
        self._dtype = dtype
        self._known: dict[tuple[int, tuple[str, ...]], str] = {}

    def graphs(self, template: GraphProto, graphs: Sequence[GraphProto], outer: _Names | None) -> None:
        names = _Names(graphs, outer)
        _check_alike([(len(g.node), len(g.input), len(g.output)) for g in graphs])
        for infos in zip(*(graph.input for graph in graphs), strict=True):
            _check_alike([info.type.SerializeToString(deterministic=True) for info in infos])
            names.add([info.name for info in infos])
        written: list[NodeProto] = []
        for node, *nodes in zip(list(template.node), *(graph.node for graph in graphs), strict=True):
            written += [*self._nodes(template, node, nodes, names), node]
        del template.node[:]
        template.node.extend(written)
        for infos in zip(*(graph.output for graph in graphs), strict=True):
            found = [names.find(number, info.name)[1] for number, info in enumerate(infos)]
            if any(what != infos[0].name for what in found):
                raise _Different

    def _nodes(
        self, template: GraphProto, node: NodeProto, nodes: Sequence[NodeProto], names: _Names
    ) -> list[NodeProto]:
        """Write what a node of the first graph reads, and return the nodes that go before it."""
        _check_alike([(n.domain, n.op_type, len(n.input), len(n.output)) for n in nodes])
        for slot, read in enumerate(zip(*(n.input for n in nodes), strict=True)):
            node.input[slot] = self._read(template, read, names)
        before = self._factors(template, node, nodes) if node.op_type == "Gemm" else []
        for written in zip(*(n.output for n in nodes), strict=True):
            names.add(written)
        factors = {factor for factor, _ in FACTORS} if node.op_type == "Gemm" else ()
        known = [[a for a in n.attribute if a.name not in factors] for n in (node, *nodes)]
        _check_alike([[a.name for a in attributes] for attributes in known])
        for own, *attributes in zip(*known, strict=True):
            if own.type == AttributeProto.GRAPH:
                self.graphs(own.g, [attribute.g for attribute in attributes], names)
            else:
                _check_alike([attribute.SerializeToString(deterministic=True) for attribute in attributes])
        return before

    def _factors(self, template: GraphProto, node: NodeProto, nodes: Sequence[NodeProto]) -> list[NodeProto]:
        """Take factors in which graphs differ out of a Gemm: they are constants like others."""
        before = []
        for factor, slot in FACTORS:
            values = [attribute(n, factor, 1.0) for n in nodes]
            if len(set(values)) == 1 or len(node.input) <= slot:
                continue
            name = self._constant(template, (node.name, factor), np.array(values, dtype=self._dtype))
            scaled = f"{name}_scaled"
            before.append(helper.make_node("Mul", [node.input[slot], name], [scaled], name=scaled))
            node.input[slot] = scaled
            kept = [a for a in node.attribute if a.name != factor]
            del node.attribute[:]
            node.attribute.extend(kept)
        return before

    def _constant(self, template: GraphProto, key: tuple[str, ...], values: np.ndarray) -> str:
        """Return the name of a constant of each graph."""
        known = id(template), key
        if known not in self._known:
            name = self._known[known] = CONSTANT_OF.format(len(self._known))
            self.constants[name] = values
            template.initializer.append(numpy_helper.from_array(np.asarray(values[0]), name))
        return self._known[known]

    def _read(self, template: GraphProto, read: Sequence[str], names: _Names) -> str:
        """Return the name under which the first graph reads what all of them read in one slot."""
        if not any(read):
            return ""
        found = [names.find(number, name) for number, name in enumerate(read)]
        tensors = [what for _, what in found if isinstance(what, TensorProto)]
        if not tensors:
            _check_alike([what for _, what in found])
            return read[0]
        if len(tensors) < len(found):
            raise _Different
        _check_alike([(tensor.data_type, tuple(tensor.dims)) for tensor in tensors])
        arrays = [numpy_helper.to_array(tensor) for tensor in tensors]
        if all(array.tobytes() == arrays[0].tobytes() for array in arrays):
            return read[0]
        return self._constant(template, tuple(read), np.stack(arrays))


def _check_alike(values: Sequence[object]) -> None:
    if any(value != values[0] for value in values):
        raise _Different
