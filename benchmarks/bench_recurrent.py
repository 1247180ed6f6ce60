"""Time of recurrent layers with gradient, relative to the layer alone, with an upper bound.

Layers of 128 units over 100 steps, batches of 32, 128 inputs, one thread. The gradient is by the inputs and
all weights, and its graph includes the layer. Figures are medians of several rounds.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from onnx import ModelProto, TensorProto, helper
from rich.console import Console
from rich.table import Table

from ortlearn.differentiation import gradient_of_loss
from ortlearn.runtime.devices import parse_device
from ortlearn.runtime.sessions import make_session

UNITS, STEPS, BATCH = 128, 100, 32
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
#: Upper bound of the time of a layer with gradient, relative to the layer alone.
TARGET = 6.0


def layer(op_type: str, directions: int) -> ModelProto:
    """Return a recurrent layer with the sum of squares of its outputs as loss, its weights as inputs."""
    rows = GATES[op_type] * UNITS
    shapes = {
        "x": ("T", "N", UNITS),
        "w": (directions, rows, UNITS),
        "r": (directions, rows, UNITS),
        "b": (directions, 2 * rows),
    }
    direction = "bidirectional" if directions == 2 else "forward"
    nodes = [
        helper.make_node(op_type, list(shapes), ["y"], hidden_size=UNITS, direction=direction),
        helper.make_node("Mul", ["y", "y"], ["s"]),
        helper.make_node("ReduceSum", ["s"], ["loss"], keepdims=0),
    ]
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    loss = [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])]
    graph = helper.make_graph(nodes, "layer", infos, loss)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def seconds(session, feeds) -> float:
    """Return the seconds of one run."""
    start = time.perf_counter()
    session.run(None, feeds)
    return time.perf_counter() - start


def measure(op_type: str, directions: int, rounds: int) -> tuple[float, float]:
    """Return the seconds of a layer, and of a layer with its gradient."""
    model, rng, device = layer(op_type, directions), np.random.default_rng(0), parse_device("cpu")
    onx = gradient_of_loss(model, "loss", ["x", "w", "r", "b"], "rules")
    sizes = {"T": STEPS, "N": BATCH}
    feeds = {}
    for value in model.graph.input:
        shape = [sizes.get(dim.dim_param, dim.dim_value) for dim in value.type.tensor_type.shape.dim]
        feeds[value.name] = (rng.normal(size=shape) / 8).astype(np.float32)
    sessions = [make_session(either, device) for either in (model, onx)]
    for session in sessions:
        seconds(session, feeds)
    found = [[seconds(session, feeds) for session in sessions] for _ in range(rounds)]
    forward, both = np.median(found, axis=0)
    return float(forward), float(both)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    arguments = parser.parse_args()
    table = Table(title=f"Layers of {UNITS} units, {STEPS} steps, batches of {BATCH}, one thread")
    for name in ("layer", "directions", "ms", "ms with gradient", "ratio", f"at most {TARGET:g}"):
        table.add_column(name, justify="right")
    for op_type in GATES:
        for directions in (1, 2):
            forward, both = measure(op_type, directions, arguments.rounds)
            ratio = both / forward
            kept = "yes" if ratio <= TARGET else "no"
            values = f"{forward * 1e3:.2f}", f"{both * 1e3:.2f}", f"{ratio:.2f}"
            table.add_row(op_type, str(directions), *values, kept)
    Console().print(table)


if __name__ == "__main__":
    main()
