"""Gradients of random graphs of fixed operators, and of all forms of operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from ortlearn.graphs import GraphBuilder
from ortlearn.testing import check_gradient_rule
from tests.differentiation import fuzzing
from tests.differentiation.evaluation import run


class Step(NamedTuple):
    """One operator of a random graph, with the shape of its output."""

    n_inputs: int
    write: Callable
    shape: Callable


def same(shape):
    return shape


def keep(axis):
    return lambda s: tuple(1 if i == axis % len(s) else d for i, d in enumerate(s))


def matmul_shape(a, b):
    return (np.zeros(a) @ np.zeros(b)).shape


def last_but_one(s):
    return (*s[:-1], s[-1] - 1) if s[-1] > 1 else None


STEPS = [
    *(
        Step(1, lambda op, x, name=name: op.node(name, x), same)
        for name in ("Tanh", "Sigmoid", "Softplus", "Sin", "Erf", "Atan", "Neg", "Softsign")
    ),
    Step(1, lambda op, x: op.LeakyRelu(x, alpha=0.3), same),
    Step(1, lambda op, x: op.Relu(op.Add(x, 0.1)), same),
    Step(1, lambda op, x: op.Softmax(x, axis=-1), same),
    Step(1, lambda op, x: op.LogSoftmax(x, axis=0), same),
    Step(1, lambda op, x: op.Sqrt(op.Add(op.Mul(x, x), 0.5)), same),
    Step(1, lambda op, x: op.Exp(op.Tanh(x)), same),
    Step(1, lambda op, x: op.ReduceMean(x, [-1]), keep(-1)),
    Step(1, lambda op, x: op.ReduceSum(x, [0], keepdims=1), keep(0)),
    Step(1, lambda op, x: op.ReduceLogSumExp(x, [0], keepdims=1), keep(0)),
    Step(1, lambda op, x: op.Transpose(x), lambda s: s[::-1]),
    Step(1, lambda op, x: op.Slice(x, [1], [9], [-1]), last_but_one),
    Step(1, lambda op, x: op.Gather(x, [0, 0], axis=0), lambda s: (2, *s[1:])),
    Step(1, lambda op, x: op.Concat(x, op.Neg(x), axis=-1), lambda s: (*s[:-1], 2 * s[-1])),
    Step(1, lambda op, x: op.Pad(x, [1, 0, 0, 1]), lambda s: (s[0] + 1, s[1] + 1) if len(s) == 2 else None),
    Step(1, lambda op, x: op.Unsqueeze(op.ReduceMax(x, [0], keepdims=0), [0]), keep(0)),
    Step(1, lambda op, x: op.Clip(x, -1.3, 1.7), same),
    Step(2, lambda op, x, y: op.Add(x, y), np.broadcast_shapes),
    Step(2, lambda op, x, y: op.Sub(x, y), np.broadcast_shapes),
    Step(2, lambda op, x, y: op.Tanh(op.Mul(x, y)), np.broadcast_shapes),
    Step(2, lambda op, x, y: op.Div(x, op.Add(op.Mul(y, y), 1.0)), np.broadcast_shapes),
    Step(2, lambda op, x, y: op.Max(x, y), np.broadcast_shapes),
    Step(2, lambda op, x, y: op.Where(op.Greater(x, y), x, op.Sin(y)), np.broadcast_shapes),
    Step(2, lambda op, x, y: op.Tanh(op.MatMul(x, y)), matmul_shape),
    Step(
        2, lambda op, x, y: op.Sigmoid(op.MatMul(x, op.Transpose(y))), lambda a, b: matmul_shape(a, b[::-1])
    ),
]

INPUTS = {"x": ("N", 3), "w": (3, 3), "b": (3,), "c": (1, 3)}
SHAPES = {"x": (4, 3), "w": (3, 3), "b": (3,), "c": (1, 3)}

PLANS = st.lists(
    st.tuples(st.integers(0, len(STEPS) - 1), st.integers(0, 99), st.integers(0, 99)), min_size=9, max_size=20
)


def build(plan):
    """Return a model from random numbers; operators that do not fit their operands are skipped."""
    op = GraphBuilder(18, dtype=np.float64, existing_names=INPUTS)
    pool = list(SHAPES.items())
    for which, first, second in plan:
        step = STEPS[which]
        # Recent values first, for deep graphs.
        chosen = [pool[-1 - int(pick**2 / 99**2 * (len(pool) - 1))] for pick in (first, second)][
            : step.n_inputs
        ]
        try:
            shape = step.shape(*(shape for _, shape in chosen))
        except ValueError:  # no broadcast, no product
            continue
        if shape and np.prod(shape) <= 200:
            pool.append((step.write(op, *(name for name, _ in chosen)), shape))
    totals = [op.ReduceSum(name, keepdims=0) for name, _ in pool[-3:]]
    op.node("Sum", *totals, outputs=["y"])
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.DOUBLE, shape) for name, shape in INPUTS.items()
    ]
    output = helper.make_tensor_value_info("y", TensorProto.DOUBLE, [])
    graph = helper.make_graph(op.nodes, "random", inputs, [output], op.initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


@pytest.mark.slow
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(PLANS, st.integers(0, 9))
def test_gradients_of_random_graphs(plan, seed):
    rng = np.random.default_rng(seed)
    feeds = [rng.normal(size=SHAPES[name]) for name in INPUTS]
    check_gradient_rule(build(plan), *feeds, run=run, projections=1, rtol=2e-6, atol=1e-8)


@pytest.mark.slow
def test_sample_of_all_forms():
    """``python -m tests.differentiation.fuzzing 0 8000`` tests more graphs."""
    counts, bad = fuzzing.check_seeds(0, 400)
    assert not bad, bad
    compared = counts["right"] + counts["float32"]
    assert compared > 320, counts


@pytest.mark.slow
def test_wrong_gradient_is_detected():
    """The comparison detects an error of one per cent, in float64 and in float32."""

    def spoiled(model, y, wrt):
        onx = fuzzing.gradient_model(model, y, wrt)
        for value in onx.graph.output:
            kind = value.type.tensor_type.elem_type
            for node in onx.graph.node:
                node.output[:] = [name + "_right" if name == value.name else name for name in node.output]
            factor = helper.make_tensor(value.name + "_factor", kind, [], [1.05])
            onx.graph.initializer.append(factor)
            onx.graph.node.append(helper.make_node("Mul", [value.name + "_right", factor.name], [value.name]))
        return onx

    seeds = range(40)
    right = {seed for seed in seeds if fuzzing.check_seed(seed)[0] == "right"}
    found = [fuzzing.check_seed(seed, differentiate=spoiled)[0] for seed in right]
    assert len(right) > 5 and found.count("wrong") > len(right) / 2, found
