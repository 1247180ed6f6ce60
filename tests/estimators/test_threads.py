"""Concurrent threads and processes have the results of a single one."""

import copy
import multiprocessing
import sys
import threading

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn.runtime import cache

X = np.random.RandomState(0).normal(size=(300, 6)).astype(np.float32)
Y = X[:, 0] - X[:, 1]
MODELS = {
    "network": (MLPRegressor(hidden_layer_sizes=(8,)), Y),
    "pipeline": (make_pipeline(StandardScaler(), RidgeClassifier()), Y > 0),
    "large network": (MLPRegressor(hidden_layer_sizes=(250, 250)), Y),
}
LIMIT = 120


def run_concurrently(functions):
    """Return the results of functions called at the same time, each in a thread."""
    results, errors = [None] * len(functions), []
    start = threading.Barrier(len(functions))

    def run(index):
        start.wait(LIMIT)
        try:
            results[index] = functions[index]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
        assert not thread.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]
    return results


@pytest.fixture(autouse=True)
def fast_switching():
    """Switch between threads as often as possible."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


@pytest.fixture(params=list(MODELS))
def case(request, optimizer, fit_quietly):
    """Return a fitted model, because warnings of scikit-learn's fits cannot be filtered per thread."""
    model, y = MODELS[request.param]
    size = 150 if "large" in request.param else 10  # two threads for products of this size
    return optimizer(fit_quietly(clone(model), X, y), max_iter=3, batch_size=size, random_state=0), y


def weights(trained):
    return {name: array.tobytes() for name, array in trained.trained_coef_.items()}


@pytest.mark.slow
@pytest.mark.sweep(1)
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_eight_fits_at_once(n_jobs, case):
    model, y = case
    model.set_params(n_jobs=n_jobs)
    expected = weights(copy.deepcopy(model).fit(X, y))
    cache.clear_cache()  # all threads create sessions
    for trained in run_concurrently([lambda: copy.deepcopy(model).fit(X, y)] * 8):
        assert weights(trained) == expected


@pytest.mark.slow
@pytest.mark.sweep(2)
@pytest.mark.parametrize("repeat", range(3))
def test_one_model_in_many_threads(repeat, case):
    """The sessions of predictions are created in several threads at once."""
    model, y = case
    alone = copy.deepcopy(model).fit(X, y)
    predicted, losses = alone.predict(X), alone.losses(X, y)
    model.fit(X, y)
    calls = [lambda: model.predict(X)] * 4 + [lambda: model.losses(X, y)] * 8
    calls += [lambda: copy.deepcopy(model).fit(X, y).predict(X)] * 2
    results = run_concurrently(calls)
    for got in results[:4] + results[12:]:
        np.testing.assert_array_equal(got, predicted)
    for got in results[4:12]:
        np.testing.assert_array_equal(got, losses)


@pytest.mark.slow
def test_processes(optimizer):
    y = Y > 0
    model = optimizer(MODELS["pipeline"][0], max_iter=3, random_state=0)
    model.fit(X, y)
    expected, predicted = weights(model), model.predict(X)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        np.testing.assert_array_equal(pool.apply_async(model.predict, (X,)).get(LIMIT), predicted)
        assert weights(pool.apply_async(model.fit, (X, y)).get(LIMIT)) == expected
    workers = Parallel(n_jobs=2, backend="loky", timeout=LIMIT)
    for got in workers(delayed(model.predict)(X) for _ in range(2)):
        np.testing.assert_array_equal(got, predicted)
    for trained in workers(delayed(clone(model).fit)(X, y) for _ in range(2)):
        assert weights(trained) == expected
