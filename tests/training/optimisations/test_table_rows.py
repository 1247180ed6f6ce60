"""Solvers train only the rows of tables that samples look up."""

import warnings

import numpy as np
import pytest
from onnx import parser
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning

from ortlearn import OrtGradientOptimizer
from ortlearn.data.samples import Data
from ortlearn.graphs import TensorType
from ortlearn.learning_rates import LearningRateLBFGS
from ortlearn.losses import SquaredErrorLoss
from ortlearn.penalties import L2Penalty, NoPenalty
from ortlearn.runtime.devices import parse_device
from ortlearn.training.graphs.task import Objective, ScoreGraph, TrainingTask, Update
from ortlearn.training.solvers.gradient_step import GradientStep
from ortlearn.training.solvers.variables import Variables
from tests.calls import calls_of

GRAPH = """
    <ir_version: 8, opset_import: ["": 18]>
    g (int64[N,2] x, float[9,1] w) => (float[N,1] f) {
        v = Gather <axis: int = 0> (w, x)
        axes = Constant <value: tensor = int64[1] {1}> ()
        f = ReduceSum <keepdims: int = 0> (v, axes)
    }"""
LOOKED_UP = Data(np.array([[0, -2], [4, 0], [7, 4]]), np.array([[1.0], [2.0], [4.0]], dtype=np.float32))


def started(penalty, whole=False, data=LOOKED_UP):
    """Return variables and weights; with moments of all samples, those given are only some."""
    known = TensorType(1, (None, 1))
    graph = ScoreGraph(
        parser.parse_model(GRAPH), {"x": TensorType(7, (None, 2))}, "f", known, intercepts={"w": False}
    )
    task = TrainingTask(graph, Objective(SquaredErrorLoss(), penalty, known), Update(LearningRateLBFGS()))
    weights = {"w": np.arange(9, dtype=np.float32)[:, None]}
    step = GradientStep(task, parse_device("cpu"))
    variables = Variables(step, weights, data, measured={} if whole else None)
    variables.start(weights)
    return variables, weights


def test_the_vector_has_the_rows_that_samples_look_up():
    (variables, weights), (whole, _) = started(NoPenalty()), started(NoPenalty(), whole=True)
    rows = [0, 4, 7]  # row -2 is row 7
    vector = variables.pack(weights)
    np.testing.assert_array_equal(vector, rows)
    value, gradient = variables.evaluate(vector)
    expected, slopes = whole.evaluate(whole.pack(weights))
    assert value == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(gradient, slopes[rows], rtol=1e-6)
    assert not np.delete(slopes, rows).any()
    found = variables.unpack(vector + 1, weights)["w"].ravel()
    np.testing.assert_array_equal(found, np.arange(9) + np.isin(np.arange(9), rows))


def test_a_penalty_acts_on_all_rows():
    variables, weights = started(L2Penalty(0.1))
    assert len(variables.pack(weights)) == 9


@pytest.mark.parametrize("index", [9, -10])
def test_an_index_out_of_bounds_is_an_error(index):
    """Modulo the number of rows, it would be the index of another row."""
    numbers = LOOKED_UP.X.copy()
    numbers[1, 1] = index
    variables, weights = started(NoPenalty(), data=Data(numbers, LOOKED_UP.y))
    vector = variables.pack(weights)
    assert len(vector) == 9
    with pytest.raises(RuntimeError, match="out of data bounds"):
        variables.evaluate(vector)


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(10, random_state=0),
        ExtraTreesRegressor(10, random_state=0),
        HistGradientBoostingRegressor(max_iter=10),
    ],
    ids=lambda model: type(model).__name__,
)
def test_other_leaves_stay_as_they_are(model):
    """The same weights are trained with a tiny penalty, which keeps the tables whole."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 4)), rng.integers(0, 3, size=400)
    model.fit(X, y)
    options = {"warm_start": True, "learning_rate": "LBFGS", "max_iter": 5, "keep_better": False}
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for penalty in (None, L2Penalty(1e-9, intercept=True)):
            trainer = OrtGradientOptimizer(model, learning_penalty=penalty, **options)
            with calls_of(Variables.evaluate) as calls:
                found.append((trainer.fit(X[:20] + 0.1, y[:20]).trained_coef_, len(calls[-1]["vector"])))
    (reduced, size), (whole, size_of_whole) = found
    assert 0 < size < size_of_whole
    for name, array in reduced.items():
        np.testing.assert_allclose(array, whole[name], rtol=1e-4, atol=1e-5)
