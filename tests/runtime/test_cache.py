"""Compiled graphs are shared only between trainings of the same structure."""

import gc
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from onnx import parser
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPRegressor

from ortlearn.differentiation import gradient_rule
from ortlearn.differentiation.registry import temporary_rules
from ortlearn.estimators import OrtGradientOptimizer
from ortlearn.learning_rates import LearningRateAdam, LearningRateSGD, LearningRateSGDNesterov
from ortlearn.losses import BaseLoss, ElasticLoss
from ortlearn.penalties import L2Penalty
from ortlearn.runtime import cache
from ortlearn.runtime.devices import Device
from ortlearn.runtime.sessions import make_session
from ortlearn.training.steps.epoch_step import EpochStep
from tests.calls import calls_of
from tests.training.examples import train


@pytest.fixture(autouse=True)
def empty():
    """Clear the cache."""
    cache.clear_cache()
    yield
    cache.clear_cache()


@pytest.fixture
def made():
    """Return a function that returns the number of graphs that were built."""
    with calls_of(make_session, cache.cached_session) as calls:
        yield lambda: len(calls)


@pytest.fixture
def data():
    X = np.random.RandomState(0).normal(size=(44, 3)).astype(np.float32)
    return X, X[:, 0] - 2 * X[:, 1]


def optimizer(**changes):
    return OrtGradientOptimizer(LinearRegression(), **{"max_iter": 2, "random_state": 0, **changes})


def test_the_second_fit_compiles_nothing(made, data):
    first = optimizer().fit(*data)
    begun = made()
    second = optimizer().fit(*data)
    assert made() == begun > 0
    np.testing.assert_array_equal(first.predict(data[0]), second.predict(data[0]))


SAME = {
    "rate": {"learning_rate": LearningRateSGD(eta0=0.2)},
    "schedule": {"learning_rate": LearningRateSGD(learning_rate="constant")},
    "epochs": {"max_iter": 5},
    "seed": {"random_state": 3},
    "order": {"shuffle": False},
    "start": {"warm_start": True},
}
OTHER = {
    "batch size": {"batch_size": 7},
    "loss": {"learning_loss": "absolute_error"},
    "parameter of the loss": {"learning_loss": ElasticLoss(l1_weight=0.2)},
    "penalty": {"learning_penalty": "l2"},
    "threads": {"n_jobs": 2},
    "update": {"learning_rate": LearningRateSGDNesterov()},
    "type": {"dtype": "float64"},
    "backend": {"gradient": "rules"},
}


@pytest.mark.parametrize("change", list(SAME))
def test_changes_that_share_the_graph(change, made, data):
    optimizer().fit(*data)
    begun = made()
    optimizer(**SAME[change]).fit(*data)
    assert made() == begun


@pytest.mark.sweep(5)
@pytest.mark.parametrize("change", list(OTHER))
def test_changes_that_need_another_graph(change, made, data):
    optimizer().fit(*data)
    begun = made()
    X, y = data
    changed = optimizer(**OTHER[change]).fit(X.astype(OTHER[change].get("dtype", "float32")), y)
    assert made() > begun
    cache.clear_cache()
    np.testing.assert_array_equal(clone(changed).fit(X, y).predict(X), changed.predict(X))


@pytest.mark.parametrize(
    "first, second",
    [
        ({"learning_penalty": L2Penalty(0.1)}, {"learning_penalty": L2Penalty(0.2)}),
        ({"learning_rate": LearningRateAdam()}, {"learning_rate": LearningRateAdam(beta_1=0.5)}),
        ({"learning_loss": ElasticLoss(0.1, 0.9)}, {"learning_loss": ElasticLoss(0.1, 0.8)}),
    ],
)
def test_parameters_are_distinguished(first, second, made, data):
    optimizer(**first).fit(*data)
    trained = optimizer(**second).fit(*data).predict(data[0])
    cache.clear_cache()
    np.testing.assert_array_equal(optimizer(**second).fit(*data).predict(data[0]), trained)


def test_sample_weights_are_distinguished(made, data):
    plain = optimizer().fit(*data).predict(data[0])
    weighted = optimizer().fit(*data, sample_weight=np.linspace(0, 1, 44)).predict(data[0])
    assert (plain != weighted).any()


def test_a_search_over_rates(made, data):
    X, y = data[0][:40], data[1][:40]  # folds of the same size
    grid = {"learning_rate__eta0": [0.001, 0.01, 0.1]}
    search = GridSearchCV(optimizer(learning_rate=LearningRateSGD(), batch_size=15), grid, cv=4, refit=False)
    search.fit(X, y)
    assert made() == 1
    assert len(set(search.cv_results_["mean_test_score"])) == 3


def test_a_new_rule_is_used(made, data):
    X, y = data
    model = MLPRegressor(hidden_layer_sizes=(4,), max_iter=1)
    options = {"gradient": "rules", "max_iter": 2, "random_state": 0}
    before = OrtGradientOptimizer(model, **options).fit(X, y).predict(X)
    begun = made()

    def straight(op, node, grad):
        """Gradient of the identity."""
        return [grad]

    with temporary_rules():
        gradient_rule("Relu", overwrite=True)(straight)
        changed = OrtGradientOptimizer(model, **options).fit(X, y).predict(X)
    assert made() > begun and (changed != before).any()
    begun = made()
    np.testing.assert_array_equal(OrtGradientOptimizer(model, **options).fit(X, y).predict(X), before)
    assert made() == begun  # the first one is still cached


def test_maximum_number_of_graphs():
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[N] x) => (float[N] y) { y = Neg (x) }'
    )
    built = []

    def get(key):
        def build():
            built.append(key)
            return SimpleNamespace(model=model)

        cache.cached_session(key, Device("cpu"), None, build, False, None)

    for key in range(cache.MAX_GRAPHS):
        get(key)
    get(0)  # used again, so it is removed last
    get("another")
    assert built == [*range(cache.MAX_GRAPHS), "another"]
    get(0)
    get(1)
    assert built[-2:] == ["another", 1]


@pytest.mark.slow
def test_threads(data):
    X, y = data
    expected = optimizer(max_iter=20).fit(X, y).predict(X)
    cache.clear_cache()
    results, start = [], threading.Barrier(4)

    def fit():
        start.wait()
        results.extend(optimizer(max_iter=20).fit(X, y).predict(X) for _ in range(3))

    threads = [threading.Thread(target=fit) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 12
    for result in results:
        np.testing.assert_array_equal(result, expected)


def _redefined(factor):
    class MyLoss(BaseLoss):
        """Squared error times a factor."""

        def forward(self, op, expected, predicted):
            difference = op.Sub(predicted, expected)
            return self.sum_outputs(op, op.Mul(op.Mul(difference, difference), factor))

    return MyLoss()


def test_redefined_class(data):
    one, three = (optimizer(learning_loss=_redefined(f)).fit(*data).train_losses_[0] for f in (1.0, 3.0))
    assert three > 1.5 * one


class TableLoss(BaseLoss):
    """Squared error times the sum of a table."""

    def __init__(self, table):
        self.table = table

    def forward(self, op, expected, predicted):
        difference = op.Sub(predicted, expected)
        return self.sum_outputs(op, op.Mul(op.Mul(difference, difference), float(np.sum(self.table))))


@pytest.mark.parametrize("size, place, small", [(3, 0, 0.5), (5000, 2500, 0.5), (3, 1, 1e-9)])
def test_arrays_are_distinguished(size, place, small, made, make_task, samples):
    # repr abbreviates long arrays, and rounds many digits
    tables = [np.full(size, 1 / size), np.full(size, 1 / size)]
    tables[1][place] += small
    graphs = []
    for table in (*tables, tables[0].copy()):
        step = EpochStep(make_task(loss=TableLoss(table)), Device("cpu"))
        step.prepare(samples, [5])
        graphs.append(step._graph)
    assert made() == 2 and graphs[0] is graphs[2] is not graphs[1]


class CalledLoss(BaseLoss):
    """Squared error, changed by a function."""

    def __init__(self, change):
        self.change = change

    def forward(self, op, expected, predicted):
        difference = op.Sub(predicted, expected)
        return self.sum_outputs(op, self.change(op, op.Mul(difference, difference)))


@pytest.mark.slow
def test_function_with_a_reused_id(make_task, samples):
    values = set()
    for factor in range(1, 6):

        def change(op, square, factor=float(factor)):
            return op.Mul(square, factor)

        step = EpochStep(make_task(loss=CalledLoss(change)), Device("cpu"))
        buffers = step.start(samples, [23], {"coef": np.ones((2, 1), np.float32)})
        step.set_rate(0.1)
        values.add(float(step.run_epoch(np.arange(23), 23, buffers)[0]))
        del step, change, buffers
        gc.collect()
    assert len(values) == 5


class ForgetfulStep(EpochStep):
    """EpochStep that clears the cache at each of its calls."""

    def prepare(self, data, sizes):
        cache.clear_cache()
        super().prepare(data, sizes)

    def bind(self, data, sizes, buffers):
        cache.clear_cache()
        super().bind(data, sizes, buffers)

    def run_epoch(self, order, batch_size, buffers, pause=None):
        cache.clear_cache()
        return super().run_epoch(order, batch_size, buffers, pause)


@pytest.mark.parametrize("batch_size", [10, 23])
def test_training_keeps_its_session_when_the_cache_is_cleared(batch_size, make_task, samples, made):
    """Another thread may clear the cache; newer runtimes check that a binding belongs to the session."""
    start = {"coef": np.ones((2, 1), np.float32)}
    expected = train(EpochStep(make_task(), Device("cpu")), samples, start, batch_size)
    begun = made()
    found = train(ForgetfulStep(make_task(), Device("cpu")), samples, start, batch_size)
    assert made() == begun + 1
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1]["coef"], expected[1]["coef"])
