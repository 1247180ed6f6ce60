"""The graph of an epoch: loops, short last batch and names."""

from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import helper, parser
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from ortlearn.estimators import OrtGradientOptimizer
from ortlearn.graphs import TensorType
from ortlearn.learning_rates import LearningRateAdam, LearningRateSGDNesterov
from ortlearn.penalties import L2Penalty
from ortlearn.runtime.devices import Device
from ortlearn.training.graphs.names import RATE
from ortlearn.training.steps import batch_loops
from ortlearn.training.steps.batch_loops import LOSSES, ORDER
from ortlearn.training.steps.epoch_graph import LAST, REST, batch_graph, epoch_graph
from ortlearn.training.steps.epoch_step import EpochStep
from ortlearn.training.steps.single_graph_step import SingleGraphStep

CPU = Device("cpu")
START = {"coef": np.array([[0.5], [0.5]], np.float32)}


def loops_of(model):
    """Return the bodies of the loops of a graph."""
    loops = [node for node in model.graph.node if node.op_type == "Loop"]
    return [helper.get_node_attr_value(loop, "body") for loop in loops]


def loop_of(model):
    """Return the body of the only loop of a graph."""
    (body,) = loops_of(model)
    return body


def after_an_epoch(step, samples, batch_size, rate=0.1, weights=START):
    sizes = [batch_size] + ([len(samples) % batch_size] if len(samples) % batch_size else [])
    buffers = step.start(samples, sizes, weights)
    step.set_rate(rate)
    values = step.run_epoch(np.arange(len(samples), dtype=np.int64), batch_size, buffers)
    return values, buffers.read()["coef", None] if "coef" in weights else buffers.read()


@pytest.mark.parametrize("n_joined", [1, 4])
@pytest.mark.parametrize("size, rest", [(5, 3), (5, 0), (1, 0), (1000, 1)])
@pytest.mark.parametrize("changes", [{}, {"penalty": L2Penalty(0.1), "weighted": True}])
@pytest.mark.parametrize("rate", [LearningRateSGDNesterov(), LearningRateAdam()])
def test_a_valid_graph(size, rest, changes, rate, n_joined, make_task):
    graph = epoch_graph(make_task(learning_rate=rate, **changes), size, rest, n_joined)
    onnx.checker.check_model(graph.model, full_check=True)
    inputs = [value.name for value in graph.model.graph.input]
    outputs = [value.name for value in graph.model.graph.output]
    assert {ORDER, RATE} < set(inputs) and (REST in inputs) == (LAST in outputs) == bool(rest)
    assert outputs[0] == LOSSES
    states = 2 if isinstance(rate, LearningRateSGDNesterov) else 5
    assert len(graph.carried) == states
    assert {item.source for item in graph.carried} < set(inputs)
    assert {item.result for item in graph.carried} < set(outputs)


@pytest.mark.parametrize("size, rest", [(5, 0), (5, 3)])
def test_a_valid_graph_of_a_model(size, rest, wine):
    X, y = wine.X_train, wine.y_train
    step = (
        OrtGradientOptimizer(make_pipeline(StandardScaler(), LogisticRegression()), max_iter=1)
        .fit(X, y)
        ._fitted.step
    )
    onnx.checker.check_model(epoch_graph(step.task, size, rest).model, full_check=True)
    onnx.checker.check_model(batch_graph(step.task, size).model, full_check=True)
    for model in step.graphs().values():
        onnx.checker.check_model(model, full_check=True)


def test_loop_stops_at_a_non_finite_loss(make_task, run_onnx):
    graph = epoch_graph(make_task(), 2, 1)
    X = np.ones((9, 2), np.float32)
    y = np.ones((9, 1), np.float32)
    for value, bad in [(np.nan, 4), (np.inf, 5), (-np.inf, 0)]:
        y[:] = 1
        y[bad] = value
        feeds = {"x": X, "ortlearn_label": y, RATE: np.array(0.1, np.float32), REST: np.array([8])}
        feeds |= {ORDER: np.arange(8).reshape(4, 2), graph.carried[0].source: START["coef"]}
        losses = run_onnx(graph.model, **feeds)[0]
        assert len(losses) == bad // 2 + 1
        assert np.isfinite(losses[:-1]).all() and not np.isfinite(losses[-1])


def test_long_epochs_have_several_batches_per_iteration(make_task):
    short, long, longer = (epoch_graph(make_task(), 5, 0, count).model for count in (1, 4, 8))
    bodies = [*loops_of(short), *loops_of(long), *loops_of(longer)]
    gemms = [sum(node.op_type == "Gemm" for node in body.node) for body in bodies]
    assert gemms == [count * gemms[0] for count in (1, 4, 1, 8, 1)]


def test_batches_per_iteration_increase():
    found = [batch_loops.batches_per_iteration(count) for count in (1, 31, 32, 63, 64, 255, 256, 10**6)]
    assert found == [1, 1, 4, 4, 8, 8, 16, 16]


def test_graphs_with_many_nodes_have_one_batch_per_iteration(make_task):
    steps = "".join(f" z{i + 1} = Tanh (z{i})" for i in range(batch_loops.MAX_NODES // 4))
    nodes = f"z0 = MatMul (x, coef){steps} score = Neg (z{batch_loops.MAX_NODES // 4})"
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 18]>
        g (float[N,2] x, float[2,1] coef) => (float[N,1] score) {{ {nodes} }}""")
    assert len(loops_of(epoch_graph(make_task(model=model), 5, 0, 16).model)) == 1
    assert len(loops_of(epoch_graph(make_task(), 5, 0, 16).model)) == 2


def test_rate_is_multiplied_before_the_loop(make_task):
    task = make_task(penalty=L2Penalty(0.1))
    model = epoch_graph(task, 5, 0).model
    body = loop_of(model)
    assert RATE not in {name for node in body.node for name in node.input}
    adam = epoch_graph(task.changed(learning_rate=LearningRateAdam()), 5, 0).model
    assert RATE in {name for node in loop_of(adam).node for name in node.input}


def test_features_are_gathered_in_the_loop_and_labels_before_it(make_task):
    model = epoch_graph(make_task(weighted=True), 5, 0).model
    assert Counter(node.op_type for node in model.graph.node)["GatherElements"] == 2  # labels, weights
    gathered = [node.input[0] for node in loop_of(model).node if node.op_type == "Gather"]
    assert len(gathered) == 4 and {"x", ORDER} < set(gathered)


def test_no_preprocessing_in_the_loop(wine):
    X, y = wine.X_train[:60], wine.X_train[:60, 0]
    pipeline = make_pipeline(
        StandardScaler(),
        PolynomialFeatures(2),
        StandardScaler(),
        MLPRegressor(hidden_layer_sizes=(4,), random_state=0),
    )
    found, weights = {}, {}
    for hoist in (True, False):
        optimizer = OrtGradientOptimizer(
            pipeline, precompute=hoist, max_iter=3, random_state=0, learning_rate=1e-4, batch_size=16
        ).fit(X, y)
        model = optimizer._fitted.step.graphs()["epoch"]
        found[hoist] = Counter(node.op_type for node in loop_of(model).node)
        assert optimizer.n_iter_ == 3
        weights[hoist] = optimizer.trained_coef_
    for name in weights[True]:
        scale = np.abs(weights[False][name]).max()
        np.testing.assert_allclose(weights[True][name], weights[False][name], rtol=0, atol=1e-5 * scale)
    # two layers with gradients and updates
    training = {
        "Gather",
        "Gemm",
        "MatMul",
        "Mul",
        "Relu",
        "ReduceSum",
        "ReduceSumSquare",
        "HardSigmoid",
        "Sub",
        "Less",
    }
    assert set(found[True]) <= training | {"Transpose", "Add"}
    assert "Concat" in found[False] and "Concat" not in found[True]


NAMES = [
    "i", "go_on", "n_batches", "loss_is_finite", "x_start", "coef_start", "coef_looped", "last_x",
    "epoch_Shape_0", "fused_Gemm_0", "coef_grad", "x_batch",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_names_of_the_model_do_not_collide(name, make_task, samples):
    text = """<ir_version: 8, opset_import: ["": 18]>
        g (float[N,2] x, float[2,1] coef) => (float[N,1] score) { t = Neg (x) score = MatMul (t, coef) }"""
    plain = EpochStep(make_task(model=parser.parse_model(text)), CPU)
    values, expected = after_an_epoch(plain, samples, 5)
    renamed = text.replace("t = Neg", f"{name} = Neg").replace("(t,", f"({name},")
    step = EpochStep(make_task(model=parser.parse_model(renamed)), CPU)
    other, weights = after_an_epoch(step, samples, 5)
    np.testing.assert_array_equal(weights, expected)
    np.testing.assert_array_equal(other, values)


@pytest.mark.parametrize("name", ["i", "go_on", "n_batches", "going_on"])
def test_names_of_features_do_not_collide(name, make_task, samples):
    graph = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 18]>
        g (float[N,2] {name}, float[2,1] coef) => (float[N,1] score) {{ score = MatMul ({name}, coef) }}""")
    _, weights = after_an_epoch(
        EpochStep(make_task(model=graph, features={name: TensorType(1, (None, 2))}), CPU), samples, 5
    )
    _, expected = after_an_epoch(EpochStep(make_task(), CPU), samples, 5)
    np.testing.assert_array_equal(weights, expected)


def test_nodes_without_names_and_a_short_batch(make_task, samples):
    text = """<ir_version: 8, opset_import: ["": 18]>
        g (float[N,2] x, float[2,1] coef) => (float[N,1] score)
        { a = Neg (x) b = Neg (a) score = MatMul (b, coef) }"""
    task = make_task(model=parser.parse_model(text))
    assert not any(node.name for node in task.graph.model.graph.node)
    _, weights = after_an_epoch(EpochStep(task, CPU), samples, 5)
    _, expected = after_an_epoch(SingleGraphStep(make_task(), CPU), samples, 5)
    np.testing.assert_allclose(weights, expected, rtol=1e-6)


def test_random_numbers_are_drawn_in_every_batch(make_task, samples):
    graph = parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
        g (float[N,2] x, float[2,1] coef) => (float[N,1] score) <float[2,1] zeros = {0, 0}>
        { noise = RandomNormalLike (zeros) noisy = Add (coef, noise) score = MatMul (x, noisy) }""")
    task = make_task(model=graph, gradient="rules")
    step = EpochStep(task, CPU)
    buffers = step.start(samples, [5], START)
    step.set_rate(0.0)
    values = step.run_epoch(np.zeros(20, dtype=np.int64), 5, buffers)
    assert len(set(values.tolist())) == 4
