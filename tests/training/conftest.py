"""Small tasks for the training loop."""

import numpy as np
import pytest
from onnx import parser

from ortlearn.graphs import TensorType
from ortlearn.learning_rates import LearningRateSGD
from ortlearn.losses import SquaredErrorLoss
from ortlearn.penalties import NoPenalty
from ortlearn.training import Data, ForwardBackwardStep, SingleGraphStep, TrainingTask

FLOAT = 1
STEPS = {"one_graph": SingleGraphStep, "two_calls": ForwardBackwardStep}


@pytest.fixture(params=list(STEPS))
def step_class(request):
    """Each of the two training steps."""
    return STEPS[request.param]


@pytest.fixture
def make_task():
    """Make the task of fitting ``x @ coef`` with a few changes."""
    graph = parser.parse_model("""
        <ir_version: 8, opset_import: ["": 18]>
        g (float[N,2] x, float[2,1] coef) => (float[N,1] score) { score = MatMul (x, coef) }""")

    def make(**changes):
        arguments = {
            "graph": graph,
            "data": "x",
            "data_type": TensorType(FLOAT, (None, 2)),
            "output": "score",
            "output_type": TensorType(FLOAT, (None, 1)),
            "weights": ["coef"],
            "intercepts": {"coef": False},
            "loss": SquaredErrorLoss(),
            "label_type": TensorType(FLOAT, (None, 1)),
            "penalty": NoPenalty(),
            "learning_rate": LearningRateSGD(eta0=0.1, power_t=0.5),
        }
        return TrainingTask(**{**arguments, **changes})

    return make


@pytest.fixture
def rows():
    """Twenty-three rows of a linear function."""
    X = np.random.RandomState(0).normal(size=(23, 2)).astype(np.float32)
    return Data(X, X @ np.array([[1.0], [-2.0]], np.float32))
