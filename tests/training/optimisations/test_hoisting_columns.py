"""Frozen parts with several inputs, including text and integers."""

import numpy as np
import pytest
import scipy.sparse
from onnx import parser

from ortlearn.data.columns import Columns
from ortlearn.data.samples import Data
from ortlearn.exceptions import ConversionError
from ortlearn.graphs import TensorType
from ortlearn.runtime.buffers import sample_bytes
from ortlearn.runtime.devices import Device
from ortlearn.training.loop import run_training
from ortlearn.training.optimisations.hoisting import Limits, hoist, needs_hoisting
from ortlearn.training.settings import LoopSettings
from ortlearn.training.state import TrainingState
from ortlearn.training.steps.epoch_step import EpochStep
from ortlearn.training.steps.forward_backward_step import ForwardBackwardStep
from ortlearn.training.steps.single_graph_step import SingleGraphStep

CPU = Device("cpu")
FLOAT, INT64, STRING = 1, 7, 8
START = {"coef": np.array([[0.5], [0.5]], np.float32)}
STEPS = [EpochStep, SingleGraphStep, ForwardBackwardStep]
TYPES = {
    "city": TensorType(STRING, (None, 1)),
    "floor": TensorType(INT64, (None, 1)),
    "size": TensorType(FLOAT, (None, 2)),
}
DECLARED = {"city": "string[N,1] city", "floor": "int64[N,1] floor", "size": "float[N,2] size"}
CODES = """h = ai.onnx.ml.LabelEncoder <keys_strings = ["Oslo", "Lima"], values_floats = [1.0, 2.0]> (city)"""


@pytest.fixture
def task_on(make_task):
    """Return a function that creates a task from nodes that compute ``score`` from three inputs."""

    def make(nodes, constants="", names=tuple(TYPES), **changes):
        declared = ", ".join(DECLARED[name] for name in names)
        text = f"""<ir_version: 8, opset_import: ["": 18, "ai.onnx.ml": 3]>
            g ({declared}, float[2,1] coef) => (float[N,1] score) {constants} {{ {nodes} }}"""
        return make_task(
            model=parser.parse_model(text), features={name: TYPES[name] for name in names}, **changes
        )

    return make


@pytest.fixture
def columns():
    """Twenty-three samples of a text, an integer and two numbers."""
    random = np.random.RandomState(0)
    return Columns(
        {
            "city": random.choice(["Oslo", "Lima"], (23, 1)).astype(object),
            "floor": random.randint(0, 5, (23, 1)),
            "size": random.normal(size=(23, 2)).astype(np.float32),
        }
    )


@pytest.fixture
def data(columns):
    return Data(columns, columns.arrays["size"].sum(axis=1, keepdims=True))


def ops(task):
    return [node.op_type for node in task.graph.model.graph.node]


def trained(task, data, step_class):
    step = step_class(task, CPU)
    settings = LoopSettings(max_iter=3, batch_size=5)
    return run_training(step, data, TrainingState(START), settings).weights["coef"]


PREFIXES = {
    "text alone": (
        f"{CODES} f = Cast <to = 1> (floor) s = Concat <axis = 1> (h, f) score = MatMul (s, coef)",
        ["MatMul"],
        {"s"},
    ),
    "text, and a matrix as it is": (
        f"{CODES} p = MatMul (size, coef) score = Mul (p, h)",
        ["MatMul", "Mul"],
        {"h", "size"},
    ),
    "whole numbers as they are": (
        f"""{CODES} a = Mul (size, h) p = MatMul (a, coef) i = Cast <to = 1> (floor)
            f = Mul (i, h) z = ReduceSum <keepdims = 1> (coef) q = Mul (f, z) score = Add (p, q)""",
        ["MatMul", "ReduceSum", "Mul", "Add"],
        {"a", "f"},
    ),
}


@pytest.mark.parametrize("step_class", STEPS)
@pytest.mark.parametrize("case", list(PREFIXES))
def test_a_prefix_of_text(case, step_class, task_on, data):
    nodes, left, features = PREFIXES[case]
    task = task_on(nodes)
    assert needs_hoisting(task)
    rest, samples = hoist(task, data, CPU, None)
    assert ops(rest) == left and samples.features.keys() == rest.graph.features.keys() == features
    assert not needs_hoisting(rest) and len(samples) == 23 and samples.y is data.y
    # the same in numpy, with codes instead of text
    numbers = np.where(data.X.arrays["city"] == "Oslo", 1, 2).astype(np.float32)
    replaced = nodes.replace(CODES, "h = Identity (city)")
    plain = task_on(replaced)
    plain.graph.model.graph.input[0].type.tensor_type.elem_type = FLOAT
    plain.graph.features["city"] = TensorType(FLOAT, (None, 1))
    same = Data(Columns({**data.X.arrays, "city": numbers}), data.y)
    np.testing.assert_allclose(
        trained(rest, samples, step_class), trained(plain, same, step_class), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("step_class", STEPS)
def test_several_inputs_in_the_loop(step_class, task_on, data):
    """Not hoisted: integers select samples of a trained weight."""
    nodes = """g = Mod (floor, two) i = Squeeze (g, one) w = Gather (coef, i)
        p = MatMul (size, coef) score = Add (p, w)"""
    task = task_on(nodes, "<int64 two = {2}, int64[1] one = {1}>", names=("floor", "size"))
    assert not needs_hoisting(task)
    whole = trained(task, data, step_class)
    assert (whole != START["coef"]).all()
    np.testing.assert_allclose(trained(*hoist(task, data, CPU, None), step_class), whole, rtol=1e-6)


def test_nothing_to_hoist_from_columns(task_on, data):
    task = task_on("score = MatMul (size, coef)", names=("size",))
    left, samples = hoist(task, data, CPU, None)
    assert left is task and samples is data
    assert list(task.columns(samples)) == ["size", "ortlearn_label"]


def test_arrays_are_not_copied(task_on, data):
    _, samples = hoist(task_on(PREFIXES["text, and a matrix as it is"][0]), data, CPU, None)
    assert samples.features["size"] is data.X.arrays["size"]


STUCK = {
    "other samples": f"""{CODES} m = ReduceMean <keepdims = 0> (h) p = MatMul (size, coef)
        score = Mul (p, m)""",
    "trained scores": f"""p = MatMul (size, coef) c = Greater (p, zero) t = Where (c, city, city)
        {CODES.replace("(city)", "(t)")} score = Mul (p, h)""",
}


@pytest.mark.parametrize("case", list(STUCK))
def test_text_that_cannot_be_computed_before(case, task_on, data):
    task = task_on(STUCK[case], "<float zero = {0}>")
    with pytest.raises(ConversionError, match=r"Inputs \['city'\] are text"):
        hoist(task, data, CPU, None)


def test_chunks_are_bounded_by_results(task_on, data, sizes_of_calls):
    """A text of eight bytes is encoded as forty bytes."""
    task = task_on(
        f"""{CODES} t = Tile (h, many) m = ReduceSum <keepdims = 0> (coef) q = Mul (t, m)
            score = ReduceSum (q, one)""",
        "<int64[2] many = {1, 10}, int64[1] one = {1}>",
    )
    with sizes_of_calls("city") as sizes:
        _, samples = hoist(task, data, CPU, None, Limits(chunk=200))
    assert samples.features["t"].shape == (23, 10) and max(sizes) == 5 and sum(sizes) == 23


@pytest.mark.parametrize("step_class", STEPS)
def test_large_results_of_many_zeros_stay_sparse(step_class, task_on, data):
    """One-hot columns give the same training as a dense matrix."""
    nodes = """o = ai.onnx.ml.OneHotEncoder <cats_strings = ["Oslo", "Lima"], zeros = 1> (city)
        s = Reshape (o, shape) score = MatMul (s, coef)"""
    task = task_on(nodes, "<int64[2] shape = {-1, 2}>")
    dense = hoist(task, data, CPU, None)
    limits = Limits(sparse=1, chunk=64)
    assert not hoist(task, data, CPU, None, limits)[1].is_sparse  # half of the values are ones
    sparse = hoist(task, data, CPU, None, limits._replace(density=0.5))
    assert scipy.sparse.issparse(sparse[1].features["s"]) and sparse[1].is_sparse
    np.testing.assert_array_equal(sparse[1].features["s"].toarray(), dense[1].features["s"])
    np.testing.assert_allclose(trained(*sparse, step_class), trained(*dense, step_class), rtol=1e-6)


def test_columns():
    samples = Columns({"a": np.arange(4), "b": np.ones((4, 2))})
    assert len(samples) == 4 and samples.shape == (4,)
    assert samples[np.array([3, 1])].arrays["a"].tolist() == [3, 1] and len(samples[1:3]) == 2
    assert sample_bytes(samples.arrays.values()) == 8 + 16
