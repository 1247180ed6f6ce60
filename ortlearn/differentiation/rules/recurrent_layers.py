"""Sequences, directions and Scans of recurrent layers, for their gradient rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from onnx import TensorProto, helper

from ...graphs import TensorType, make_value_info
from ..gradient_builder import GradientBuilder
from ..rule_context import Gradients, RuleNode
from .cell_activations import Activation, read_activations

__all__ = ["Direction", "recurrent_rule"]

#: Start, end, axis and step of a slice that reverses the first axis.
_BACKWARDS = (np.array([-1]), np.array([np.iinfo(np.int64).min]), np.array([0]), np.array([-1]))


class RecurrentLayer:
    """A recurrent node: its directions, and its inputs and outputs with time on the first axis."""

    def __init__(self, op: GradientBuilder, node: RuleNode, gates: int) -> None:
        self.op, self.node, self.gates = op, node, gates
        self.hidden = node.attribute("hidden_size") or (node.shape(node.I(2)) or (None,))[-1]
        if not isinstance(self.hidden, int):
            raise node.error("hidden_size must be given, or the shape of its input R known")
        self.reversed = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[
            node.attribute("direction", "forward").lower()
        ]
        self.batch_first = bool(node.attribute("layout", 0))
        self.x = self.time_first(node.I(0), [1, 0, 2])
        self.y = self.time_first(node.require_output(0), [1, 2, 0, 3])
        self.lengths = op.cast(node.I(4), np.int64) if node.I(4) else ""
        self.elem_type = op.elem_type(node.I(0)) or TensorProto.FLOAT
        time, batch = (node.shape(self.x) or (None,) * 3)[:2]
        self.known = (time if isinstance(time, int) else None, batch if isinstance(batch, int) else None)
        # Whether a sample has not ended at a step, for rows of (step, sample); "" if all have equal lengths.
        self.mask = self._mask() if self.lengths else ""

    def time_first(self, name: str, perm: list[int]) -> str:
        """Permute a tensor between batch first and time first, if the layer has the batch first."""
        return self.op.transpose(name, perm) if self.batch_first and name else name

    def _mask(self) -> str:
        op = self.op
        steps = op.Range(np.array(0, np.int64), op.dim(self.x, 0, scalar=True), np.array(1, np.int64))
        runs = op.Less(op.unsqueeze(steps, [1]), op.unsqueeze(self.lengths, [0]))
        return op.Reshape(op.Cast(runs, to=self.elem_type), [-1, 1])

    def in_order(self, name: str, reverse: bool) -> str:
        """Return a sequence in the order of a direction, or restore its order."""
        if not reverse:
            return name
        if self.lengths:
            # onnxruntime leaves values of sequences of length zero undefined.
            lengths = self.op.Max(self.lengths, np.array([1], np.int64))
            return self.op.ReverseSequence(name, lengths, batch_axis=1, time_axis=0)
        return self.op.Slice(name, *_BACKWARDS)

    def rows(self, name: str) -> str:
        """Return a sequence as a matrix with a row for every step and sample."""
        width = (self.op.shape(name) or (None,))[-1]
        if isinstance(width, int):
            return self.op.Reshape(name, [-1, width])
        return self.op.Reshape(name, self.op.Concat([-1], self.op.dim(name, 2), axis=0))

    def steps(self, name: str, width: int) -> str:
        """Return a matrix of rows as a sequence of steps."""
        if self.known.count(None) < 2:
            time, batch = (-1 if size is None else size for size in self.known)
            shape = self.op.constant([time, batch, width])
        else:
            shape = self.op.Concat(self.op.Slice(self.op.Shape(self.x), [0], [2]), [width], axis=0)
        return self.op.set_type(self.op.Reshape(name, shape), self.elem_type, (*self.known, width))

    def where_running(self, name: str, value: int) -> str:
        """Return ``name`` for samples that have not ended, and a number for the others."""
        if not self.mask:
            return name
        kept = self.op.Mul(name, self.mask)
        return self.op.Add(kept, self.op.Sub(1.0, self.mask)) if value else kept

    def initial(self, index: int, direction: int) -> str:
        """Return the initial state of a direction, of shape (batch, hidden)."""
        if self.node.I(index):
            return self.part(self.time_first(self.node.I(index), [1, 0, 2]), direction)
        batch = self.op.dim(self.x, 1)
        known = self.op.value(batch)
        shape = self.op.Concat(batch, [self.hidden], axis=0)
        return self.op.fill(shape if known is None else self.op.constant([int(known[0]), self.hidden]))

    def part(self, name: str, direction: int, axis: int = 0) -> str:
        """Return the part of a direction, without the axis of directions."""
        if len(self.reversed) == 1:
            return self.op.Squeeze(name, [axis])
        return self.op.Gather(name, np.array(direction), axis=axis)

    def output_grad(self, index: int, direction: int) -> str | None:
        """Return the gradient of an output for a direction, or None."""
        grad = self.node.GO(index)
        if grad is None:
            return None
        axes, axis = ([1, 0, 2], 0) if index else ([1, 2, 0, 3], 1)
        return self.part(self.time_first(grad, axes), direction, axis)


class Direction:
    """One direction of a layer: its weights, and its sequences in reading order."""

    def __init__(self, layer: RecurrentLayer, number: int, activations: list[Activation]) -> None:
        op, node, hidden = layer.op, layer.node, layer.hidden
        self.op, self.layer, self.number, self.hidden = op, layer, number, hidden
        self.reverse, self.activations = layer.reversed[number], activations
        self.w, self.r = layer.part(node.I(1), number), layer.part(node.I(2), number)
        op.set_type(self.r, layer.elem_type, (layer.gates * hidden, hidden))
        self.x = layer.rows(layer.in_order(layer.x, self.reverse))
        self.first = layer.initial(5, number)
        states = layer.in_order(layer.part(layer.y, number, axis=1), self.reverse)
        self.h = self.before(self.first, states)
        bias = layer.part(node.I(3), number) if node.I(3) else ""
        half = layer.gates * hidden
        self.biases = [op.Slice(bias, [i * half], [(i + 1) * half]) if bias else "" for i in (0, 1)]
        dy = layer.output_grad(0, number)
        dy = op.fill_like(states) if dy is None else layer.in_order(dy, self.reverse)
        dy = op.Mul(dy, layer.steps(layer.mask, 1)) if layer.mask else dy
        self.dy = op.set_type(dy, layer.elem_type, (*layer.known, hidden))

    def idle(self) -> list[str]:
        """Return a list with a mask of ended samples, empty if all have equal lengths."""
        return [self.layer.steps(self.op.Sub(1.0, self.layer.mask), 1)] if self.layer.mask else []

    def before(self, first: str, states: str) -> str:
        """Return the state before every step, with a row for every step and sample."""
        op = self.op
        earlier = op.Concat(op.Unsqueeze(first, [0]), op.Slice(states, [0], [-1], [0]), axis=0)
        return op.set_type(op.Reshape(earlier, [-1, self.hidden]), self.layer.elem_type, (None, self.hidden))

    def sums(self) -> str:
        """Return x @ W' + h @ R' + b of all gates."""
        op, (x_bias, h_bias) = self.op, self.biases
        inputs = op.Gemm(self.x, self.w, op.Add(x_bias, h_bias) if x_bias else "", transB=1)
        return op.set_type(op.Gemm(self.h, self.r, inputs, transB=1), self.layer.elem_type)

    def gate(self, sums: str, index: int) -> str:
        """Return the columns of a gate."""
        h = self.hidden
        name = self.op.Slice(sums, [index * h], [(index + 1) * h], [1])
        return self.op.set_type(name, self.layer.elem_type, (None, h))

    def last_grad(self, index: int) -> str:
        """Return the gradient of a last state, or zeros."""
        found = self.layer.output_grad(index, self.number)
        if found is None:
            return self.op.fill_like(self.first)
        if not self.layer.mask:
            return found
        # onnxruntime returns zeros for samples of length zero.
        running = self.op.Gather(self.layer.steps(self.layer.mask, 1), np.array(0), axis=0)
        return self.op.Mul(found, running)

    def scan(
        self, states: list[str], sequences: list[str], step: Callable, backward: bool = True
    ) -> tuple[list[str], list[str]]:
        """Write a Scan with states of shape (batch, hidden), and return the last states and stacked items.

        ``step(op, states, items)`` returns new states, and items to stack.
        """
        op, elem = self.op, self.layer.elem_type
        batch = self.layer.known[1]
        types = {op.unique("state"): TensorType(elem, (batch, self.hidden)) for _ in states}
        for name in sequences:
            types[op.unique("item")] = TensorType(elem, (batch, op.shape(name)[-1]))
        inner, names = op.child(types), list(types)
        size = len(states)
        new_states, items = step(inner, names[:size], names[size:])
        results = [inner.Identity(name) for name in (*new_states, *items)]
        infos = [make_value_info(name, known) for name, known in types.items()]
        outputs = [make_value_info(name, TensorType(elem, (batch, None))) for name in results]
        body = helper.make_graph(inner.nodes, "step", infos, outputs)
        directions = [1] if backward else [0]
        found = op.Scan(
            *states, *sequences, body=body, n_outputs=len(results), num_scan_inputs=len(sequences),
            scan_input_directions=directions * len(sequences),
            scan_output_directions=directions * len(items) or None,
        )  # fmt: skip
        found = [found] if isinstance(found, str) else list(found)
        return found[:size], found[size:]

    def gradients(
        self, dx_rows: str, da_rows: str, reset: str = ""
    ) -> tuple[str | None, str | None, str | None, str | None]:
        """Return the gradients of X, W, R and B from those of the gates, by their inputs and by the state.

        The last gate reads ``reset``, if given, instead of the state.
        """
        op, node, layer = self.op, self.layer.node, self.layer
        dx = dw = dr = db = None
        if node.needs(0):
            steps = op.reshape_like(op.Gemm(dx_rows, self.w), layer.x)
            dx = layer.in_order(steps, self.reverse)
        if node.needs(1):
            dw = op.Gemm(dx_rows, self.x, transA=1)
        if node.needs(2):
            dr = op.Gemm(da_rows, self.h, transA=1)
            if reset:
                last = op.Gemm(self.gate(da_rows, 2), reset, transA=1)
                dr = op.Concat(op.Slice(dr, [0], [2 * self.hidden], [0]), last, axis=0)
        if node.needs(3):
            sums = [op.reduce("ReduceSum", rows, [0], keepdims=0) for rows in (dx_rows, da_rows)]
            db = op.Concat(*sums, axis=0)
        return dx, dw, dr, db


def recurrent_rule(gates: int, defaults: list[str], differentiate: Callable) -> Callable:
    """Return the rule of a layer with a number of gates.

    ``differentiate(direction)`` returns the gradients of all inputs except the lengths, for one direction.
    """

    def rule(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
        layer = RecurrentLayer(op, node, gates)
        activations = read_activations(node, defaults, len(layer.reversed))
        found = [differentiate(Direction(layer, d, activations[d])) for d in range(len(layer.reversed))]
        parts = list(zip(*found, strict=True))
        dx = None
        if node.needs(0):
            dx = parts[0][0] if len(found) == 1 else op.Add(*parts[0])
        # The sequence lengths, input 4, have no gradient.
        rest = [_stacked(layer, i, [*parts[1:4], None, *parts[4:]][i - 1]) for i in range(1, node.n_inputs)]
        return [layer.time_first(dx, [1, 0, 2]) if dx else None, *rest]

    return rule


def _stacked(layer: RecurrentLayer, index: int, parts: Sequence[str | None]) -> str | None:
    """Return the gradient of an input, stacked from those of its directions."""
    op, node = layer.op, layer.node
    if parts is None or not node.needs(index):
        return None
    wide = [op.Unsqueeze(part, [0]) for part in parts]
    joined = wide[0] if len(wide) == 1 else op.Concat(*wide, axis=0)
    return layer.time_first(joined, [1, 0, 2]) if index in (5, 6) else joined
