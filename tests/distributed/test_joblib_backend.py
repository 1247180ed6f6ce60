"""Searches of scikit-learn whose trainings run on the workers of a Dask cluster, by joblib."""

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score

from ortlearn import OrtGradientOptimizer

distributed = pytest.importorskip("distributed", reason="needs dask and distributed")


@pytest.fixture(
    scope="module", params=[False, pytest.param(True, marks=pytest.mark.slow)], ids=["threads", "processes"]
)
def client(request):
    # One thread only in this process: filters of warnings, which fits set, belong to all threads of a process.
    options = {"n_workers": 1 + request.param, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(processes=request.param, **options) as cluster:
        with distributed.Client(cluster) as client:
            yield client


@pytest.fixture(scope="module")
def samples():
    return make_classification(300, 10, random_state=0)


def trainer():
    return OrtGradientOptimizer(LogisticRegression(), learning_rate="Adam", max_iter=3, random_state=0)


def tasks_of(client):
    """Return the number of tasks that workers have executed."""
    return sum(client.run(lambda dask_worker: dask_worker.state.executed_count).values())


def test_a_search_has_the_results_of_one_machine(client, samples):
    grid = {"batch_size": [10, 50], "estimator__C": [0.01, 1.0]}
    alone = GridSearchCV(trainer(), grid, cv=2).fit(*samples)
    before = tasks_of(client)
    with parallel_config(backend="dask"):
        there = GridSearchCV(trainer(), grid, cv=2).fit(*samples)
    assert tasks_of(client) > before
    for name in ("split0_test_score", "split1_test_score", "rank_test_score"):
        np.testing.assert_array_equal(there.cv_results_[name], alone.cv_results_[name])
    np.testing.assert_array_equal(there.predict_proba(samples[0]), alone.predict_proba(samples[0]))


def test_scattered_arrays(client, samples):
    alone = cross_val_score(trainer(), *samples, cv=3)
    with parallel_config(backend="dask", scatter=list(samples)):
        there = cross_val_score(trainer(), *samples, cv=3)
    np.testing.assert_array_equal(there, alone)
