"""Models, weights and trainings that several tests share."""

from collections import Counter

import numpy as np
from onnx import helper, parser
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor

from ortlearn.learning_rates import LearningRateAdam, LearningRateSGD, LearningRateSGDNesterov
from ortlearn.training.steps.forward_backward_step import ForwardBackwardStep
from ortlearn.training.steps.four_calls import four_calls

#: Models, with the function of their labels.
MODELS = {
    "mlp_regression": (MLPRegressor(hidden_layer_sizes=(5, 4)), lambda X: X[:, 0]),
    "mlp_classes": (MLPClassifier(hidden_layer_sizes=(5,)), lambda X: np.digitize(X[:, 0], [-0.5, 0.5])),
    "binary": (LogisticRegression(), lambda X: X[:, 0] > 0),
    "classes": (LogisticRegression(), lambda X: np.digitize(X[:, 0], [-0.5, 0.5])),
    "two_outputs": (LinearRegression(), lambda X: X[:, :2]),
}
RATES = {
    "SGD": LearningRateSGD(),
    "Nesterov": LearningRateSGDNesterov(),
    "momentum": LearningRateSGDNesterov(nesterov=False),
    "Adam": LearningRateAdam(),
}
#: Changes of a task for a network of three weights.
NETWORK = {
    "model": parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
        g (float[N,2] x, float[2,3] first, float[3,1] second, float[1] third) => (float[N,1] score)
        { h = MatMul (x, first) t = Tanh (h) z = MatMul (t, second) score = Add (z, third) }"""),
    "intercepts": {"first": False, "second": False, "third": True},
}
NETWORK_START = {
    "first": np.array([[0.5, -1.0, 2.0], [0.25, 1.5, -0.5]], np.float32),
    "second": np.array([[1.0], [-1.0], [0.5]], np.float32),
    "third": np.array([0.1], np.float32),
}


class FourCallStep(ForwardBackwardStep):
    """ForwardBackwardStep with four calls, as for Python losses and the C++ builder."""

    def _new_plan(self, size):
        return four_calls(self, size)


def linear_start(dtype):
    """Return weights of a linear model."""
    return {"coef": np.array([[0.5], [3.0]], dtype), "intercept": np.array([-1.0], dtype)}


def random_start(task, scale=1.0):
    """Return random weights."""
    rng = np.random.RandomState(1)
    values = {value.name: value for value in task.graph.model.graph.input}
    shapes = {n: [d.dim_value for d in values[n].type.tensor_type.shape.dim] for n in task.graph.weights}
    return {name: scale * rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def train(step, data, start, size, *, rate=0.05, n_epochs=3, states=None):
    """Return losses, weights and states after some epochs without shuffling."""
    buffers = step.start(data, [size] + ([len(data) % size] if len(data) % size else []), start, states)
    step.set_rate(rate)
    losses = [step.run_epoch(np.arange(len(data)), size, buffers) for _ in range(n_epochs)]
    carried = buffers.read()
    weights = {weight: array for (weight, state), array in carried.items() if state is None}
    return np.concatenate(losses), weights, {key: carried[key] for key in carried if key[1] is not None}


def loop_counts(graph):
    """Return the number of nodes of each operator in the loop of an epoch."""
    loop = next(node for node in graph.model.graph.node if node.op_type == "Loop")
    return Counter(node.op_type for node in helper.get_node_attr_value(loop, "body").node)


def assert_same(found, expected, **tolerances):
    """Check that weights, and states, are equal and of the same shapes and types."""
    for mine, others in zip(found, expected, strict=True):
        assert mine.keys() == others.keys()
        for key, array in others.items():
            assert mine[key].shape == array.shape and mine[key].dtype == array.dtype
            np.testing.assert_allclose(mine[key], array, **tolerances, err_msg=str(key))
