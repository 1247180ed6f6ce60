"""Run every operator in every use of the C++ builder, each in a process that may be killed.

``python -m tests.differentiation.ort_operators [--only PATTERN ...] [--every N] [--verbose]`` prints one line
of JSON.
"""

from __future__ import annotations

import argparse
import collections
import json
from fnmatch import fnmatch

import numpy as np

from ortlearn.graphs import copy_model
from tests.differentiation.ort_uses import USES, Case, Outcome, in_children, outcome_of
from tests.differentiation.records import RECORDS
from tests.differentiation.test_rules import node_model, wanted

#: Known dimensions: all; all with a name for the first; names; ranks; none. Then empty tensors, and float64.
SIZES = ("known", "batch", "named", "unknown", "rankless", "empty", "double")


def names() -> list[str]:
    """Return a case name for every operator, opset, size and use."""
    return [
        f"{number}|{record}|{opset}|{size}|{use}"
        for number, record in enumerate(RECORDS)
        for opset in sorted({record.opsets[0], record.opsets[-1]})
        for size in SIZES
        for use in USES
    ]


def case_of(name: str) -> Case:
    """Return the model of a name."""
    number, _, opset, size, _ = name.split("|")
    record = RECORDS[int(number)]
    rows = 0 if size == "empty" else None
    model, feeds, inputs = node_model(
        record, int(opset), np.float64 if size == "double" else np.float32, rows=rows
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
    parser.add_argument("--only", nargs="*", default=["*"])
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    patterns = [f"*{pattern}*" for pattern in arguments.only]
    chosen = [name for name in names() if any(fnmatch(name, pattern) for pattern in patterns)]
    found: dict[str, int] = collections.Counter()
    bad = []
    for name, (kind, details) in in_children(chosen[:: arguments.every], outcome):
        found[kind] += 1
        if kind in ("wrong", "failed", "killed"):
            bad.append([name, kind, details])
        if arguments.verbose and kind != "right":
            print(name, kind, details, flush=True)
    print(json.dumps({"counts": found, "bad": bad}))


if __name__ == "__main__":
    main()
