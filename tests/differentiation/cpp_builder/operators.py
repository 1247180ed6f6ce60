"""Run the operators of the positive list in every use of the C++ builder, in processes that may be killed.

``python -m tests.differentiation.cpp_builder.operators [--every N] [--verbose]`` prints one line of JSON.
"""

from __future__ import annotations

import argparse
import collections
import json
from functools import cache

import numpy as np

from ortlearn.differentiation.cpp_builder.positive_list import OPERATORS
from ortlearn.differentiation.random_feed import random_feed
from ortlearn.graphs import copy_model
from tests.differentiation.cpp_builder.uses import USES, Case, Outcome, in_children, outcome_of
from tests.differentiation.models import parse
from tests.differentiation.records import RECORDS
from tests.differentiation.test_rules import node_model, wanted

#: Known dimensions: all; all with a name for the first; names; ranks; none. Then empty tensors, and float64.
SIZES = ("known", "batch", "named", "unknown", "rankless", "empty", "double")
LISTED = [record for record in RECORDS if record.op_type in OPERATORS and not record.domain]
#: Graphs of other forms; {float} is a type.
TEXTS = {
    "SoftmaxCrossEntropyLoss of samples": "g ({float}[N,3] x, int64[N] k) => ({float}[N] y) "
    '{ t = Tanh (x) y, p = SoftmaxCrossEntropyLoss <reduction = "none"> (t, k) }',
    "SoftmaxCrossEntropyLoss in the mean": "g ({float}[N,3] x, int64[N] k) => ({float} y) "
    "{ t = Tanh (x) y, p = SoftmaxCrossEntropyLoss (t, k) }",
    "one node reads an input twice": "g ({float}[N,3] x, {float}[3] w) => ({float}[3] y) { y = Mul (w, w) }",
    "an output that others read": "g ({float}[N,3] x, {float}[3] w) => ({float}[N,3] y, {float}[N,3] z) "
    "{ y = Mul (x, w) t = Tanh (y) z = Add (t, y) }",
    "an output that is an input": "g ({float}[N,3] x, {float}[3] w) => ({float}[N,3] y, {float}[N,3] z) "
    "{ y = Identity (x) z = Add (x, w) }",
    "unnamed and named axes": "g ({float}[N,1] x, {float}[M] w) => ({float}[N,1] y) "
    "{ k = Constant <value_ints = [-1, 1]> () r = Reshape (w, k) y = Mul (r, x) }",
    "Softplus of zero": "g ({float}[N,3] x) => ({float}[N,3] y) "
    "{ z = Sub (x, x) s = Add (z, x) y = Softplus (z) }",
    "Split whose outputs are all used": "g ({float}[N,4] x) => ({float}[N,2] y) "
    "{ a, b = Split <axis = 1, num_outputs = 2> (x) y = Mul (a, b) }",
}


def names() -> list[str]:
    """Return a case name for every operator, opset, size and use, and for every text, type and use."""
    records = [
        f"{number}|{record}|{opset}|{size}|{use}"
        for number, record in enumerate(LISTED)
        for opset in sorted({record.opsets[0], record.opsets[-1]})
        for size in SIZES
        for use in USES
    ]
    return records + [
        f"text|{text}|18|{kind}|{use}" for text in TEXTS for kind in ("float", "double") for use in USES
    ]


@cache
def case_of(name: str) -> Case:
    """Return the model of a name."""
    number, text, opset, size, _ = name.split("|")
    if number == "text":
        model = parse(TEXTS[text].replace("{float}", size))
        feeds = random_feed(model)
        return Case(model, feeds, [name for name, value in feeds.items() if value.dtype.kind == "f"])
    record = LISTED[int(number)]
    n_samples = 0 if size == "empty" else None
    model, feeds, inputs = node_model(
        record, int(opset), np.float64 if size == "double" else np.float32, n_samples=n_samples
    )
    return Case(_forget(model, size), feeds, wanted(record, feeds, inputs), size != "empty")


def _forget(model, size: str):
    model = copy_model(model)
    for value in (*model.graph.input, *model.graph.output):
        if size == "rankless":
            value.type.tensor_type.ClearField("shape")
        for place, dim in enumerate(value.type.tensor_type.shape.dim):
            if size == "unknown" or value in model.graph.output:
                dim.Clear()
            elif size == "named" or (
                size in ("batch", "empty") and place == 0 and value is model.graph.input[0]
            ):
                dim.dim_param = f"{value.name}_{place}"
    return model


def outcome(name: str) -> Outcome:
    return outcome_of(case_of(name), name.rpartition("|")[2])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    found: dict[str, int] = collections.Counter()
    bad, right = [], set()
    for name, (kind, details) in in_children(names()[:: arguments.every], outcome):
        found[kind] += 1
        # kernels of onnxruntime reject empty tensors at run time
        if kind in ("wrong", "killed") or (kind == "failed" and "|empty|" not in name):
            bad.append([name, kind, details])
        if kind == "right":
            right.add(name.split("|")[1].partition("-")[0])
        if arguments.verbose and kind != "right":
            print(name, kind, details, flush=True)
    never = sorted(OPERATORS.keys() - right - {"SoftmaxCrossEntropyLoss"})
    print(json.dumps({"counts": found, "bad": bad, "never": never}))


if __name__ == "__main__":
    main()
