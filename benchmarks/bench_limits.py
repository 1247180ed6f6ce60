"""Lower bounds of the time per batch in ONNX Runtime: gathering samples and matrix products.

``python -m benchmarks.bench_limits`` (2 minutes, one core) compares the epoch of ``OrtGradientOptimizer``
with three loops, for each network of the benchmark: an empty loop; one that gathers a batch and
computes the matrix products of forward and backward pass (they add gradients to weights and velocities); and
the same with Relu, its derivative and intercepts. None of them computes a loss.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import onnxruntime
from onnx import ModelProto, TensorProto, helper, numpy_helper
from rich.console import Console
from rich.table import Table

from benchmarks.cases import CASES, Case
from benchmarks.contenders.of_ortlearn import SingleGraph

__all__ = ["PARTS", "least_graph"]

PARTS = ("empty loop", "gathers and products", "with Relu and intercepts")
#: Batches per iteration of the loop; the time per batch is lowest for most networks.
UNROLLED = 8


class _Body:
    """Nodes of an iteration, and the current names of weights, intercepts and velocities."""

    def __init__(self, case: Case, whole: bool):
        self.nodes: list = []
        self.depth, self.whole, self.momentum = len(case.layers) - 1, whole, case.momentum > 0
        kinds = ["w", *(["b"] if whole else [])]
        kinds += [f"v{kind}" for kind in kinds if self.momentum]
        self.now = {f"{kind}{i}": f"{kind}{i}" for kind in kinds for i in range(self.depth)}

    def node(self, op_type: str, *inputs: str, **attributes: int) -> str:
        """Append a node, and return its output."""
        output = f"{op_type}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [output], **attributes))
        return output

    def moved(self, name: str, product: Callable[[str], str]) -> None:
        """Append an update: add a gradient to a weight, or to its velocity, which is added to the weight."""
        if not self.momentum:
            self.now[name] = product(self.now[name])
            return
        self.now[f"v{name}"] = product(self.now[f"v{name}"])
        self.now[name] = self.node("Add", self.now[name], self.now[f"v{name}"])

    def batch(self, number: str) -> None:
        """Append the nodes of a batch."""
        now = self.now
        layers = [self.node("Gather", "X", self.node("Gather", "orders", number, axis=0), axis=0)]
        for i in range(self.depth):
            weight = now[f"w{i}"]
            layer = layers[-1]
            scores = (
                self.node("Gemm", layer, weight, now[f"b{i}"])
                if self.whole
                else self.node("MatMul", layer, weight)
            )
            layers.append(self.node("Relu", scores) if self.whole and i < self.depth - 1 else scores)
        gradient = self.node("Sub", layers[-1], "y")
        for i in reversed(range(self.depth)):
            back, layer, slope = now[f"w{i}"], layers[i], gradient
            self.moved(
                f"w{i}", lambda old, layer=layer, slope=slope: self.node("Gemm", layer, slope, old, transA=1)
            )
            if self.whole:
                self.moved(f"b{i}", lambda old, slope=slope: self.node("Gemm", "ones", slope, old, transA=1))
            if i:
                gradient = self.node("Gemm", gradient, back, transB=1)
                if self.whole:
                    gradient = self.node("Mul", gradient, self.node("Sign", layers[i]))


def least_graph(case: Case, part: str) -> ModelProto:
    """Return a loop over the batches of an epoch that computes part of a training.

    Parameters
    ----------
    case : Case
        Network, samples and batches.
    part : {"empty loop", "gathers and products", "with Relu and intercepts"}
        Part to compute.

    Returns
    -------
    onnx.ModelProto
        Graph of X (samples, features) and ``orders`` (batches, batch size), which returns the weights.
    """
    body = _Body(case, part == PARTS[2])
    carried = list(body.now)
    first = body.node("Mul", "iteration", "unrolled")
    for number in range(UNROLLED if part != PARTS[0] else 0):
        body.batch(body.node("Add", first, f"plus_{number}"))
    shapes = list(zip(case.layers, case.layers[1:], strict=False))
    types = {
        name: shapes[int(name[-1])] if "w" in name else (1, shapes[int(name[-1])][1]) for name in carried
    }
    nodes = [*body.nodes, *(helper.make_node("Identity", [body.now[n]], [f"new_{n}"]) for n in carried)]
    nodes.append(helper.make_node("Identity", ["condition"], ["next"]))
    info = helper.make_tensor_value_info
    loop_body = helper.make_graph(
        nodes,
        "batches",
        [
            info("iteration", TensorProto.INT64, []),
            info("condition", TensorProto.BOOL, []),
            *_floats(types, ""),
        ],
        [info("next", TensorProto.BOOL, []), *_floats(types, "new_")],
    )
    n_full, rng = case.n_samples // case.batch_size, np.random.default_rng(0)
    constants = {
        "unrolled": np.array(UNROLLED),
        **{f"plus_{number}": np.array(number) for number in range(UNROLLED)},
        "ones": np.ones((case.batch_size, 1), np.float32),
        "y": np.zeros((case.batch_size, case.layers[-1]), np.float32),
        "iterations": np.array(n_full // UNROLLED),
        "true": np.array(True),
        **{f"first_{n}": 1e-3 * rng.standard_normal(types[n], dtype=np.float32) for n in carried},
    }
    names = ["iterations", "true", *(f"first_{name}" for name in carried)]
    loop = helper.make_node("Loop", names, [f"last_{name}" for name in carried], body=loop_body)
    inputs = [
        helper.make_tensor_value_info("X", TensorProto.FLOAT, [case.n_samples, case.layers[0]]),
        helper.make_tensor_value_info("orders", TensorProto.INT64, [n_full, case.batch_size]),
    ]
    arrays = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph([loop], "least", inputs, _floats(types, "last_"), arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def _floats(types: dict, prefix: str) -> list:
    return [
        helper.make_tensor_value_info(f"{prefix}{n}", TensorProto.FLOAT, shape) for n, shape in types.items()
    ]


def measured(case: Case, rounds: int) -> list[float]:
    """Return the microseconds per batch of each part, and of our epoch: medians of alternating rounds."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((case.n_samples, case.layers[0]), dtype=np.float32)
    n_full = case.n_samples // case.batch_size
    feeds = {
        "X": X,
        "orders": rng.permutation(case.n_samples)[: n_full * case.batch_size].reshape(n_full, -1),
    }
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.execution_order = onnxruntime.ExecutionOrder.PRIORITY_BASED
    runs = []
    for part in PARTS:
        content = least_graph(case, part).SerializeToString()
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        runs.append(lambda session=session: session.run(None, feeds))
    contender = SingleGraph(case, X, labels(case, rng), 1)
    short, long = 3, 3 + max(5, 4_000 // case.n_batches)
    times: list[list[float]] = [[] for _ in (*PARTS, "ours")]
    for _ in range(rounds):
        for place, run in enumerate(runs):
            spent = seconds(lambda run=run: [run() for _ in range(long - short)])
            times[place].append(spent / ((long - short) * n_full // UNROLLED * UNROLLED))
        spent = seconds(lambda: contender.fit(long, True)) - seconds(lambda: contender.fit(short, True))
        times[-1].append(spent / ((long - short) * case.n_batches))
    return [1e6 * statistics.median(found) for found in times]


def labels(case: Case, rng: np.random.Generator) -> np.ndarray:
    """Return labels of a case, drawn at random."""
    if case.task == "classification":
        return rng.integers(max(case.layers[-1], 2), size=case.n_samples)
    return rng.standard_normal(case.n_samples, dtype=np.float32)


def seconds(run: Callable[[], object]) -> float:
    """Return the seconds of a call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def main() -> None:
    """Print a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="rounds of every measurement")
    rounds = parser.parse_args().rounds
    table = Table("case", *PARTS, "ours", "ours / products", "ours / all")
    for case in CASES:
        *parts, ours = measured(case, rounds)
        cells = [*parts, ours, ours / parts[1], ours / parts[2]]
        table.add_row(case.name, *(f"{cell:.3g}" for cell in cells))
    Console().print(table)


if __name__ == "__main__":
    main()
