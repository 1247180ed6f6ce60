"""The frozen part of a graph is computed before the training."""

import numpy as np
import pytest
import scipy.sparse
from onnx import parser
from sklearn.neural_network import MLPRegressor

from ortlearn.data.samples import Data
from ortlearn.estimators import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import GradientError
from ortlearn.graphs import TensorType, graph_names
from ortlearn.runtime.devices import Device
from ortlearn.training.loop import run_training
from ortlearn.training.optimisations.hoisting import Limits, hoist
from ortlearn.training.settings import LoopSettings
from ortlearn.training.state import TrainingState
from ortlearn.training.steps.epoch_step import EpochStep
from ortlearn.training.steps.single_graph_step import SingleGraphStep

CPU = Device("cpu")
START = {"coef": np.array([[0.5], [0.5]], np.float32)}


@pytest.fixture
def task_on(make_task):
    """Return a function that creates a task from nodes that compute ``score`` from ``x`` (two columns)."""

    def make(nodes, constants="", **changes):
        text = f"""<ir_version: 8, opset_import: ["": 18]>
            g (float[N,2] x, float[2,1] coef) => (float[N,1] score) {constants} {{ {nodes} }}"""
        return make_task(model=parser.parse_model(text), **changes)

    return make


def trained(task, data, step_class=EpochStep):
    step = step_class(task, CPU)
    return run_training(step, data, TrainingState(START), LoopSettings(max_iter=3, batch_size=5)).weights[
        "coef"
    ]


def ops(task):
    return [node.op_type for node in task.graph.model.graph.node]


PREFIXES = {
    "chain": ("a = Abs (x) s = Exp (a) score = MatMul (s, coef)", ["MatMul"], {"s"}),
    "two tensors": (
        "a = Neg (x) b = Abs (x) p = MatMul (a, coef) q = MatMul (b, coef) score = Mul (p, q)",
        ["MatMul", "MatMul", "Mul"],
        {"a", "b"},
    ),
    "x is read later too": (
        "a = Neg (x) c = Abs (a) p = MatMul (c, coef) q = MatMul (x, coef) score = Mul (p, q)",
        ["MatMul", "MatMul", "Mul"],
        {"c", "x"},
    ),
    "constants are no prefix": (
        "k = Exp (one) c = Mul (k, coef) a = Neg (x) score = MatMul (a, c)",
        ["Exp", "Mul", "MatMul"],
        {"a"},
    ),
    "of other types": (
        "i = ArgMax <axis = 1, keepdims = 1> (x) r = Round (x) f = Cast <to = 1> (i) b = Add (r, f)"
        " score = MatMul (b, coef)",
        ["MatMul"],
        {"b"},
    ),
    "an integer tensor": (
        """i = ArgMax <axis = 1, keepdims = 0> (x) w = Gather (coef, i) p = MatMul (x, coef)
           score = Add (p, w)""",
        ["Gather", "MatMul", "Add"],
        {"i", "x"},
    ),
}
ONE = "<float[1] one = {1}>"


@pytest.mark.parametrize("step_class", [EpochStep, SingleGraphStep])
@pytest.mark.parametrize("case", list(PREFIXES))
def test_prefix(case, step_class, task_on, samples):
    nodes, left, features = PREFIXES[case]
    task = task_on(nodes, ONE)
    rest, data = hoist(task, samples, CPU, None)
    assert ops(rest) == left
    assert data.features.keys() == rest.graph.features.keys() == features
    assert len(data) == len(samples) and data.y is samples.y
    assert all(len(array) == len(samples) for array in data.features.values())
    expected = trained(task, samples, step_class) if case != "of other types" else None
    weights = trained(rest, data, step_class)
    if expected is None:
        assert (weights != START["coef"]).any()
    else:
        np.testing.assert_allclose(weights, expected, rtol=1e-6)


def test_X_is_not_copied(task_on, samples):
    task = task_on("a = Neg (x) p = MatMul (a, coef) q = MatMul (x, coef) score = Mul (p, q)")
    _, data = hoist(task, samples, CPU, None)
    assert np.shares_memory(data.features["x"], samples.X)


@pytest.mark.parametrize("chunk", [1, 8, 17, 40, 10**6])
@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, scipy.sparse.csr_matrix])
def test_chunks_give_the_same_results(chunk, form, task_on, samples, sizes_of_calls):
    task = task_on(
        """i = ArgMax <axis = 1, keepdims = 1> (x) f = Cast <to = 1> (i) s = Mul (x, f)
           score = MatMul (s, coef)"""
    )
    with sizes_of_calls("x") as sizes:
        _, data = hoist(task, Data(form(samples.X), samples.y), CPU, None, Limits(chunk=chunk))
    expected = samples.X * samples.X.argmax(axis=1)[:, None]
    np.testing.assert_array_equal(data.features["s"], expected)
    size = max(1, chunk // 8)
    assert max(sizes) == min(size, 23) and sum(sizes) == 23


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
def test_large_results_are_computed_batch_by_batch(form, task_on, samples):
    """Results that are larger than X are computed once if they fit, else batch by batch."""
    task = task_on("""c = Concat <axis = 1> (x, x, x) a = Abs (c) t = Concat <axis = 0> (coef, coef, coef)
        score = MatMul (a, t)""")
    data, n_bytes = Data(form(samples.X), samples.y), len(samples) * 6 * 4
    once, features = hoist(task, data, CPU, None, Limits(results=n_bytes))
    assert ops(once) == ["Concat", "MatMul"] and features.features["a"].nbytes == n_bytes
    left, same = hoist(task, data, CPU, None, Limits(results=n_bytes - 1))
    assert left is task and same is data
    np.testing.assert_allclose(trained(left, same), trained(once, features), rtol=1e-6)
    task = task_on("a = Abs (x) score = MatMul (a, coef)")
    # results that are no larger than X are still stored
    assert ops(hoist(task, data, CPU, None, Limits(results=0))[0]) == ["MatMul"]


MIXED = {
    "mean of the batch": "m = ReduceMean (x, samples) s = Sub (x, m) score = MatMul (s, coef)",
    "order in the batch": "s = CumSum (x, zero) score = MatMul (s, coef)",
    "one number for the batch": "m = ReduceMax <keepdims = 0> (x) p = MatMul (x, coef) score = Mul (p, m)",
    "softmax over samples": "s = Softmax <axis = 0> (x) score = MatMul (s, coef)",
    "shape of the batch": """h = Shape (x) n = Cast <to = 1> (h) d = ReduceSum <keepdims = 0> (n)
        p = MatMul (x, coef) score = Div (p, d)""",
    "samples on the second axis": """t = Transpose <perm = [1, 0]> (x) u = Transpose <perm = [1, 0]> (coef)
        p = MatMul (u, t) score = Transpose <perm = [1, 0]> (p)""",
}


@pytest.mark.parametrize("case", list(MIXED))
def test_results_that_depend_on_other_samples_are_not_hoisted(case, task_on, samples):
    task = task_on(MIXED[case], "<int64[1] samples = {0}, int64 zero = {0}>")
    left, data = hoist(task, samples, CPU, None)
    assert left is task and data is samples


def test_compared_samples_are_far_apart(task_on, samples):
    X = samples.X.copy()
    X[:20] = 1  # equal, as neighbours often are
    data = Data(X, samples.y)
    task = task_on(
        "m = ReduceMean (x, samples) s = Sub (x, m) score = MatMul (s, coef)", "<int64[1] samples = {0}>"
    )
    assert hoist(task, data, CPU, None)[0] is task


def test_missing_values_are_compared_too(task_on, samples):
    X = samples.X.copy()
    X[::2] = np.nan
    task = task_on("b = IsNaN (x) s = Where (b, zero, x) score = MatMul (s, coef)", "<float zero = {0}>")
    left, data = hoist(task, Data(X, samples.y), CPU, None)
    assert ops(left) == ["MatMul"]
    np.testing.assert_array_equal(data.features["s"], np.where(np.isnan(X), 0, X))


@pytest.mark.parametrize("n_samples", [1, 2, 9])
def test_few_samples(n_samples, task_on, samples):
    some = Data(samples.X[:n_samples], samples.y[:n_samples])
    left, data = hoist(task_on("s = Exp (x) score = MatMul (s, coef)"), some, CPU, None)
    assert ops(left) == ["MatMul"]
    np.testing.assert_allclose(data.features["s"], np.exp(some.X), rtol=1e-6)


@pytest.mark.parametrize("nodes", ["score = MatMul (x, coef)", "a = MatMul (x, coef) score = Exp (a)"])
def test_nothing_to_hoist(nodes, task_on, samples):
    task = task_on(nodes)
    left, data = hoist(task, samples, CPU, None)
    assert left is task and data is samples


def test_nodes_that_read_labels_are_not_hoisted(make_task, samples):
    graph = parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
        g (float[N,2] x, float[2,1] coef, float[N,1] label) => (float loss)
        { s = Abs (x) score = MatMul (s, coef) half = Abs (label) d = Sub (score, half)
          q = Mul (d, d) loss = ReduceMean <keepdims = 0> (q) }""")
    task = make_task(model=graph, output="loss", output_type=TensorType(1, ()), loss=None, label="label")
    left, data = hoist(task, samples, CPU, None)
    assert ops(left) == ["MatMul", "Abs", "Sub", "Mul", "ReduceMean"]
    np.testing.assert_allclose(trained(left, data), trained(task, samples), rtol=1e-6)


FROZEN = {
    "TopK": "v, j = TopK <axis = 1> (x, two) s = Identity (v)",
    "ArgMax": "j = ArgMax <axis = 1, keepdims = 1> (x) f = Cast <to = 1> (j) s = Add (f, x)",
    "Round": "s = Round (x)",
    "unknown": "s = Hardmax (x)",
}


@pytest.mark.parametrize("case", list(FROZEN))
@pytest.mark.parametrize("optimizer", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
def test_a_frozen_prefix_needs_no_gradient(case, optimizer, diabetes):
    X, y = diabetes.X_train[:, :2], diabetes.y_train
    model = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]>
        g (float[N,2] x) => (float[N,1] score)
        <int64[1] two = {{2}}, float[2,3] frozen = {{1, 2, 3, 4, 5, 6}}, float[3,1] coef = {{0.1, 0.2, 0.3}}>
        {{ b = MatMul (x, frozen) {FROZEN[case].replace("(x", "(b")} score = MatMul (m, coef) }}""".replace(
            "Add (f, x)", "Add (f, b)"
        )
        .replace("score = ", "m = Abs (s) score = ")
        .replace("two = {2}", "two = {3}")
    )
    fitted = optimizer(model, "coef", max_iter=3, random_state=0, learning_rate=1e-3).fit(X, y)
    assert list(fitted.trained_coef_) == ["coef"]
    assert fitted.train_losses_[-1] < fitted.train_losses_[0]


def test_a_trained_operator_still_needs_one(diabetes):
    X, y = diabetes.X_train[:, :4], diabetes.y_train
    model = parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
        g (float[N,4] x) => (float[N,1] score)
        <float[1,4] first = {1, 2, 3, 4}, int64[3] square = {-1, 2, 2}, int64[2] column = {-1, 1},
         float[1,1] coef = {2}>
        { m = Mul (x, first) q = Reshape (m, square) d = Det (q) s = Reshape (d, column)
          score = MatMul (s, coef) }""")
    fitted = OrtGradientOptimizer(model, ["coef"], max_iter=3, learning_rate=1e-4).fit(X, y)
    assert fitted.train_losses_[-1] < fitted.train_losses_[0]
    with pytest.raises(GradientError, match="Det"):
        OrtGradientOptimizer(model, ["first", "coef"], max_iter=1).fit(X, y)
    with pytest.raises(GradientError, match="Det"):
        OrtGradientOptimizer(model, ["first", "coef"], max_iter=1, precompute=False).fit(X, y)


def test_frozen_layer_is_hoisted_and_exported(diabetes):
    X, y = diabetes.X_train, diabetes.y_train
    model = MLPRegressor(hidden_layer_sizes=(6, 4), random_state=0, tol=0.1).fit(X, y)
    names = OrtGradientOptimizer(model, max_iter=1, random_state=0).fit(X, y).weights_to_train_
    last = list(names)[-2:]
    results = [
        OrtGradientOptimizer(model, last, precompute=value, warm_start=True, max_iter=2, random_state=0).fit(
            X, y
        )
        for value in (True, False)
    ]
    hoisted, whole = results
    assert sorted(hoisted.trained_coef_) == sorted(last)
    for name in last:
        np.testing.assert_allclose(
            hoisted.trained_coef_[name], whole.trained_coef_[name], rtol=1e-5, atol=1e-6
        )
    assert "Relu" not in {n.op_type for n in hoisted._fitted.step.task.graph.model.graph.node}
    assert "Relu" in {n.op_type for n in whole._fitted.step.task.graph.model.graph.node}
    before, after = (
        {t.name: t.raw_data for t in m.onnx_.graph.initializer if t.name not in last} for m in results
    )
    assert before == after
    frozen = next(n for n in names if n not in last)
    assert frozen in graph_names(hoisted.onnx_.graph)
    np.testing.assert_allclose(hoisted.predict(X), whole.predict(X), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("hoisted", [True, False])
def test_a_model_for_a_fixed_number_of_samples(hoisted, diabetes):
    X, y = diabetes.X_train[:13, :2], diabetes.y_train[:13]
    text = """<ir_version: 8, opset_import: ["": 18]>
        g (float[N,2] x) => (float[N,1] score) <float[2,1] coef = {1, 2}>
        { s = Exp (x) score = MatMul (s, coef) }"""
    free, fixed = (
        OrtGradientOptimizer(
            parser.parse_model(text.replace("N", samples)),
            precompute=hoisted,
            max_iter=2,
            random_state=0,
            batch_size=4,
        )
        .fit(X, y)
        .trained_coef_["coef"]
        for samples in ("N", "4")
    )
    np.testing.assert_array_equal(free, fixed)
