"""Searches of scikit-learn on the workers of a Dask cluster, with joblib's dask backend."""

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.datasets import make_classification
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score

from ortlearn import OrtGradientOptimizer
from tests.distributed.conftest import cluster_of


@pytest.fixture(
    scope="module", params=[False, pytest.param(True, marks=pytest.mark.slow)], ids=["threads", "processes"]
)
def client(request):
    with cluster_of(2, processes=request.param) as client:
        yield client


@pytest.fixture(scope="module")
def samples():
    return make_classification(300, 10, random_state=0)


def trainer():
    # RidgeClassifier is fitted without filters of warnings, which all threads of a process share.
    return OrtGradientOptimizer(RidgeClassifier(), learning_rate="Adam", max_iter=3, random_state=0)


def tasks_of(client):
    """Return the number of tasks that workers have executed."""
    return sum(client.run(lambda dask_worker: dask_worker.state.executed_count).values())


@pytest.mark.slow
def test_search_has_the_results_of_one_machine(client, samples):
    grid = {"batch_size": [10, 50], "estimator__alpha": [0.01, 100.0]}
    alone = GridSearchCV(trainer(), grid, cv=2).fit(*samples)
    before = tasks_of(client)
    with parallel_config(backend="dask"):
        there = GridSearchCV(trainer(), grid, cv=2).fit(*samples)
    assert tasks_of(client) > before
    for name in ("split0_test_score", "split1_test_score", "rank_test_score"):
        np.testing.assert_array_equal(there.cv_results_[name], alone.cv_results_[name])
    np.testing.assert_array_equal(there.decision_function(samples[0]), alone.decision_function(samples[0]))


@pytest.mark.slow
def test_scattered_arrays(client, samples):
    alone = cross_val_score(trainer(), *samples, cv=3)
    with parallel_config(backend="dask", scatter=list(samples)):
        there = cross_val_score(trainer(), *samples, cv=3)
    np.testing.assert_array_equal(there, alone)
