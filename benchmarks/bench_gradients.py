"""Compare gradients by rules, onnxruntime-training and onnx-ad: time to differentiate, nodes, time per run.

Multi-layer perceptrons of 2 to 50 layers, 64 units wide, batches of 32, squared loss, one thread. The
gradient is by all weights. Figures are medians of several rounds; ratios are relative to rules.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import onnx_ad
from onnx import ModelProto, TensorProto, helper
from rich.console import Console
from rich.table import Table

from ortlearn.differentiation import gradient_of_loss
from ortlearn.differentiation.cpp_builder import is_available
from ortlearn.runtime.devices import parse_device
from ortlearn.runtime.sessions import make_session

WIDTH, BATCH = 64, 32


def mlp(n_layers: int) -> tuple[ModelProto, list[str]]:
    """Return a perceptron with a squared loss, its weights as inputs."""
    inputs: list[tuple[str, tuple]] = [("x", ("N", WIDTH)), ("y", ("N", WIDTH))]
    nodes, last = [], "x"
    weights: list[str] = []
    for layer in range(n_layers):
        names = f"w{layer:02d}", f"b{layer:02d}"
        inputs += [(names[0], (WIDTH, WIDTH)), (names[1], (WIDTH,))]
        weights += names
        nodes.append(helper.make_node("MatMul", [last, names[0]], [f"m{layer}"], name=f"product_{layer}"))
        nodes.append(helper.make_node("Add", [f"m{layer}", names[1]], [f"a{layer}"], name=f"sum_{layer}"))
        last = f"a{layer}"
        if layer < n_layers - 1:
            nodes.append(helper.make_node("Relu", [last], [f"r{layer}"], name=f"relu_{layer}"))
            last = f"r{layer}"
    nodes.append(helper.make_node("Sub", [last, "y"], ["d"], name="difference"))
    nodes.append(helper.make_node("Mul", ["d", "d"], ["s"], name="square"))
    nodes.append(helper.make_node("ReduceSum", ["s"], ["loss"], keepdims=0, name="total"))
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs]
    loss = [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])]
    graph = helper.make_graph(nodes, "mlp", infos, loss)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    return model, weights


def differentiators() -> dict[str, Callable[[ModelProto, list[str]], ModelProto]]:
    """Return the functions to compare; onnxruntime-training only if it is installed."""
    ways: dict[str, Callable[[ModelProto, list[str]], ModelProto]] = {
        "rules": lambda model, weights: gradient_of_loss(model, "loss", weights, "rules")
    }
    if is_available():
        ways["ort"] = lambda model, weights: gradient_of_loss(model, "loss", weights, "ort")
    ways["onnx-ad"] = lambda model, weights: onnx_ad.reverse(model, inputs=weights, layout="onnx")
    return ways


def feeds_of(session, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return random inputs; ones for the gradient of the loss."""
    feeds = {}
    for value in session.get_inputs():
        shape = [dim if isinstance(dim, int) else BATCH for dim in value.shape]
        if value.name.startswith("adj_"):
            feeds[value.name] = np.ones([1] * len(shape), dtype=np.float32)
        else:
            feeds[value.name] = (rng.normal(size=shape) / 8).astype(np.float32)
    return feeds


def run_seconds(session, feeds, repeat: int) -> float:
    """Return the seconds of one run."""
    start = time.perf_counter()
    for _ in range(repeat):
        session.run(None, feeds)
    return (time.perf_counter() - start) / repeat


def measure(n_layers: int, rounds: int) -> dict[str, tuple[float, int, float]]:
    """Return seconds to differentiate, nodes and seconds per run of each function."""
    model, weights = mlp(n_layers)
    device, rng = parse_device("cpu"), np.random.default_rng(0)
    build: dict[str, list[float]] = {}
    runs: dict[str, list[float]] = {}
    sessions = {}
    for name, differentiate in differentiators().items():
        onx = differentiate(model, weights)
        session = make_session(onx, device)
        sessions[name] = session, feeds_of(session, rng), len(onx.graph.node)
        run_seconds(session, sessions[name][1], 10)
    for _ in range(rounds):
        for name, differentiate in differentiators().items():
            start = time.perf_counter()
            differentiate(model, weights)
            build.setdefault(name, []).append(time.perf_counter() - start)
            session, feeds, _ = sessions[name]
            runs.setdefault(name, []).append(run_seconds(session, feeds, 50))
    return {
        name: (float(np.median(build[name])), sessions[name][2], float(np.median(runs[name])))
        for name in sessions
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, nargs="+", default=[2, 5, 10, 20, 50])
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    table = Table(title=f"Gradient of MLPs {WIDTH} wide, batches of {BATCH}, one thread")
    table.add_column("layers", justify="right")
    table.add_column("gradient by")
    for name in ("ms to differentiate", "nodes", "microseconds per run", "ratio of runs"):
        table.add_column(name, justify="right")
    ours: dict[int, float] = {}
    for layers in arguments.layers:
        results = measure(layers, arguments.rounds)
        for name, (seconds, nodes, run) in results.items():
            ratio = run / results["rules"][2]
            table.add_row(
                str(layers), name, f"{seconds * 1e3:.1f}", str(nodes), f"{run * 1e6:.0f}", f"{ratio:.2f}"
            )
        ours[layers] = results["rules"][0]
    Console(width=110).print(table)
    model, weights = mlp(333)
    rounds: list[float] = []
    for _ in range(arguments.rounds):
        start = time.perf_counter()
        gradient_of_loss(model, "loss", weights, "rules")
        rounds.append(time.perf_counter() - start)
    print(f"{len(model.graph.node)} nodes are differentiated in {np.median(rounds):.2f} s by rules.")


if __name__ == "__main__":
    main()
