"""A batch as two calls: content of the graphs, and conditions for four calls."""

import numpy as np
import pytest
from onnx import parser
from scipy.sparse import csr_matrix

from ortlearn.data.samples import Data
from ortlearn.graphs import TensorType
from ortlearn.learning_rates import LearningRateAdam, LearningRateSGDNesterov
from ortlearn.losses import FunctionLoss
from ortlearn.penalties import ElasticPenalty
from ortlearn.runtime.devices import Device
from ortlearn.runtime.sessions import make_session
from ortlearn.training.loop import run_training
from ortlearn.training.settings import LoopSettings
from ortlearn.training.state import TrainingState
from ortlearn.training.steps.forward_backward_step import ForwardBackwardStep
from ortlearn.training.steps.single_graph_step import SingleGraphStep
from tests.training.examples import FourCallStep

FLOAT, CPU = 1, Device("cpu")
START = {"w1": np.array([[1.0, -2.0, 0.5], [0.3, 1.0, -1.0]], np.float32), "w2": np.ones((3, 1), np.float32)}


@pytest.fixture
def make_network(make_task):
    """Return a function that creates the task of fitting a small network."""
    graph = parser.parse_model("""
        <ir_version: 8, opset_import: ["": 18]>
        g (float[N,2] x, float[2,3] w1, float[3,1] w2) => (float[N,1] score)
        { hidden = MatMul (x, w1) active = Relu (hidden) score = MatMul (active, w2) }""")

    def make(**changes):
        weights = {"w1": False, "w2": False}
        return make_task(**{"model": graph, "intercepts": weights, **changes})

    return make


def trained(step, data, batch_size=5, **settings):
    loop = LoopSettings(max_iter=3, batch_size=batch_size, **settings)
    weights = {n: a for n, a in START.items() if n in step.task.graph.weights}
    return run_training(step, data, TrainingState(weights), loop)


def n_calls(step, data=None):
    if data is not None:
        trained(step, data)
    return 4 if "update" in step.graphs() else 2


def test_first_call_ends_at_the_output_of_the_model(make_network, samples):
    task = make_network(penalty=ElasticPenalty(0.1, 0.2), learning_rate=LearningRateAdam())
    step = ForwardBackwardStep(task, CPU)
    trained(step, samples)
    forward, backward = step.graphs()["forward"], step.graphs()["backward"]
    assert {value.name for value in forward.graph.input} == {"x", "ortlearn_rows", "w1", "w2"}
    assert "score" in {value.name for value in forward.graph.output}
    assert [node.op_type for node in forward.graph.node if node.output[0] == "score"] == ["MatMul"]
    read = {value.name for value in backward.graph.input}
    assert {"score", "ortlearn_rate"} < read and task.objective.label in read and "x" not in read
    made = {name for node in forward.graph.node for name in node.output}
    assert made.isdisjoint(name for node in backward.graph.node for name in node.output)


def test_products_of_the_rate_are_computed_once(make_network, samples):
    step = ForwardBackwardStep(make_network(), CPU)
    trained(step, samples)
    rate, backward = step.graphs()["rate"].graph, step.graphs()["backward"].graph
    assert [value.name for value in rate.input] == ["ortlearn_rate"] and "Neg" in ops(rate)
    read = {value.name for value in backward.input}
    assert "ortlearn_rate" not in read and {value.name for value in rate.output} < read
    assert not {"Neg", "Div"} & set(ops(backward))


def ops(graph):
    """Return the operators of a graph."""
    return [node.op_type for node in graph.node]


@pytest.mark.parametrize(
    "rate", [LearningRateAdam(), LearningRateSGDNesterov(eta0=0.05, momentum=0.9)], ids=["adam", "nesterov"]
)
@pytest.mark.parametrize("penalty", [None, ElasticPenalty(0.01, 0.02)], ids=["free", "penalised"])
def test_two_calls_and_four_give_the_same(make_network, samples, rate, penalty):
    task = make_network(learning_rate=rate, **({} if penalty is None else {"penalty": penalty}))
    two = trained(ForwardBackwardStep(task, CPU), samples)
    four = trained(FourCallStep(task, CPU), samples)
    np.testing.assert_allclose(two.train_losses, four.train_losses, rtol=1e-5)
    for name, array in four.weights.items():
        np.testing.assert_allclose(two.weights[name], array, rtol=1e-4, atol=1e-6)


def test_sparse_samples(make_network, samples):
    dense = trained(ForwardBackwardStep(make_network(), CPU), samples)
    sparse = trained(ForwardBackwardStep(make_network(), CPU), Data(csr_matrix(samples.X), samples.y))
    for name, array in dense.weights.items():
        np.testing.assert_array_equal(sparse.weights[name], array)


def test_other_samples_and_sizes_of_batch(make_network, samples):
    step, other = ForwardBackwardStep(make_network(), CPU), Data(2 * samples.X[:17], samples.y[:17])
    trained(step, samples)
    step.release()
    again = trained(step, other, batch_size=4)
    fresh = trained(ForwardBackwardStep(make_network(), CPU), other, batch_size=4)
    for name, array in fresh.weights.items():
        np.testing.assert_array_equal(again.weights[name], array)


def test_loss_in_python_needs_four_calls(make_network, samples):
    assert n_calls(ForwardBackwardStep(make_network(), CPU), samples) == 2
    assert n_calls(ForwardBackwardStep(make_network(loss=FunctionLoss(half_square)), CPU), samples) == 4


def test_tensors_whose_shapes_depend_on_values_need_four_calls(make_task):
    graph = parser.parse_model("""
        <ir_version: 8, opset_import: ["": 18]>
        g (float[N,2] x, float[2,1] coef) => (float loss) <bool[2] known = {1, 0}>
        { product = MatMul (x, coef) square = Mul (product, product) one = ReduceSum <keepdims=0> (square)
          half = Compress <axis=0> (coef, known) other = Mul (half, half) two = ReduceSum <keepdims=0> (other)
          loss = Add (one, two) }""")
    task = make_task(
        model=graph, output="loss", loss=None, output_type=TensorType(FLOAT, ()), intercepts={"coef": False}
    )
    step = ForwardBackwardStep(task, CPU)
    X = np.ones((8, 2), np.float32)
    weights = {"coef": np.array([[0.5], [0.25]], np.float32)}
    loop = LoopSettings(max_iter=1, batch_size=8, shuffle=False)
    result = run_training(step, Data(X, np.zeros(8, np.float32)), TrainingState(weights), loop)
    assert n_calls(step) == 4
    assert result.train_losses == pytest.approx([8 * 0.75**2 + 0.5**2])


@pytest.mark.needs_training
def test_the_cpp_builder_needs_four_calls(make_network, samples):
    two, four = make_network(gradient="rules"), make_network(gradient="ort")
    assert n_calls(ForwardBackwardStep(two, CPU), samples) == 2
    step = ForwardBackwardStep(four, CPU)
    assert n_calls(step, samples) == 4 and set(step.graphs()) >= {"training", "loss", "update"}


def half_square(expected, predicted):
    """Return a loss that is written in Python, and its gradient."""
    return (predicted - expected)[:, 0] ** 2 / 2, predicted - expected


def run_apart(step, data, size, rate):
    """Return objectives and carried values of batches whose graphs are run one by one, on new tensors."""
    sessions = {name: make_session(model, CPU) for name, model in step.graphs().items()}
    order = ["training", "loss", "backward", "update"] if "update" in sessions else list(sessions)
    init = step.task.update.learning_rate.init
    first = {item: START[item.weight] for item in step.carried}
    values = {i.source: array if i.state is None else init(array)[i.state] for i, array in first.items()}
    objectives = []
    for samples in np.arange(len(data)).reshape(-1, size):
        columns = step.task.columns(data)
        values |= columns if step.plan.gathers else {name: a[samples] for name, a in columns.items()}
        values |= {"ortlearn_rows": samples, "ortlearn_rate": np.array(rate, np.float32)}
        terms = []
        for name in order:
            if name not in sessions:
                losses, slopes = half_square(values[step.task.objective.label], values["score"])
                shares = np.ones_like(losses) / np.float32(len(samples))
                found = {"ortlearn_objective": float(losses @ shares), "score_grad": slopes * shares[:, None]}
            else:
                inputs = {value.name: values[value.name] for value in sessions[name].get_inputs()}
                names = [value.name for value in sessions[name].get_outputs()]
                found = dict(zip(names, sessions[name].run(None, inputs), strict=True))
            values |= found
            terms += [float(found[own]) for own in ("ortlearn_objective", "ortlearn_penalty") if own in found]
        objectives.append(sum(terms))
        values |= {item.source: values[item.result] for item in step.carried}
    return objectives, {(item.weight, item.state): values[item.source] for item in step.carried}


@pytest.mark.parametrize("rate", [LearningRateAdam(), LearningRateSGDNesterov(eta0=0.05)])
@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        (SingleGraphStep, {}),
        (ForwardBackwardStep, {}),
        (FourCallStep, {}),
        (ForwardBackwardStep, {"loss": FunctionLoss(half_square)}),
    ],
    ids=["one", "two", "four", "python"],
)
def test_bound_calls_give_the_bits_of_graphs_that_are_run_apart(make_network, samples, kind, changes, rate):
    step = kind(make_network(learning_rate=rate, penalty=ElasticPenalty(0.01, 0.02), **changes), CPU)
    data = samples.take(np.arange(20))
    buffers = step.start(data, [5], START)
    step.set_rate(0.05)
    found = step.run_epoch(np.arange(20), 5, buffers)
    objectives, carried = run_apart(step, data, 5, 0.05)
    assert found.tolist() == objectives
    for key, array in buffers.read().items():
        np.testing.assert_array_equal(array, carried[key], err_msg=str(key))
