"""Weights packed into one vector, so that an elementwise update is written once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, ValueInfoProto, helper

from ...graphs import (
    GraphBuilder,
    TensorType,
    append_nodes,
    graph_names,
    make_value_info,
    opset_versions,
    value_types,
)
from ...graphs.editing import with_fields
from ...graphs.queries import renamed_value
from ...runtime.buffers import Carried
from ..graphs.task import TrainingTask

__all__ = ["Packing", "is_worth_packing"]

PACKED = "ortlearn_weights"
#: Names in models never have this prefix.
PACKED_OF = "ortlearn_packed_{}_{}"
#: Maximum number of elements for which fewer nodes are worth a copy of weights and gradients.
MAX_ELEMENTS = 100_000


def is_worth_packing(task: TrainingTask) -> bool:
    """Return whether a training is faster with packed weights."""
    if not task.update.learning_rate.elementwise or task.folds_rate or len(task.graph.weights) < 2:
        return False
    if task.is_proximal or task.update.not_negative:
        return False
    return sum(int(np.prod(shape)) for shape in _shapes(task).values()) <= MAX_ELEMENTS


def _shapes(task: TrainingTask) -> dict[str, tuple[int, ...]]:
    types = value_types(task.graph.model)
    return {name: tuple(int(dim) for dim in types[name].shape or ()) for name in task.graph.weights}  # type: ignore[arg-type]


@dataclass
class Piece:
    """A weight or state outside the loop."""

    weight: str
    state: str | None
    name: str
    info: ValueInfoProto


class Packing:
    """Conversion of the weights and states of a task to vectors inside the loop, and back."""

    def __init__(self, task: TrainingTask):
        self._task = task
        self._shapes = _shapes(task)
        self._sizes = np.array([np.prod(shape) for shape in self._shapes.values()], dtype=np.int64)

    def task(self) -> TrainingTask:
        """Return a task that updates one vector."""
        return self._task.changed(intercepts={PACKED: False})

    def objective(self, objective: ModelProto) -> ModelProto:
        """Return an objective that reads its weights from one vector."""
        op = GraphBuilder(
            opset_versions(objective)[""], existing_names=graph_names(objective.graph), prefix="pack_"
        )
        parts = op.node("Split", PACKED, self._sizes, n_outputs=len(self._sizes), axis=0)
        for part, (name, shape) in zip(parts, self._shapes.items(), strict=True):
            op.node("Reshape", part, np.array(shape, dtype=np.int64), outputs=[name])
        vector = self._info(PACKED, [int(self._sizes.sum())], self._task.graph.dtype)
        model = append_nodes(objective, op, inputs=[vector], first=True)
        return with_fields(model, input=[v for v in model.graph.input if v.name not in self._shapes])

    def _info(self, name: str, shape: Sequence[int], dtype: np.dtype) -> ValueInfoProto:
        elem_type = helper.np_dtype_to_tensor_dtype(dtype)
        return make_value_info(name, TensorType(elem_type, tuple(int(dim) for dim in shape)))

    def join(self, op: GraphBuilder, carried: Sequence[Carried]) -> tuple[list[str], list[ValueInfoProto]]:
        """Append the vectors, and return their names and the inputs they are built from.

        Scalar states are equal for all weights: that of the first is used.
        """
        vectors: list[str] = []
        pieces: list[ValueInfoProto] = []
        for item in carried:
            own = [self._piece(item.state, number) for number in range(len(self._shapes))]
            if self._is_shared(item.state):
                vectors.append(own[0].name)
                own = own[:1]
            else:
                flat = [op.Reshape(piece.name, np.array([-1], dtype=np.int64)) for piece in own]
                vectors.append(op.Concat(*flat, axis=0))
            pieces += [piece.info for piece in own]
        return vectors, pieces

    def split(
        self, op: GraphBuilder, carried: Sequence[Carried], results: Mapping[Carried, str]
    ) -> list[tuple[Carried, ValueInfoProto]]:
        """Append the separate weights and states after the loop."""
        found: list[tuple[Carried, ValueInfoProto]] = []
        for item in carried:
            shared = self._is_shared(item.state)
            parts = [results[item]] * len(self._shapes)
            if not shared:
                parts = list(op.node("Split", results[item], self._sizes, n_outputs=len(parts), axis=0))
            for number, part in enumerate(parts):
                piece = self._piece(item.state, number)
                name = f"{piece.name}_after"
                shape = [dim.dim_value for dim in piece.info.type.tensor_type.shape.dim]
                if shared:
                    op.node("Identity", part, outputs=[name])
                else:
                    op.node("Reshape", part, np.array(shape, dtype=np.int64), outputs=[name])
                after = Carried(piece.weight, piece.state, piece.name, name)
                found.append((after, renamed_value(piece.info, name)))
        return found

    def _example(self, state: str | None) -> np.ndarray:
        """Return a weight of two elements, or its state."""
        weight = np.zeros(2, dtype=self._task.graph.dtype)
        return weight if state is None else self._task.update.learning_rate.init(weight)[state]

    def _is_shared(self, state: str | None) -> bool:
        return self._example(state).ndim == 0

    def _piece(self, state: str | None, number: int, transposed: bool = False) -> Piece:
        weight = self._task.graph.weights[number]
        name = PACKED_OF.format("weight" if state is None else f"state_{state}", weight)
        shape = () if self._is_shared(state) else self._shapes[weight][:: -1 if transposed else 1]
        return Piece(weight, state, name, self._info(name, shape, self._example(state).dtype))
