"""Products of sparse samples and sums of leaves that are not computed by the graph of a solver."""

import numpy as np
import pytest
from onnx import parser
from scipy.sparse import csc_matrix, csr_matrix

from ortlearn.data.samples import Data
from ortlearn.graphs import TensorType
from ortlearn.learning_rates import LearningRateLBFGS
from ortlearn.losses import LogLoss, SquaredErrorLoss
from ortlearn.penalties import L2Penalty, NoPenalty
from ortlearn.runtime.devices import parse_device
from ortlearn.training.graphs.task import Objective, ScoreGraph, TrainingTask, Update
from ortlearn.training.solvers.gradient_step import GradientStep
from ortlearn.training.solvers.linear_maps import with_linear_maps

RNG = np.random.default_rng(0)
N, CPU = 40, parse_device("cpu")
#: Graph, types of features, shapes of weights, samples, and the number of maps.
SPARSE = RNG.normal(size=(N, 30)) * (RNG.random((N, 30)) < 0.1)
LEAVES = RNG.integers(-12, 12, size=(N, 6))
INDICES, VALUES = TensorType(7, (None, 6)), TensorType(11, (None, 30))
CASES = {
    "product": (
        "(double[N,30] x, double[30,1] v, double[1] w) => (double[N,1] f) "
        "{ p = MatMul (x, v) f = Add (p, w) }",
        {"x": VALUES},
        {"v": (30, 1), "w": (1,)},
        SPARSE,
        1,
    ),
    "several": (
        "(double[N,30] x, double[30,3] u, double[3] v, double[30,3] w) => (double[N,3] f) "
        "{ p = Gemm (x, u, v) q = MatMul (x, w) f = Mul (p, q) }",
        {"x": VALUES},
        {"u": (30, 3), "v": (3,), "w": (30, 3)},
        SPARSE,
        2,
    ),
    "output": ("(double[N,30] x, double[30,2] w) => (double[N,2] f) { f = MatMul (x, w) }", {"x": VALUES},
               {"w": (30, 2)}, SPARSE, 1),
    "leaves": (
        "(int64[N,6] x, double[12] v, double[1] w) => (double[N,1] f) <int64[1] a = {1}> "
        "{ g = Gather <axis = 0> (v, x) s = ReduceSum <keepdims = 1> (g, a) f = Add (s, w) }",
        {"x": INDICES},
        {"v": (12,), "w": (1,)},
        LEAVES,
        1,
    ),
    "rounds": (
        "(int64[N,6] x, double[12] w) => (double[N,3] f) <int64[1] a = {1}, int64[3] s = {-1, 2, 3}> "
        "{ g = Gather <axis = 0> (w, x) r = Reshape (g, s) f = ReduceSum <keepdims = 0> (r, a) }",
        {"x": INDICES},
        {"w": (12,)},
        LEAVES,
        1,
    ),
    "rows": (
        "(int64[N,6] x, double[12,3] w) => (double[N,3] f) <int64[1] a = {1}> "
        "{ g = Gather <axis = 0> (w, x) f = ReduceSum <keepdims = 0> (g, a) }",
        {"x": INDICES},
        {"w": (12, 3)},
        LEAVES,
        1,
    ),
    "read twice": (
        "(int64[N,6] x, double[12] w) => (double[N,1] f) <int64[1] a = {1}> "
        "{ g = Gather <axis = 0> (w, x) s = ReduceSum (g, a) m = ReduceMax <axes = [1]> (g) f = Mul (s, m) }",
        {"x": INDICES},
        {"w": (12,)},
        LEAVES,
        1,
    ),
}  # fmt: skip


def made(name, loss=None, penalty=None):
    """Return a task, its weights and its samples, and the number of maps."""
    text, features, shapes, X, count = CASES[name]
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g {text}')
    known = TensorType(11, (None, model.graph.output[0].type.tensor_type.shape.dim[1].dim_value))
    graph = ScoreGraph(model, features, "f", known, dict.fromkeys(shapes, False), dtype=np.dtype(np.float64))
    objective = Objective(loss or SquaredErrorLoss(), penalty or NoPenalty(), known, weighted=True)
    weights = {own: RNG.normal(size=shape) for own, shape in shapes.items()}
    y = RNG.normal(size=(N, known.shape[1]))
    data = Data(csr_matrix(X) if X is SPARSE else X, y, RNG.uniform(0.5, 2, size=N))
    return TrainingTask(graph, objective, Update(LearningRateLBFGS())), weights, data, count


def evaluated(task, weights, data, **limits):
    """Return the number of maps, objective and gradient."""
    step = GradientStep(task, CPU)
    vars(step).update(limits)
    step.start(data, [], weights)
    return len(step._maps), *step.evaluate(weights)


@pytest.mark.parametrize("penalty", [NoPenalty(), L2Penalty(0.3)], ids=lambda penalty: type(penalty).__name__)
@pytest.mark.parametrize("name", CASES)
def test_objective_and_gradient_are_those_of_the_graph(name, penalty):
    task, weights, data, count = made(name, penalty=penalty)
    found, expected = evaluated(task, weights, data), evaluated(task, weights, data, max_activations=1)
    assert (found[0], expected[0]) == (count, 0)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-13)
    np.testing.assert_allclose(found[2], expected[2], rtol=0, atol=1e-12 * np.abs(expected[2]).max())


def test_gradient_is_that_of_finite_differences():
    task, weights, data, _ = made("several")
    step = GradientStep(task, CPU)
    step.start(data, [], weights)
    gradient, position = step.evaluate(weights)[1], 0
    for name, array in weights.items():
        for index in ((0, 0), (7, 2)) if array.ndim > 1 else ((1,),):
            moved = [{**weights, name: array.copy()} for _ in range(2)]
            for sign, own in zip((1, -1), moved, strict=True):
                own[name][index] += sign * 1e-5
            slope = (step.evaluate(moved[0])[0] - step.evaluate(moved[1])[0]) / 2e-5
            place = position + np.ravel_multi_index(index, array.shape)
            assert gradient[place] == pytest.approx(slope, rel=1e-6, abs=1e-8)
        position += array.size


@pytest.mark.parametrize("index", [12, -13])
def test_an_index_out_of_bounds_is_an_error_of_the_graph(index):
    task, weights, data, _ = made("leaves")
    wrong = data.X.copy()
    wrong[3, 2] = index
    with pytest.raises(RuntimeError, match="Out of range"):
        evaluated(task, weights, Data(wrong, data.y, data.sample_weight))


def test_samples_that_are_also_read_otherwise_are_not_mapped():
    text = "(double[N,30] x, double[30,1] w) => (double[N,1] f) { e = Exp (x) f = MatMul (e, w) }"
    task, _, data, _ = made("output")
    other = task.changed(model=parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g {text}'))
    assert with_linear_maps(other, {"x": data.X}) == (other, [])
    assert with_linear_maps(task, {"x": data.X.toarray()}) == (task, [])
    product = "(double[N,30] x, double[30,2] w) => (double[N,2] f) { v = Exp (w) f = MatMul (x, v) }"
    other = task.changed(model=parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g {product}'))
    assert with_linear_maps(other, {"x": data.X}) == (other, [])


def test_samples_in_columns():
    task, weights, data, _ = made("product")
    expected = evaluated(task, weights, data)
    found = evaluated(task, weights, Data(csc_matrix(data.X), data.y, data.sample_weight))
    assert found[0] == 1
    np.testing.assert_allclose(found[2], expected[2], rtol=1e-12)


def test_the_log_loss_of_classes():
    task, weights, data, _ = made("rounds")
    labels = TensorType(7, (None,))
    task = task.changed(loss=LogLoss(), label_type=labels)
    data = Data(data.X, RNG.integers(0, 3, size=N), data.sample_weight)
    found, expected = evaluated(task, weights, data), evaluated(task, weights, data, max_activations=1)
    np.testing.assert_allclose(found[2], expected[2], atol=1e-12)
