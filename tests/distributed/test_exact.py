"""Exact training: solvers and full batches equal training on one machine up to rounding."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, QuantileRegressor, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor

from ortlearn import OrtGradientOptimizer
from ortlearn.distributed import DaskOrtGradientOptimizer
from ortlearn.learning_rates import LearningRateAdam, LearningRateLBFGS
from tests.distributed.shards import cut, largest_difference, same_bits

#: Trainings on a cluster, half a minute in all.
pytestmark = pytest.mark.slow

SIZES = [100, 250, 50, 200]
SOLVED = {"learning_rate": "LBFGS", "max_iter": 500, "dtype": "float64", "random_state": 0}


@pytest.mark.parametrize(
    "estimator", [Ridge(alpha=3.0), Lasso(alpha=0.1), LinearRegression(), QuantileRegressor(quantile=0.7)]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_solvers_find_the_same_minimum(client, regression, estimator, weighted):
    X, y = regression
    weight = 0.1 + np.random.default_rng(3).random(600) if weighted else None
    local = OrtGradientOptimizer(estimator, **SOLVED).fit(X, y, weight)
    found = DaskOrtGradientOptimizer(estimator, client=client, **SOLVED)
    found.fit(cut(X, SIZES), cut(y, SIZES), None if weight is None else cut(weight, SIZES))
    assert largest_difference(found, local) < 1e-5
    assert found.train_losses_[-1] == pytest.approx(local.train_losses_[-1], rel=1e-8)


def test_automatic_solver_is_exact(client, classes):
    X, y = classes
    options = {"max_iter": 300, "random_state": 0, "dtype": "float64"}
    local = OrtGradientOptimizer(LogisticRegression(), **options).fit(X, y)
    found = DaskOrtGradientOptimizer(LogisticRegression(), client=client, **options)
    found.fit(cut(X, SIZES), cut(y, SIZES))
    assert isinstance(found.learning_rate_, LearningRateLBFGS)
    assert largest_difference(found, local) < 1e-5
    rounds = [record["rounds"] for record in found.history_]
    assert len(rounds) == found.n_iter_ and min(rounds) >= 1  # one round for each evaluation


def test_more_than_10000_samples_are_trained_in_batches(client):
    X = np.random.default_rng(0).standard_normal((10_001, 2)).astype(np.float32)
    network = MLPRegressor(hidden_layer_sizes=3, random_state=0)
    model = DaskOrtGradientOptimizer(network, client=client, max_iter=1, batch_size=1000, random_state=0)
    model.fit(cut(X, [5001, 5000]), cut(X[:, 0], [5001, 5000]))
    assert isinstance(model.learning_rate_, LearningRateAdam)


@pytest.mark.parametrize("rate", ["SGD", "Adam", "SGDNesterov"])
@pytest.mark.parametrize("options", [{}, {"clip_norm": 0.5}, {"learning_penalty": "l2"}, {"average": 3}])
def test_full_batches_equal_training_on_one_machine(client, classes, rate, options):
    X, y = classes
    options = {"learning_rate": rate, "batch_size": 600, "max_iter": 8, "dtype": "float64", **options}
    network = MLPClassifier(hidden_layer_sizes=5, random_state=0, alpha=0.1)
    local = OrtGradientOptimizer(network, random_state=0, **options).fit(X, y)
    found = DaskOrtGradientOptimizer(network, client=client, random_state=0, **options)
    found.fit(cut(X, SIZES), cut(y, SIZES))
    assert largest_difference(found, local) < 1e-9
    np.testing.assert_allclose(found.train_losses_, local.train_losses_, rtol=1e-10)


def test_proximal_step_equals_training_on_one_machine(client, regression):
    X, y = regression
    options = {"learning_rate": 0.05, "learning_penalty": "l1", "batch_size": 600, "max_iter": 20}
    local = OrtGradientOptimizer(Lasso(), random_state=0, dtype="float64", **options).fit(X, y)
    found = DaskOrtGradientOptimizer(Lasso(), client=client, random_state=0, dtype="float64", **options)
    found.fit(cut(X, SIZES), cut(y, SIZES))
    assert largest_difference(found, local) < 1e-9


def test_exact_training_is_reproducible(client, regression):
    X, y = regression
    first, second = (
        DaskOrtGradientOptimizer(LinearRegression(), client=client, **SOLVED).fit(
            cut(X, SIZES), cut(y, SIZES)
        )
        for _ in range(2)
    )
    assert same_bits(first, second)
