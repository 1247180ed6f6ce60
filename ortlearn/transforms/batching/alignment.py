"""Merge graphs of the same structure into one template and the constants that differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from ...graphs import copy_model, graph_names
from ...graphs.nodes import attribute

__all__ = ["Aligned", "align"]

#: Names of the merged constants; names in models never have this prefix.
CONSTANT_NAME = "ortlearn_constant_of_candidates_{}"
#: Attributes of Gemm that may differ between graphs, and the index of the input that each scales.
GEMM_FACTORS = (("alpha", 1), ("beta", 2))


@dataclass(frozen=True)
class Aligned:
    """A graph for several models: the first one, and the values of its ``constants`` in each model."""

    model: ModelProto
    constants: dict[str, np.ndarray]


def align(models: Sequence[ModelProto], dtype: Any = np.float32) -> Aligned | None:
    """Return the merged graphs, or None if they differ in more than constants."""
    if len({tuple(sorted((i.domain, i.version) for i in model.opset_import)) for model in models}) > 1:
        return None
    if len(models) == 1:
        return Aligned(models[0], {})
    template = copy_model(models[0])
    walk = _Aligner(np.dtype(dtype))
    try:
        walk.graphs(template.graph, [model.graph for model in models], None)
    except _StructureMismatch:
        return None
    assert not graph_names(models[0].graph) & walk.constants.keys()
    return Aligned(template, walk.constants)


class _StructureMismatch(Exception):
    """The graphs have different structures."""


class _NameTable:
    """Constants of each graph, and the names in the first graph of all other tensors."""

    def __init__(self, graphs: Sequence[GraphProto], outer: _NameTable | None):
        self.constants = [{tensor.name: tensor for tensor in graph.initializer} for graph in graphs]
        self.same: list[dict[str, str]] = [{} for _ in graphs]
        self.outer = outer

    def add(self, names: Sequence[str]) -> None:
        for same, name in zip(self.same, names, strict=True):
            same[name] = names[0]

    def find(self, number: int, name: str) -> tuple[_NameTable, str | TensorProto]:
        """Return the table with a tensor of graph ``number``, and its constant or name in the first graph."""
        if name in self.same[number]:
            return self, self.same[number][name]
        if name in self.constants[number]:
            return self, self.constants[number][name]
        if self.outer is None:
            raise _StructureMismatch
        return self.outer.find(number, name)


class _Aligner:
    """Walks over all graphs in parallel, and renames constants that differ in the first one."""

    def __init__(self, dtype: np.dtype) -> None:
        self.constants: dict[str, np.ndarray] = {}
        self._dtype = dtype
        self._known: dict[tuple[int, tuple[str, ...]], str] = {}

    def graphs(self, template: GraphProto, graphs: Sequence[GraphProto], outer: _NameTable | None) -> None:
        names = _NameTable(graphs, outer)
        _check_equal([(len(g.node), len(g.input), len(g.output)) for g in graphs])
        for infos in zip(*(graph.input for graph in graphs), strict=True):
            _check_equal([info.type.SerializeToString(deterministic=True) for info in infos])
            names.add([info.name for info in infos])
        written: list[NodeProto] = []
        for node, *nodes in zip(list(template.node), *(graph.node for graph in graphs), strict=True):
            written += [*self._nodes(template, node, nodes, names), node]
        del template.node[:]
        template.node.extend(written)
        for infos in zip(*(graph.output for graph in graphs), strict=True):
            found = [names.find(number, info.name)[1] for number, info in enumerate(infos)]
            if any(name != infos[0].name for name in found):
                raise _StructureMismatch

    def _nodes(
        self, template: GraphProto, node: NodeProto, nodes: Sequence[NodeProto], names: _NameTable
    ) -> list[NodeProto]:
        """Rename the inputs of a node of the first graph; return the nodes to insert before it."""
        _check_equal([(n.domain, n.op_type, len(n.input), len(n.output)) for n in nodes])
        for slot, read in enumerate(zip(*(n.input for n in nodes), strict=True)):
            node.input[slot] = self._read(template, read, names)
        before = self._factors(template, node, nodes) if node.op_type == "Gemm" else []
        for written in zip(*(n.output for n in nodes), strict=True):
            names.add(written)
        factors = {factor for factor, _ in GEMM_FACTORS} if node.op_type == "Gemm" else ()
        known = [[a for a in n.attribute if a.name not in factors] for n in (node, *nodes)]
        _check_equal([[a.name for a in attributes] for attributes in known])
        for own, *attributes in zip(*known, strict=True):
            if own.type == AttributeProto.GRAPH:
                self.graphs(own.g, [attribute.g for attribute in attributes], names)
            else:
                _check_equal([attribute.SerializeToString(deterministic=True) for attribute in attributes])
        return before

    def _factors(self, template: GraphProto, node: NodeProto, nodes: Sequence[NodeProto]) -> list[NodeProto]:
        """Replace factors of a Gemm that differ by Mul nodes with a constant."""
        before = []
        for factor, slot in GEMM_FACTORS:
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
        """Return the name of a constant with a value for each graph."""
        known = id(template), key
        if known not in self._known:
            name = self._known[known] = CONSTANT_NAME.format(len(self._known))
            self.constants[name] = values
            template.initializer.append(numpy_helper.from_array(np.asarray(values[0]), name))
        return self._known[known]

    def _read(self, template: GraphProto, read: Sequence[str], names: _NameTable) -> str:
        """Return the name of an input in the first graph, given its names in all graphs."""
        if not any(read):
            return ""
        found = [names.find(number, name) for number, name in enumerate(read)]
        tensors = [value for _, value in found if isinstance(value, TensorProto)]
        if not tensors:
            _check_equal([value for _, value in found])
            return read[0]
        if len(tensors) < len(found):
            raise _StructureMismatch
        _check_equal([(tensor.data_type, tuple(tensor.dims)) for tensor in tensors])
        arrays = [numpy_helper.to_array(tensor) for tensor in tensors]
        if all(array.tobytes() == arrays[0].tobytes() for array in arrays):
            return read[0]
        return self._constant(template, tuple(read), np.stack(arrays))


def _check_equal(values: Sequence[object]) -> None:
    if any(value != values[0] for value in values):
        raise _StructureMismatch
