"""Generators of random nodes: branches and loops, with captured tensors."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from tests.differentiation.random_models import info

__all__ = ["if_", "loop", "scan"]


class Inner:
    """Simple nodes of a body on its inputs and on captured tensors."""

    def __init__(self, g, tag):
        self.g, self.tag, self.nodes = g, tag, []

    def node(self, op_type, *inputs, output=None, **attributes):
        name = output or f"{self.tag}_{len(self.nodes)}"
        self.nodes.append(
            helper.make_node(op_type, inputs, [name], name=f"{self.tag}_n{len(self.nodes)}", **attributes)
        )
        return name

    def mix(self, names):
        """Return a tensor of the shape of the others, from some of them."""
        value = self.g.choice(names)
        for _ in range(self.g.choice([1, 2, 3])):
            if self.g.chance(0.5):
                value = self.node(self.g.choice(["Tanh", "Sin", "Sigmoid", "Neg"]), value)
            else:
                value = self.node(self.g.choice(["Add", "Mul", "Sub"]), value, self.g.choice(names))
        return self.node("Tanh", value)


def alike(g, x):
    """Return tensors of one shape for a body to capture."""
    return g.floats(lambda v: v.shape == g.shape(x))[-4:]


def if_(g):
    x = g.pick()
    condition = g.given(np.array(g.chance(0.5)))
    graphs = {}
    tag = f"b{len(g.values)}"
    outputs = g.choice([1, 2])
    for side in ("then_branch", "else_branch"):
        body = Inner(g, f"{tag}{side[0]}")
        found = [body.mix(alike(g, x)) for _ in range(outputs)]
        infos = [info(n, g.values[x], [None] * g.values[x].ndim) for n in found]
        graphs[side] = helper.make_graph(body.nodes, side, [], infos)
    found = g.node("If", condition, n_outputs=outputs, **graphs)
    return found if outputs == 1 else g.choice(found)


def loop(g):
    x = g.pick()
    count = g.choice([1, 2])
    states = [g.choice(alike(g, x)) for _ in range(count)]
    tag = f"b{len(g.values)}"
    body = Inner(g, tag)
    inner = [f"{tag}_s{i}" for i in range(count)]
    names = [*inner, *alike(g, x)]
    going = body.node("Identity", f"{tag}_go")
    if g.chance(0.3):
        factor = body.node("Cast", f"{tag}_i", to=TensorProto.DOUBLE)
        names.append(body.node("Mul", inner[0], factor))
    ends = [
        body.mix(names) if g.chance(0.9) else body.node("Identity", g.choice(names)) for _ in range(count)
    ]
    kept = [body.mix(names)] if g.chance(0.5) else []
    unknown = [None] * g.values[x].ndim if g.chance(0.3) else None
    scalar = np.array(True)
    inputs = [info(f"{tag}_i", np.array(0)), info(f"{tag}_go", scalar)]
    inputs += [info(n, g.values[x], unknown) for n in inner]
    outputs = [info(going, scalar), *(info(n, g.values[x], unknown) for n in (*ends, *kept))]
    graph = helper.make_graph(body.nodes, "body", inputs, outputs)
    trips = g.given(np.array(g.choice([0, 1, 2, 3]) if g.empty else g.choice([1, 2, 3])))
    total = count + len(kept)
    go = g.given(np.array(True)) if g.chance(0.7) else ""
    found = g.node("Loop", trips, go, *states, n_outputs=total, body=graph)
    return found if total == 1 else g.choice(found)


def scan(g):
    x = g.pick(lambda v: v.ndim <= 2)
    shape = g.shape(x)
    states = [g.choice(alike(g, x)) for _ in range(g.choice([0, 1, 2]))]
    length, items = g.choice([1, 2, 3]), g.choice([1, 2])
    axes = [int(g.rng.integers(len(shape) + 1)) for _ in range(items)]
    sequences = [g.of_shape((*shape[:a], length, *shape[a:])) for a in axes]
    tag = f"b{len(g.values)}"
    body = Inner(g, tag)
    own = [f"{tag}_s{i}" for i in range(len(states))]
    read = [f"{tag}_x{i}" for i in range(items)]
    names = [*own, *read, *alike(g, x)]
    ends = [body.mix(names) for _ in own]
    kept = [body.mix(names) for _ in range(g.choice([0, 1, 2]) if own else 1)]
    infos = [[info(n, g.values[x]) for n in group] for group in ((*own, *read), (*ends, *kept))]
    graph = helper.make_graph(body.nodes, "body", *infos)
    ways = {
        "scan_input_axes": axes,
        "scan_input_directions": [g.choice([0, 1]) for _ in sequences],
        "scan_output_axes": [int(g.rng.integers(len(shape) + 1)) for _ in kept] or None,
        "scan_output_directions": [g.choice([0, 1]) for _ in kept] or None,
    }
    total = len(ends) + len(kept)
    found = g.node("Scan", *states, *sequences, n_outputs=total, body=graph, num_scan_inputs=items, **ways)
    return found if total == 1 else g.choice(found)
