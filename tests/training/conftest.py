"""Small tasks for the training loop."""

import time

import numpy as np
import pytest
from onnx import parser
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor

from ortlearn.data.samples import Data
from ortlearn.graphs import TensorType
from ortlearn.learning_rates import LearningRateSGD
from ortlearn.losses import SquaredErrorLoss
from ortlearn.models.weight_names import onnx_rename_weights
from ortlearn.penalties import NoPenalty
from ortlearn.runtime.cache import clear_cache
from ortlearn.trainable.from_estimator import sklearn_to_onnx
from ortlearn.training.graphs.task import Objective, ScoreGraph, TrainingTask, Update
from ortlearn.training.steps.epoch_step import EpochStep
from ortlearn.training.steps.forward_backward import OrtGradientForwardBackward
from ortlearn.training.steps.forward_backward_step import ForwardBackwardStep
from ortlearn.training.steps.single_graph_step import SingleGraphStep
from tests.plain_training import plain_training  # noqa: F401
from tests.simulated_clock import Clock
from tests.training.examples import FourCallStep

FLOAT = 1


STEPS = {"one_graph": SingleGraphStep, "two_calls": ForwardBackwardStep, "four_calls": FourCallStep}


@pytest.fixture(params=list(STEPS))
def step_class(request):
    """Each training step that runs one batch per call."""
    return STEPS[request.param]


@pytest.fixture(params=["epoch", *STEPS])
def any_step_class(request):
    """Each training step, including the one that runs an epoch per call."""
    return {**STEPS, "epoch": EpochStep}[request.param]


@pytest.fixture
def make_task():
    """Return a function that creates the task of fitting ``x @ coef``, with changes."""
    graph = parser.parse_model("""
        <ir_version: 8, opset_import: ["": 18]>
        g (float[N,2] x, float[2,1] coef) => (float[N,1] score) { score = MatMul (x, coef) }""")

    column = TensorType(FLOAT, (None, 1))
    task = TrainingTask(
        ScoreGraph(graph, {"x": TensorType(FLOAT, (None, 2))}, "score", column, {"coef": False}),
        Objective(SquaredErrorLoss(), NoPenalty(), column),
        Update(LearningRateSGD(eta0=0.1, power_t=0.5)),
    )

    def make(**changes):
        return task.changed(**changes)

    return make


@pytest.fixture
def samples():
    """Twenty-three samples of a linear function."""
    X = np.random.RandomState(0).normal(size=(23, 2)).astype(np.float32)
    return Data(X, X @ np.array([[1.0], [-2.0]], np.float32))


@pytest.fixture
def make_linear(make_task):
    """Return a function that creates the task of fitting ``x @ coef + intercept``."""
    text = """<ir_version: 8, opset_import: ["": 18]>
        g (DTYPE[N,2] x, DTYPE[2,1] coef, DTYPE[1] intercept) => (DTYPE[N,1] score)
        { product = MatMul (x, coef) score = Add (product, intercept) }"""

    def make(dtype="float32", **changes):
        elem_type = {"float32": 1, "float64": 11}[dtype]
        return make_task(
            **{
                "model": parser.parse_model(text.replace("DTYPE", {1: "float", 11: "double"}[elem_type])),
                "features": {"x": TensorType(elem_type, (None, 2))},
                "output_type": TensorType(elem_type, (None, 1)),
                "label_type": TensorType(elem_type, (None, 1)),
                "intercepts": {"coef": False, "intercept": True},
                "dtype": np.dtype(dtype),
                **changes,
            }
        )

    return make


@pytest.fixture
def make_samples():
    """Return a function that creates twenty-three samples of a linear function with noise."""

    def make(dtype="float32"):
        rng = np.random.RandomState(0)
        X = rng.normal(size=(23, 2))
        y = X @ np.array([[1.0], [-2.0]]) + 0.5 + rng.normal(size=(23, 1))
        return Data(X.astype(dtype), y.astype(dtype))

    return make


@pytest.fixture(scope="module")
def data():
    """Samples and labels in float32."""
    X, y = load_diabetes(return_X_y=True)
    return (X[:30] * 20).astype(np.float32), (y[:30] / 100).astype(np.float32)


@pytest.fixture(scope="module")
def mlp(data):
    """A fitted network and its graph."""
    model = MLPRegressor(hidden_layer_sizes=(6,), max_iter=20, random_state=0, tol=10).fit(*data)
    return model, onnx_rename_weights(sklearn_to_onnx(model, 10))


@pytest.fixture
def linear(data):
    """A graph of a linear function with its weights."""
    onx = onnx_rename_weights(sklearn_to_onnx(LinearRegression().fit(*data), 10))
    owner = OrtGradientForwardBackward(onx)
    return owner, [owner.get_initializer(name) for name in owner.weights_to_train]


@pytest.fixture
def clock(monkeypatch):
    """Return a simulated clock; calls take no time by default, and have not been measured."""
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter", clock)
    clear_cache()  # measurements are stored with graphs
    yield clock
    clear_cache()
