"""The example distribution is installed (pip install ./tests/example_plugin), found, and works."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import helper, parser
from onnx.reference import ReferenceEvaluator

from ortlearn import plugins
from ortlearn.differentiation import onnx_derivative
from ortlearn.differentiation.registry import RuleSet
from ortlearn.exceptions import PluginError
from ortlearn.graphs import GraphBuilder
from ortlearn.plugins import GRADIENTS, LEARNING_RATES, LOSSES, MODELS, PENALTIES, SCHEDULES

FOLDER = Path(__file__).parents[1] / "example_plugin"
DISTRIBUTION = "ortlearn-example-plugin"
EXAMPLES = [
    (LOSSES, "example_log_cosh", "LogCoshLoss"),
    (PENALTIES, "example_squared_hinge", "SquaredHingePenalty"),
    (LEARNING_RATES, "example_sign_sgd", "LearningRateSignSGD"),
    (SCHEDULES, "example_triangles", "TriangleSchedule"),
]
RULES = (GRADIENTS, "example_rules")
MODEL = (MODELS, "ortlearn_example_plugin.models.PowerLawRegressor")


def compute(op, outputs, feeds):
    """Run the nodes of a builder on arrays."""

    def value(name, dtype):
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), None)

    graph = helper.make_graph(
        op.nodes,
        "example",
        [value(name, array.dtype) for name, array in feeds.items()],
        [value(name, op.float_dtype) for name in outputs],
        op.initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", op.opset)])
    return ReferenceEvaluator(model).run(None, feeds)


@pytest.mark.parametrize("group, name, class_name", EXAMPLES)
def test_installed_plugin_is_found_and_loads(group, name, class_name):
    (info,) = [info for info in plugins.list_plugins(group, load=True) if info.name == name]
    assert (info.distribution, info.status) == (DISTRIBUTION, "ok")
    assert info.version and info.summary.endswith(".")
    assert plugins.get(group, name).__name__ == class_name


def test_it_declares_nothing_else():
    found = [(i.group, i.name) for i in plugins.list_plugins() if i.distribution == DISTRIBUTION]
    assert found == [*((group, name) for group, name, _ in EXAMPLES), RULES, MODEL]


def test_one_of_every_kind():
    assert {group for group, _, _ in EXAMPLES} | {RULES[0], MODELS} == set(plugins.GROUPS)


@pytest.mark.slow
def test_its_own_tests_pass():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    environment = {**os.environ, "PYTHONPATH": str(FOLDER.parents[1])}
    run = subprocess.run(command, cwd=FOLDER, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_log_cosh(dtype, scale):
    expected = np.array([[0.0, 1.0], [2.0, -1.0], [0.0, 0.0]], dtype=dtype)
    predicted = np.array([[0.5, 1.0], [-1.0, 3.0], [1000.0, 0.0]], dtype=dtype)
    op = GraphBuilder(dtype=dtype)
    output = plugins.get(LOSSES, "example_log_cosh")(scale=scale).forward(op, "expected", "predicted")
    (loss,) = compute(op, [output], {"expected": expected, "predicted": predicted})
    near = scale**2 * np.log(np.cosh((predicted - expected)[:2].astype(np.float64) / scale)).sum(axis=1)
    far = scale**2 * (1000.0 / scale - np.log(2.0))
    assert loss.dtype == dtype
    np.testing.assert_allclose(loss, [*near, far], rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_squared_hinge(dtype):
    weight = np.array([[0.5, -0.9, 1.5], [-3.0, 1.0, 0.0]], dtype=dtype)
    op = GraphBuilder(dtype=dtype)
    penalty = plugins.get(PENALTIES, "example_squared_hinge")(alpha=0.1, limit=1.0)
    (value,) = compute(op, [penalty.forward(op, "w")], {"w": weight})
    assert (value.dtype, value.shape) == (dtype, ())
    np.testing.assert_allclose(value, 0.1 * (0.5**2 + 2.0**2), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sign_sgd(dtype):
    rate = plugins.get(LEARNING_RATES, "example_sign_sgd")(eta0=0.2, beta=0.5)
    weight = np.array([1.0, 2.0, 3.0], dtype=dtype)
    feeds = {
        "w": weight,
        "g": np.array([4.0, -4.0, 0.0], dtype=dtype),
        "m": rate.init(weight)["mean"] + np.array([-1.0, -1.0, 0.0], dtype=dtype),
        "r": np.array(0.25, dtype=dtype),
    }
    op = GraphBuilder(dtype=dtype)
    new_weight, state = rate.update(op, "w", "g", {"mean": "m"}, "r")
    got, mean = compute(op, [new_weight, state["mean"]], feeds)
    assert got.dtype == mean.dtype == dtype
    np.testing.assert_allclose(mean, [1.5, -2.5, 0.0])
    np.testing.assert_allclose(got, [0.75, 2.25, 3.0])


def test_triangles():
    rate = plugins.get(LEARNING_RATES, "example_sign_sgd")(eta0=0.2, learning_rate="example_triangles")
    assert [rate.rate(epoch) for epoch in (0, 5, 9, 10)] == pytest.approx([0.02, 0.2, 0.056, 0.02])


def test_gradient_of_reverse_sequence():
    assert isinstance(plugins.get(*RULES), RuleSet)
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["": 18]>
        g (float[4,2] x, int64[2] lengths) => (float[4,2] y) { y = ReverseSequence (x, lengths) }""")
    feeds = {"x": np.zeros((4, 2), np.float32), "lengths": np.array([3, 1])}
    seed = np.arange(8, dtype=np.float32).reshape(4, 2)
    onx = onnx_derivative(model, backend="rules")
    (got,) = ReferenceEvaluator(onx).run(None, {**feeds, "y_grad": seed})
    np.testing.assert_array_equal(got, np.stack([[4, 2, 0, 6], [1, 3, 5, 7]], axis=1))


@pytest.mark.parametrize(
    "group, name, params",
    [
        (LEARNING_RATES, "example_sign_sgd", {"eta0": 0.0}),
        (LEARNING_RATES, "example_sign_sgd", {"beta": 1.0}),
        (SCHEDULES, "example_triangles", {"period": 1}),
        (SCHEDULES, "example_triangles", {"low": 0.0}),
        (LOSSES, "example_log_cosh", {"scale": 0.0}),
        (PENALTIES, "example_squared_hinge", {"alpha": -1.0}),
        (PENALTIES, "example_squared_hinge", {"limit": -1.0}),
    ],
)
def test_invalid_values_are_rejected(group, name, params):
    with pytest.raises(PluginError, match=f"{next(iter(params))}=.* must be"):
        plugins.get(group, name)(**params).check()
