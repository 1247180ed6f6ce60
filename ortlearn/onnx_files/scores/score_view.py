"""View of a graph that finds and appends scores."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto

from ...graphs import TensorType, append_nodes, make_value_info
from ...graphs.editing import renamed_node, with_fields
from ...graphs.nodes import attribute, copy_node, needed_nodes
from ...graphs.patterns import PatternView
from ...models import Scores
from ..simplify import is_idle

Sizes = int | Sequence[int | None] | None  # number of columns, or shape of a sample
APPENDED = "head_"  # prefix of the names of appended nodes


class ScoreView(PatternView):
    """View of a graph that is searched backwards from its outputs, with appended nodes."""

    between = ("Cast", "Reshape", "Squeeze", "Unsqueeze")

    def __init__(self, model: ModelProto, types: Mapping[str, TensorType], chosen: Sequence[str] = ()):
        outputs = [types.get(value.name) for value in model.graph.output]
        double = any(known is not None and known.elem_type == TensorProto.DOUBLE for known in outputs)
        super().__init__(model, types, dtype=np.float64 if double else np.float32, prefix=APPENDED)
        #: Selected outputs, empty for all.
        self.chosen = list(chosen)
        self._replaced: dict[str, str] = {}
        self._infos: dict[str, TensorType] = {}

    def sample_shape(self, name: str) -> tuple[int | None, ...]:
        """Return the dimensions of a tensor after the first, None for unknown ones."""
        shape = self.op.shape(name) or ()
        return tuple(size if isinstance(size, int) else None for size in shape[1:])

    def width(self, name: str) -> int | None:
        """Return the number of columns of a matrix, None if unknown."""
        sizes = self.sample_shape(name)
        return sizes[0] if len(sizes) == 1 else None

    def origin(self, name: str, passing: Collection[str] = ()) -> str:
        """Return the tensor before idle nodes and nodes of some operators, along their first inputs."""
        node = self.producers.get(name)
        while node is not None and (node.op_type in passing or is_idle(self, node)):
            name = node.input[-1 if node.op_type == "Where" else 0]  # the last input is the value for False
            node = self.producers.get(name)
        return name

    def constant(self, name: str) -> np.ndarray | None:
        """Return the value of a constant, None for other tensors."""
        return self.value(self.origin(name))

    def nodes_before(self, name: str) -> Iterator[NodeProto]:
        """Yield the nodes that a tensor depends on, in reverse order."""
        return reversed(needed_nodes(self.nodes, [name]))

    def columns_of(self, name: str) -> list[str] | None:
        """Return the columns of a concatenation of columns, None for other matrices."""
        node = self.producer(name)
        if node is None or node.op_type != "Concat" or attribute(node, "axis", 0) not in (1, -1):
            return None
        columns = [self.origin(column) for column in node.input]
        return columns if all(self.width(column) in (1, None) for column in columns) else None

    def column_of(self, name: str) -> tuple[str, int] | None:
        """Return the matrix and the index of the column that a node selects, None for other nodes."""
        node = self.producer(name)
        if node is None or node.op_type not in ("Slice", "Gather"):
            return None
        values = [self.constant(index) for index in node.input[1:]]
        bounds = [int(value.item()) for value in values if value is not None and value.size == 1]
        if node.op_type == "Gather":
            bounds = [bound for i in bounds for bound in (i, i + 1, attribute(node, "axis", 0))]
        if len(bounds) < max(len(values), 3) or bounds[2] not in (1, -1) or bounds[1] != bounds[0] + 1:
            return None
        start, width = bounds[0], self.width(node.input[0])
        if start < 0 and width is None:
            return None
        return self.origin(node.input[0]), start + (width or 0) * (start < 0)

    def append(
        self, op_type: str, *inputs: Any, columns: Sizes = None, like: str | None = None, **attributes: Any
    ) -> str:
        """Append a node whose output has the type, number of samples and by default columns of ``like``."""
        like = like or inputs[0]
        new, known = self.op.node(op_type, *inputs, **attributes), self.op.type(like)
        if known is not None:
            sizes = (self.width(like),) if columns is None else _sample_shape(columns)
            self.op.set_type(new, known.elem_type, ((known.shape or (None,))[0], *sizes))
        return new

    def column(self, name: str, index: int) -> str:
        """Append a column of a matrix, of shape (n, 1)."""
        return self.append("Slice", name, [index], [index + 1], [1], columns=1)

    def as_column(self, name: str) -> str:
        """Append a reshape to (n, 1)."""
        return self.append("Reshape", name, [-1, 1], columns=1)

    def concat(self, names: Sequence[str]) -> str:
        """Append a concatenation of columns or matrices."""
        if len(names) == 1:
            return names[0]
        widths = [self.width(name) or 0 for name in names]
        return self.append("Concat", *names, columns=sum(widths) if all(widths) else None, axis=1)

    def append_copy(self, node: NodeProto, renamed: Mapping[str, str]) -> dict[str, str]:
        """Append a copy of a node with renamed inputs; return its new outputs by the old ones."""
        outputs = {name: self.op.unique("copy") for name in node.output if name}
        inputs = [renamed.get(name, name) for name in node.input]
        copied = copy_node(node, inputs, [outputs.get(name, "") for name in node.output])
        copied.name = self.op.unique("node_copy")
        self.op.nodes.append(copied)
        for old, new in outputs.items():
            self.producers[new] = copied
            self.copy_type(new, old)
        return outputs

    def scalar(self, value: float, like: str) -> str:
        """Return a constant with the type of a tensor."""
        return self.op.constant(np.asarray(value, dtype=self.op.dtype(like) or self.op.float_dtype))

    def replace_output(self, name: str, elem_type: int | None = None, columns: Sizes = ()) -> str:
        """Rename the tensor of an output, to compute the output by a new node; return the new name."""
        known = self.op.type(name)
        old = self.op.unique("replaced")
        self._replaced[name] = old
        kind = elem_type or (known.elem_type if known is not None else TensorProto.INT64)
        self._infos[name] = TensorType(kind, ("N", *_sample_shape(columns)))
        self.copy_type(old, name)
        if name in self.producers:
            self.producers[old] = self.producers[name]
        return old

    def scores(self, task: str, score: str, n_outputs: int, link: str, **outputs: Any) -> Scores:
        """Return the scores of the model in float32 or float64."""
        dtype = np.float64 if self.op.dtype(score) == np.float64 else np.float32
        return Scores(task, score, n_outputs, link, dtype=np.dtype(dtype), **outputs)

    def result(self) -> ModelProto:
        """Return the graph with appended nodes and new outputs."""
        if not self.op.nodes and not self._infos:
            return self.model
        infos = {name: make_value_info(name, known) for name, known in self._infos.items()}
        outputs = [infos.get(value.name, value) for value in self.graph.output]
        nodes = [renamed_node(node, self._replaced) for node in self.nodes]
        return append_nodes(with_fields(self.model, node=nodes, output=outputs, value_info=()), self.op)


def _sample_shape(columns: Sizes) -> tuple[int | None, ...]:
    return (columns,) if isinstance(columns, int) else tuple(columns or ())
