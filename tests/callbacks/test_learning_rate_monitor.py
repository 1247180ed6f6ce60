"""The logged rates are those of the schedule, in this process and in others."""

import pickle

import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.callbacks import LearningRateMonitor
from ortlearn.learning_rates import LearningRateSGD, Rates

pytestmark = pytest.mark.needs_callbacks
KINDS = {"one_graph": OrtGradientOptimizer, "two_calls": OrtGradientForwardBackwardOptimizer}
RATE = LearningRateSGD(eta0=0.01, learning_rate="invscaling")


@pytest.fixture(scope="module")
def samples():
    X, y = load_diabetes(return_X_y=True)
    return scale(X)[:60], scale(y)[:60]


def trainer(monitor, kind=OrtGradientOptimizer, **options):
    options = {"max_iter": 3, "random_state": 0, "learning_rate": RATE, **options}
    return kind(Ridge(), **options).set_callbacks(monitor)


def rates(log):
    return [row["rate"] for row in log.data]


@pytest.mark.parametrize("kind", KINDS)
def test_every_epoch_of_every_run(kind, samples):
    monitor = LearningRateMonitor()
    model = trainer(monitor, KINDS[kind]).fit(*samples)
    model.set_params(max_iter=2).fit(*samples)
    first, second = monitor.get_logs(select="all")
    schedule = Rates(RATE)
    assert rates(first) == [schedule.of(epoch) for epoch in range(3)]
    assert rates(second) == rates(first)[:2] == rates(monitor.get_logs())
    assert [row["epoch"] for row in first.data] == [1, 2, 3]
    assert {row["task_name"] for row in first.data} == {"epoch"}
    assert list(first.data_as_pandas["rate"]) == rates(first)


def test_partial_fit_continues_the_epoch_numbers(samples):
    monitor = LearningRateMonitor()
    model = trainer(monitor)
    for _ in range(3):
        model.partial_fit(*samples)
    logs = monitor.get_logs(select="all")
    assert [row["epoch"] for log in logs for row in log.data] == [1, 2, 3]
    schedule = Rates(RATE)
    assert [rate for log in logs for rate in rates(log)] == [schedule.of(epoch) for epoch in range(3)]


def test_solver_has_no_rate(samples):
    monitor = LearningRateMonitor()
    model = trainer(monitor, learning_rate="LBFGS", max_iter=30).fit(*samples)
    assert rates(monitor.get_logs()) == [None] * model.n_iter_


def test_rates_of_a_search(samples):
    monitor = LearningRateMonitor()
    grid = {"learning_rate__eta0": [0.1, 0.01]}
    GridSearchCV(trainer(monitor, max_iter=2), grid, cv=2).fit(*samples)
    log = monitor.get_logs()
    by_path = {row["task_id_path"]: row["rate"] for row in log.data}
    first = [by_path[0, 0, i, 0] for i in range(4)]
    assert first == [0.1, 0.1, 0.01, 0.01] and len(log.data) == 10
    assert log.estimator_name == "GridSearchCV"
    whole = monitor.get_logs(include_lineage=True).data
    assert {row["task_name"] for row in whole} == {"fit", "search", "epoch"}


def test_pipelines_and_searches_are_rejected(samples):
    pipeline = make_pipeline(StandardScaler(), OrtGradientOptimizer(Ridge()))
    with pytest.raises(TypeError, match="LearningRateMonitor supports .*, not Pipeline. Call set_callbacks"):
        pipeline.set_callbacks(LearningRateMonitor()).fit(*samples)


def test_pickled_with_its_estimator(samples):
    monitor = LearningRateMonitor()
    model = trainer(monitor).fit(*samples)
    again = pickle.loads(pickle.dumps(model)).fit(*samples)
    assert len(again._skl_callbacks[0].get_logs(select="all")) == 2
    assert len(monitor.get_logs(select="all")) == 1


def test_no_logs_before_training():
    with pytest.raises(ValueError, match="No logs"):
        LearningRateMonitor().get_logs()
