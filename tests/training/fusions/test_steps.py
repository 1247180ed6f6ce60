"""Every pass, alone and with the others, on training steps of scikit-learn models."""

from collections import Counter

import numpy as np
import pytest
from onnx import parser

from ortlearn.estimators import OrtGradientOptimizer
from ortlearn.penalties import ElasticPenalty, L2Penalty
from ortlearn.runtime.devices import Device
from ortlearn.runtime.sessions import make_session
from ortlearn.training.fusions import PASSES, fuse_step
from ortlearn.training.steps.epoch_graph import batch_graph
from tests.pairwise import pairwise
from tests.training.examples import MODELS, RATES

ROWS = 6
OPTIONS = {
    "plain": {},
    "penalty": {"penalty": ElasticPenalty(l1=0.1, l2=0.2)},
    "weighted": {"weighted": True},
}


@pytest.fixture(scope="module")
def task_of():
    """Return a function that creates training tasks, cached."""
    made = {}

    def task(name, dtype, **changes):
        if (name, dtype) not in made:
            model, labels = MODELS[name]
            X = np.random.RandomState(0).normal(size=(40, 3))
            fitted = OrtGradientOptimizer(model, dtype=dtype, max_iter=1).fit(X, labels(X))
            made[name, dtype] = fitted._fitted.step.task
        return made[name, dtype].changed(**changes)

    return task


def unfused(task):
    """Return the step of a task without fusions."""
    return batch_graph(task, ROWS, fuses=False).model


def random_feeds(task, model):
    rng = np.random.RandomState(1)
    feeds = {}
    for value in make_session(model, Device("cpu")).get_inputs():
        if value.type == "tensor(int64)":
            feeds[value.name] = rng.randint(0, 3, size=value.shape)
        else:
            positive = value.name.endswith(("square_0", "weight", "rate")) or "power" in value.name
            array = rng.uniform(0.1, 0.9, size=value.shape) if positive else rng.normal(size=value.shape)
            feeds[value.name] = np.asarray(array, dtype=task.graph.dtype)
    if task.objective.label_type.elem_type == 7 and task.graph.output_type.shape[1] == 1:
        feeds[task.objective.label] = feeds[task.objective.label] % 2
    return feeds


@pytest.mark.sweep(16)
@pairwise(name=MODELS, rate=RATES, option=OPTIONS, dtype=["float32", "float64"])
def test_all_passes(name, rate, option, dtype, task_of, assert_same):
    task = task_of(name, dtype, learning_rate=RATES[rate], **OPTIONS[option])
    model = unfused(task)
    fused = fuse_step(model)
    assert_same(model, fused, random_feeds(task, model))
    assert len(fused.graph.node) < len(model.graph.node)
    assert [v.name for v in fused.graph.input] == [v.name for v in model.graph.input]


@pytest.mark.sweep(36)
@pairwise(name=MODELS, apply=PASSES, dtype=["float32", "float64"])
def test_each_pass_alone(name, apply, dtype, task_of, assert_same):
    task = task_of(name, dtype, learning_rate=RATES["momentum"], penalty=L2Penalty(0.3), weighted=True)
    model = unfused(task)
    assert_same(model, fuse_step(model, [apply]), random_feeds(task, model))


@pytest.mark.needs_training
@pytest.mark.parametrize("rate", ["momentum", "Adam"])
@pytest.mark.parametrize("name", list(MODELS))
def test_the_cpp_gradient(name, rate, task_of, assert_same):
    task = task_of(name, "float32", learning_rate=RATES[rate], gradient="ort", penalty=L2Penalty(0.3))
    model = unfused(task)
    assert_same(model, fuse_step(model), random_feeds(task, model))


def ops(model):
    return Counter(node.op_type for node in model.graph.node)


# operators that must be absent, and present, after a pass on the step of an MLP with momentum
EFFECTS = {
    "propagate_scalars": lambda before, after: after["Expand"] + after["Reshape"] + after["Unsqueeze"] == 0,
    "merge_reductions": lambda before, after: (before["ReduceMean"], after["ReduceMean"]) == (1, 0),
    "fuse_matmul_add": lambda before, after: (before["MatMul"], after["MatMul"]) == (3, 0),
    "fuse_updates": lambda before, after: after["Add"] <= before["Add"] - 6,
    "drop_identities": lambda before, after: (before["Identity"] > 0, after["Identity"]) == (True, 0),
}


@pytest.mark.parametrize("name", list(EFFECTS))
def test_operators_after_each_pass(name, task_of):
    task = task_of("mlp_regression", "float32", learning_rate=RATES["momentum"])
    model = unfused(task)
    apply = next(one for one in PASSES if one.__name__ == name)
    before = fuse_step(model, PASSES[: PASSES.index(apply)])
    after = fuse_step(before, [apply])
    assert EFFECTS[name](ops(before), ops(after)), (ops(before), ops(after))
    assert len(after.graph.node) < len(before.graph.node)


def test_squares_are_summed_at_once(task_of):
    model = unfused(task_of("two_outputs", "float32", learning_rate=RATES["SGD"]))
    assert ops(fuse_step(model))["ReduceSumSquare"] == 1
    others = [apply for apply in PASSES if apply.__name__ != "sum_of_squares"]
    assert ops(fuse_step(model, others))["ReduceSumSquare"] == 0


def test_number_of_nodes_of_a_step(task_of):
    task = task_of("mlp_regression", "float32", learning_rate=RATES["momentum"])
    left = ops(fuse_step(unfused(task)))
    # three layers, two gradients of layers, and one node per weight and intercept
    assert left["Gemm"] + left["MatMul"] == 3 + 2 + 6
    assert (left["Relu"], left["HardSigmoid"], left["ReduceSumSquare"]) == (2, 2, 1)
    assert sum(left.values()) <= 32  # including three that scale the rate, outside the loop


def test_nothing_to_fuse(run):
    model = parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
        g (float[3] x) => (float[3] y) { z = Neg (x) y = Abs (z) }""")
    fused = fuse_step(model)
    assert [n.op_type for n in fused.graph.node] == ["Neg", "Abs"]
    assert fused is not model and [n.op_type for n in model.graph.node] == ["Neg", "Abs"]
