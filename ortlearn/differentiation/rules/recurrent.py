"""Gradients of recurrent layers: one Scan back through time, and products over all steps.

The gates of all steps are computed again from the hidden states that the layer returns. A backward step is
then linear in the gradient of the state, with factors that are computed before the Scan. The gradients of
weights and inputs are products over all steps after the Scan.
"""

from __future__ import annotations

from ..gradient_builder import GradientBuilder
from ..rule_set import RuleSet
from .recurrent_layers import Direction, recurrent_rule

__all__ = ["RULES"]

RULES = RuleSet("recurrent")


def _rnn(d: Direction) -> list[str | None]:
    # h = f(s) with s = x W' + h R' + b: ds = f'(s) dh, dh of the step before = ds R
    op, layer = d.op, d.layer
    slope = layer.where_running(d.activations[0](op, d.sums())[1], 0)

    def step(op: GradientBuilder, states: list[str], items: list[str]) -> tuple[list[str], list[str]]:
        dh = op.Add(states[0], items[0])
        ds = op.Mul(dh, items[1])
        return [_with_carried(op, op.MatMul(ds, d.r), dh, items[2:])], [ds]

    sequences = [d.dy, layer.steps(slope, d.hidden), *d.idle()]
    (dh,), (ds,) = d.scan([d.last_grad(1)], sequences, step)
    rows = op.Reshape(ds, [-1, d.hidden])
    return [*d.gradients(rows, rows), dh]


def _with_carried(op: GradientBuilder, before: str, dh: str, idle: list[str]) -> str:
    """Add the gradient of the unchanged state of samples that have ended."""
    return op.Add(before, op.Mul(dh, idle[0])) if idle else before


def _lstm(d: Direction) -> list[str | None]:
    # c = f(s_f) c' + f(s_i) g(s_c), h = f(s_o) h(c) with s = x W' + h R' + b, plus peepholes times c' or c
    op, layer, hidden = d.op, d.layer, d.hidden
    cell = _Cell(d)
    to_sums = layer.where_running(op.Concat(*cell.slopes, axis=1), 0)
    to_cell = layer.where_running(cell.from_output, 0)
    kept = layer.where_running(cell.from_cell, 1)

    def step(op: GradientBuilder, states: list[str], items: list[str]) -> tuple[list[str], list[str]]:
        dh = op.Add(states[0], items[0])
        dc = op.Add(states[1], op.Mul(dh, items[2]))
        ds = op.Mul(op.Concat(dc, dh, dc, dc, axis=1), items[1])
        return [_with_carried(op, op.MatMul(ds, d.r), dh, items[4:]), op.Mul(dc, items[3])], [ds]

    sequences = [
        d.dy,
        layer.steps(to_sums, 4 * hidden),
        layer.steps(to_cell, hidden),
        layer.steps(kept, hidden),
    ]
    (dh, dc), (ds,) = d.scan([d.last_grad(1), d.last_grad(2)], [*sequences, *d.idle()], step)
    rows = op.Reshape(ds, [-1, 4 * hidden])
    peepholes = None
    if layer.node.needs(7):
        read = (cell.earlier, cell.later, cell.earlier)
        parts = [op.Mul(d.gate(rows, gate), c) for gate, c in enumerate(read)]
        peepholes = op.Concat(*(op.reduce("ReduceSum", part, [0], keepdims=0) for part in parts), axis=0)
    return [*d.gradients(rows, rows), dh, dc, peepholes]


class _Cell:
    """The cell of an LSTM at all steps, and its derivatives.

    Attributes
    ----------
    earlier, later : str
        The cell before and after every step.
    slopes : list of str
        Derivatives of the output by the sum of the output gate, and of the cell by the other sums.
    from_output, from_cell : str
        Derivatives of the output by the cell, and of the cell by the previous one.
    """

    def __init__(self, d: Direction) -> None:
        op, self.layer = d.op, d.layer
        self.act, act_c, act_h = d.activations
        sums = d.sums()
        s_i, s_o, s_f, s_c = (d.gate(sums, gate) for gate in range(4))
        self.coupled = bool(d.layer.node.attribute("input_forget", 0))
        self.peepholes = self._peepholes(d)
        g, dg = act_c(op, s_c)
        first = d.layer.initial(6, d.number)
        self._run(d, s_i, s_f, g, first)
        i, di, f, df = self._gates(op, s_i, s_f, self.earlier)
        o, do = self.act(op, self._with_peephole(op, s_o, 1, self.later))
        t, dt = act_h(op, self.later, clipped=False)
        in_i = op.Mul(op.Sub(g, self.earlier) if self.coupled else g, di)
        in_f = op.Mul(in_i, 0.0) if self.coupled else op.Mul(self.earlier, df)
        self.slopes = [in_i, op.Mul(t, do), in_f, op.Mul(i, dg)]
        self.from_output, self.from_cell = op.Mul(o, dt), f
        if self.peepholes:
            self.from_output = op.Add(self.from_output, op.Mul(self.slopes[1], self.peepholes[1]))
            for gate in (0, 2):
                self.from_cell = op.Add(self.from_cell, op.Mul(self.slopes[gate], self.peepholes[gate]))

    def _peepholes(self, d: Direction) -> list[str]:
        """Return the weights of the cell in the gates i, o and f."""
        if not self.layer.node.I(7):
            return []
        whole, h = self.layer.part(self.layer.node.I(7), d.number), d.hidden
        return [d.op.Slice(whole, [gate * h], [(gate + 1) * h]) for gate in range(3)]

    def _with_peephole(self, op: GradientBuilder, total: str, gate: int, cell: str) -> str:
        return op.Add(total, op.Mul(cell, self.peepholes[gate])) if self.peepholes else total

    def _gates(self, op: GradientBuilder, s_i: str, s_f: str, cell: str) -> tuple[str, str, str, str]:
        """Return the gates i and f, and their derivatives."""
        i, di = self.act(op, self._with_peephole(op, s_i, 0, cell))
        f, df = (op.Sub(1.0, i), "") if self.coupled else self.act(op, self._with_peephole(op, s_f, 2, cell))
        return i, di, f, df

    def _run(self, d: Direction, s_i: str, s_f: str, g: str, first: str) -> None:
        """Compute the cell at all steps, with few operators in the Scan."""
        op, layer = d.op, d.layer
        if self.peepholes:
            rows = [s_i, s_f, g]
        else:
            i, _, f, _ = self._gates(op, s_i, s_f, "")
            rows = [layer.where_running(f, 1), layer.where_running(op.Mul(i, g), 0)]

        def step(op: GradientBuilder, states: list[str], items: list[str]) -> tuple[list[str], list[str]]:
            if not self.peepholes:
                c = op.Add(op.Mul(states[0], items[0]), items[1])
            else:
                i, _, f, _ = self._gates(op, items[0], items[1], states[0])
                c = op.Add(op.Mul(f, states[0]), op.Mul(i, items[2]))
                if layer.mask:  # samples that have ended keep their cell
                    c = op.Add(states[0], op.Mul(op.Sub(c, states[0]), items[3]))
            return [c], [c]

        mask = [layer.steps(layer.mask, 1)] if layer.mask and self.peepholes else []
        sequences = [*(layer.steps(row, d.hidden) for row in rows), *mask]
        _, (cells,) = d.scan([first], sequences, step, backward=False)
        self.earlier = d.before(first, cells)
        self.later = op.set_type(op.Reshape(cells, [-1, d.hidden]), layer.elem_type, (None, d.hidden))


def _gru(d: Direction) -> list[str | None]:
    # h = (1 - z) g + z h' with z, r = f(s), g = g(s_x + r (h' R' + b)), or g(s_x + (r h') R' + b)
    op, layer, hidden = d.op, d.layer, d.hidden
    after = bool(layer.node.attribute("linear_before_reset", 0))
    act, act_g = d.activations
    x_sums, h_sums = (
        op.Gemm(rows, weight, bias, transB=1)
        for rows, weight, bias in zip((d.x, d.h), (d.w, d.r), d.biases, strict=True)
    )
    (z, dz), (r, dr) = (act(op, op.Add(d.gate(x_sums, i), d.gate(h_sums, i))) for i in (0, 1))
    x_g, reset = d.gate(x_sums, 2), op.Mul(r, d.h)
    if after:
        h_g = op.Mul(r, d.gate(h_sums, 2))
    else:
        weight, bias = (
            op.Slice(name, [2 * hidden], [3 * hidden], [0]) if name else "" for name in (d.r, d.biases[1])
        )
        op.set_type(weight, layer.elem_type, (hidden, hidden))
        h_g = op.Gemm(reset, weight, bias, transB=1)
    g, dg = act_g(op, op.Add(x_g, h_g))
    by_z = layer.where_running(op.Mul(op.Sub(d.h, g), dz), 0)
    by_g = layer.where_running(op.Mul(op.Sub(1.0, z), dg), 0)
    kept = layer.steps(layer.where_running(z, 1), hidden)
    if after:
        by_r = op.Mul(by_g, op.Mul(d.gate(h_sums, 2), dr))
        return _gru_after(d, by_z, by_r, by_g, op.Mul(by_g, r), kept)
    return _gru_before(d, by_z, op.Mul(d.h, dr), by_g, r, kept, weight, reset)


def _gru_after(d: Direction, by_z: str, by_r: str, by_g: str, by_state: str, kept: str) -> list[str | None]:
    """Differentiate a layer that resets after the product: every gate is a factor times dh."""
    op, hidden = d.op, d.hidden

    def step(op: GradientBuilder, states: list[str], items: list[str]) -> tuple[list[str], list[str]]:
        dh = op.Add(states[0], items[0])
        da = op.Mul(op.Concat(dh, dh, dh, axis=1), items[1])
        return [op.Add(op.MatMul(da, d.r), op.Mul(dh, items[2]))], [da, dh]

    factors = d.layer.steps(op.Concat(by_z, by_r, by_state, axis=1), 3 * hidden)
    (dh,), (da, dhs) = d.scan([d.last_grad(1)], [d.dy, factors, kept], step)
    da, dhs = op.Reshape(da, [-1, 3 * hidden]), op.Reshape(dhs, [-1, hidden])
    ds = op.Concat(op.Slice(da, [0], [2 * hidden], [1]), op.Mul(dhs, by_g), axis=1)
    return [*d.gradients(ds, da), dh]


def _gru_before(
    d: Direction, by_z: str, by_r: str, by_g: str, r: str, kept: str, weight: str, reset: str
) -> list[str | None]:
    """Differentiate a layer that resets before the product."""
    op, layer, hidden = d.op, d.layer, d.hidden
    others = op.Slice(d.r, [0], [2 * hidden], [0])

    def step(op: GradientBuilder, states: list[str], items: list[str]) -> tuple[list[str], list[str]]:
        dh = op.Add(states[0], items[0])
        ds_g = op.Mul(dh, items[3])
        dq = op.MatMul(ds_g, weight)
        ds = op.Concat(op.Mul(dh, items[1]), op.Mul(dq, items[2]), axis=1)
        before = op.Sum(op.MatMul(ds, others), op.Mul(dq, items[4]), op.Mul(dh, items[5]))
        return [before], [ds, ds_g]

    sequences = [d.dy, *(layer.steps(rows, hidden) for rows in (by_z, by_r, by_g, r)), kept]
    (dh,), (ds, ds_g) = d.scan([d.last_grad(1)], sequences, step)
    ds = op.Concat(op.Reshape(ds, [-1, 2 * hidden]), op.Reshape(ds_g, [-1, hidden]), axis=1)
    return [*d.gradients(ds, ds, reset), dh]


RULES.rule("RNN")(recurrent_rule(1, ["Tanh"], _rnn))
RULES.rule("GRU")(recurrent_rule(3, ["Sigmoid", "Tanh"], _gru))
RULES.rule("LSTM")(recurrent_rule(4, ["Sigmoid", "Tanh", "Tanh"], _lstm))
