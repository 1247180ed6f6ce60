"""Coefficients and intercept of the first layer as one matrix, with a column of ones in the samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from onnx import ModelProto, ValueInfoProto

from ...graphs import GraphBuilder, append_nodes, graph_names, opset_versions
from ...graphs.editing import with_fields
from ...graphs.nodes import needed_nodes
from ...graphs.queries import renamed_value
from ...graphs.view import GraphView
from ...runtime.buffers import Carried
from ..graphs.objective import builder, penalty_terms
from ..graphs.task import TrainingTask
from .packing import Packing, Piece, is_worth_packing

__all__ = ["InterceptColumn", "first_layer", "loop_weights"]

JOINED = "ortlearn_coef_and_intercept"
#: Maximum elements of a batch for which two nodes less are worth a copy of its samples.
MAX_NUMBERS = 2_000


def loop_weights(task: TrainingTask, size: int, joins_intercepts: bool) -> Packing | None:
    """Return the packed form of the weights inside the loops of an epoch, or None to leave them separate."""
    if task.graph.statistics:  # their update differs from that of the weights
        return None
    if is_worth_packing(task):
        return Packing(task)
    layer = first_layer(task, size) if joins_intercepts else None
    return None if layer is None else InterceptColumn(task, *layer)


def first_layer(task: TrainingTask, size: int) -> tuple[str, str] | None:
    """Return coefficients and intercept that can be updated as one matrix, or None.

    Both must be used only in ``x @ coef + intercept``, without penalty, with an elementwise update.
    """
    rate = task.update.learning_rate
    if not rate.elementwise or task.is_proximal or task.update.not_negative or task.graph.sparse:
        return None
    graph = GraphView(task.graph.model)
    penalized = penalty_terms(builder(task, task.graph.model, "penalty_"), task)
    for node in graph.nodes:
        if node.op_type != "Add" or node.domain != "":
            continue
        for name, intercept in (node.input, reversed(node.input)):
            product = graph.producer(name, "MatMul")
            if product is None or not graph.read_once(name):
                continue
            feature, coef = product.input
            pair = coef, intercept
            if feature not in task.graph.features or not all(map(graph.read_once, (feature, *pair))):
                continue
            if penalized.keys() & set(pair):
                continue
            if _is_layer(task, graph, *pair) and size * graph.op.shape(coef)[0] <= MAX_NUMBERS:  # type: ignore[index, operator]
                return pair
    return None


def _is_layer(task: TrainingTask, graph: GraphView, coef: str, intercept: str) -> bool:
    """Return whether two tensors are weights of the shapes (f, k) and (k,) or (1, k)."""
    sizes = graph.sizes(coef)
    if not {coef, intercept} <= task.graph.intercepts.keys() or sizes is None or len(sizes) != 2:
        return False
    return graph.sizes(intercept) in (sizes[1:], (1, *sizes[1:]))


class InterceptColumn(Packing):
    """Packing of the first layer as one matrix, with the intercept as its last row.

    With ``z = [x, 1] @ [coef; intercept]``, the gradient of both is one product with one update.
    """

    def __init__(self, task: TrainingTask, coef: str, intercept: str):
        super().__init__(task)
        self._pair = coef, intercept

    def task(self) -> TrainingTask:
        """Return a task with the matrix instead of the two weights."""
        kept = {k: v for k, v in self._task.graph.intercepts.items() if k not in self._pair}
        return self._task.changed(intercepts={JOINED: False, **kept})

    def objective(self, objective: ModelProto) -> ModelProto:
        """Return an objective that reads the matrix, and appends a column of ones to the samples."""
        coef, intercept = self._pair
        n_features, n_outputs = self._shapes[coef]
        op = GraphBuilder(
            opset_versions(objective)[""],
            dtype=self._task.graph.dtype,
            existing_names=graph_names(objective.graph),
            prefix="column_",
        )
        nodes = needed_nodes(objective.graph.node, [value.name for value in objective.graph.output])
        (product,) = (node for node in nodes if coef in node.input)
        (total,) = (node for node in nodes if intercept in node.input)
        samples = op.Pad(product.input[0], np.array([0, 0, 0, 1]), op.constant(1.0))
        op.node("MatMul", samples, JOINED, outputs=list(total.output))
        matrix = self._info(JOINED, [n_features + 1, n_outputs], self._task.graph.dtype)
        nodes = [node for node in nodes if node is not product and node is not total]
        model = append_nodes(with_fields(objective, node=nodes), op, inputs=[matrix], first=True)
        return with_fields(model, input=[v for v in model.graph.input if v.name not in self._pair])

    def join(self, op: GraphBuilder, carried: Sequence[Carried]) -> tuple[list[str], list[ValueInfoProto]]:
        """Append the packed values, and return their names and the inputs they are built from."""
        values: list[str] = []
        pieces: list[ValueInfoProto] = []
        n_outputs = self._shapes[self._pair[0]][1]
        for item in carried:
            own = self._pieces(item)
            pieces += [piece.info for piece in own]
            if len(own) == 1:
                values.append(own[0].name)
            else:
                shape = [n_outputs, 1] if item.transposed else [1, n_outputs]
                last = op.Reshape(own[1].name, np.array(shape))
                values.append(op.Concat(own[0].name, last, axis=int(item.transposed)))
        return values, pieces

    def split(
        self, op: GraphBuilder, carried: Sequence[Carried], results: Mapping[Carried, str]
    ) -> list[tuple[Carried, ValueInfoProto]]:
        """Append the separate weights and states after the loop."""
        found: list[tuple[Carried, ValueInfoProto]] = []
        n_features = self._shapes[self._pair[0]][0]
        for item in carried:
            name = results[item]
            pieces = self._pieces(item, each=True)
            parts = [name] * len(pieces)
            if len(pieces) == 2 and not self._is_shared(item.state):
                sizes, axis = np.array([n_features, 1]), int(item.transposed)
                first, last = op.node("Split", name, sizes, n_outputs=2, axis=axis)
                parts = [first, op.Reshape(last, np.array(self._shapes[self._pair[1]]))]
            for piece, part in zip(pieces, parts, strict=True):
                after = op.node("Identity", part, outputs=[f"{piece.name}_after"])
                is_transposed = self._is_transposed(item, piece.weight)
                own = Carried(piece.weight, piece.state, piece.name, after, is_transposed)
                found.append((own, renamed_value(piece.info, after)))
        return found

    def _pieces(self, item: Carried, each: bool = False) -> list[Piece]:
        """Return the parts of a packed value; of shared states only the first, unless ``each``."""
        own = self._pair if item.weight == JOINED else (item.weight,)
        if self._is_shared(item.state) and not each:
            own = own[:1]
        number = self._task.graph.weights.index
        return [self._piece(item.state, number(name), self._is_transposed(item, name)) for name in own]

    def _is_transposed(self, item: Carried, weight: str) -> bool:
        """Return whether the part of a value that belongs to a weight is stored transposed."""
        return item.transposed and weight != self._pair[1]
