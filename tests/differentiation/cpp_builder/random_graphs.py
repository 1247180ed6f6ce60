"""Run random graphs in uses of the C++ builder, each in a process that may be killed.

``python -m tests.differentiation.cpp_builder.random_graphs FIRST COUNT [--verbose]`` prints one line of JSON.
"""

from __future__ import annotations

import argparse
import collections
import json

import numpy as np
from onnx import TensorProto, helper

from ortlearn.graphs import GraphBuilder, prune
from tests.differentiation.cpp_builder.uses import USES, Case, Outcome, in_children, outcome_of
from tests.differentiation.evaluation import run_onnxruntime

#: Inputs with their dimensions; a named dimension may be one.
INPUTS = {"x": ("N", 4), "w": (4, 4), "b": (4,), "c": ("M", 4), "d": ("N", "K"), "e": ()}
#: Operators on the positive list of one matrix and of two; those that do not fit their operands are skipped.
ONE = [
    *(lambda op, x, name=name: op.node(name, x) for name in (
        "Tanh", "Sigmoid", "Sin", "Erf", "Neg", "Relu", "LeakyRelu", "Abs", "Softplus", "Identity", "Trilu",
        "Transpose", "Flatten")),
    *(lambda op, x, name=name, axis=axis, keep=keep: op.node(name, x, axis, keepdims=keep)
      for name in ("ReduceSum", "ReduceMean", "ReduceLogSumExp")
      for axis in ([0], [-1], "") for keep in (0, 1)),
    lambda op, x: op.LogSoftmax(x, axis=0),
    lambda op, x: op.Slice(x, [1], [9], [-1]),
    lambda op, x: op.Gather(x, [0, 0, -1], axis=0),
    lambda op, x: op.Gather(x, np.array(0), axis=-1),
    lambda op, x: op.Concat(x, op.Neg(x), axis=-1),
    lambda op, x: op.Clip(x, -0.7, 0.9),
    lambda op, x: op.Pow(x, 2.0),
    lambda op, x: op.Unsqueeze(op.Squeeze(op.ReduceSum(x, [0], keepdims=1), [0]), [0]),
    lambda op, x: op.Tile(x, [2, 1]),
    lambda op, x: op.Reshape(x, [-1, 2]),
    lambda op, x: op.Mul(*op.node("Split", x, n_outputs=2, axis=-1, num_outputs=2)),
    lambda op, x: op.Sqrt(op.Add(op.Mul(x, x), 0.5)),
    lambda op, x: op.Reciprocal(op.Add(op.Exp(op.Tanh(x)), 0.5)),
]  # fmt: skip
TWO = [
    *(lambda op, x, y, name=name: op.node(name, x, y) for name in (
        "Add", "Sub", "Mul", "Max", "Min", "MatMul")),
    lambda op, x, y: op.Div(x, op.Add(op.Mul(y, y), 1.0)),
    lambda op, x, y: op.Where(op.Greater(x, y), x, op.Sin(y)),
    lambda op, x, y: op.MatMul(x, op.Transpose(y)),
    lambda op, x, y: op.Gemm(x, y, "b", alpha=0.5, beta=2.0),
    lambda op, x, y: op.Gemm(x, y, "c", transB=1),
    lambda op, x, y: op.Expand(x, op.Shape(y)),
    lambda op, x, y: op.Concat(x, y, axis=0),
]  # fmt: skip


def runs(op, model_of, feeds) -> tuple | None:
    """Return the shape of the last tensor, or None if onnx or its evaluator rejects it."""
    try:
        return run_onnxruntime(model_of(op.nodes[-1].output[0]), feeds)[0].shape
    except Exception:
        return None


def case_of(seed: int) -> Case:
    """Return a graph of 3 to 12 steps with named sizes of 1 to 4, a quarter of them unknown."""
    rng = np.random.default_rng(seed)
    sizes = {name: int(rng.choice([1, 1, 3, 4])) for name in "NMK"}
    sizes["K"] = int(rng.choice([1, 4]))
    sizes["M"] = int(rng.choice([1, sizes["N"]]))
    shapes = {name: tuple(sizes.get(d, d) for d in dims) for name, dims in INPUTS.items()}
    feeds = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    op = GraphBuilder(18, dtype=np.float32, existing_names=INPUTS)
    known = rng.random() < 0.75

    def model_of(output):
        dims = {n: d if known else [None] * len(d) for n, d in INPUTS.items()}
        inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, dims[n]) for n in INPUTS]
        values = [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)]
        graph = helper.make_graph(op.nodes, "random", inputs, values, op.initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)

    pool = list(INPUTS)
    _grow(op, rng, pool, shapes, model_of, feeds)
    ends = [name if shapes[name] == () else op.ReduceSum(name, keepdims=0) for name in pool[-3:]]
    op.Add(op.Add(*ends[:2]), ends[2], outputs=["total"])
    op.node("Tanh", op.Mul("total", 0.05), outputs=["y"])
    model = prune(model_of("y"))
    read = {name for node in model.graph.node for name in node.input}
    wrt = [name for name in INPUTS if name in read]
    for value in list(model.graph.input):
        if value.name not in read:
            model.graph.input.remove(value)
    return Case(model, {name: feeds[name] for name in wrt}, wrt)


def _grow(op, rng, pool, shapes, model_of, feeds) -> None:
    """Append steps to a graph, and their results to the pool."""
    for _ in range(int(rng.integers(3, 13))):
        picks = [pool[-1 - int(rng.random() ** 2 * len(pool))] for _ in "xy"]
        ranks = [len(shapes[name]) for name in picks]
        if ranks == [1, 1] and shapes[picks[0]] != shapes[picks[1]]:
            continue  # onnxruntime computes such products, ONNX does not define them
        steps = ONE if rng.random() < 0.6 else TWO
        kept = len(op.nodes), len(op.initializers)
        try:
            name = steps[rng.integers(len(steps))](op, *(picks if steps is TWO else picks[:1]))
        except (TypeError, ValueError):
            name = None
        shape = None if name is None else runs(op, model_of, feeds)
        if shape is None or np.prod(shape) > 400 or 0 in shape:
            del op.nodes[kept[0] :], op.initializers[kept[1] :]
            continue
        shapes[name] = shape
        pool.append(name)


def outcome(name: str) -> Outcome:
    seed, use = name.split("|")
    return outcome_of(case_of(int(seed)), use)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    uses = ["loop", "derivative", "agent"]
    assert USES.keys() >= set(uses)
    seeds = range(arguments.first, arguments.first + arguments.count)
    found: dict[str, int] = collections.Counter()
    bad = []
    for name, (kind, details) in in_children([f"{seed}|{uses[seed % 3]}" for seed in seeds], outcome):
        found[kind] += 1
        if kind in ("wrong", "failed", "killed"):
            bad.append([name, kind, details])
        if arguments.verbose and kind != "right":
            print(name, kind, details, flush=True)
    print(json.dumps({"counts": found, "bad": bad}))


if __name__ == "__main__":
    main()
