"""Candidates with a solver share prepared samples, with the results of separate trainings."""

from itertools import chain

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from ortlearn.learning_rates import LearningRateLBFGS
from ortlearn.penalties import L1Penalty, L2Penalty
from ortlearn.search import OrtGridSearchCV
from tests.search.cases import UPDATES, X, assert_same_results, searched, trainer


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, params, grid, n_alone",
    [
        ("ridge", {"rate": "auto"}, {"learning_penalty": ["l2", None]}, 0),
        ("pipeline", {"rate": LearningRateLBFGS()}, {"learning_rate__gtol": [1e-3, 1e-4]}, 0),
        (
            "network",
            {"early_stopping": True},
            {"learning_rate": ["LBFGS", UPDATES["SGD"], UPDATES["Adam"]]},
            4,
        ),
        ("ridge", {"rate": "LBFGS"}, {"learning_penalty": [L1Penalty(0.1), L2Penalty(10.0)]}, 0),
        ("network", {"rate": "auto"}, {"learning_penalty": ["l2", None]}, 4),  # chosen by held-out samples
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_solvers_share_samples(name, params, grid, n_alone, trained_alone):
    """Samples are prepared once per fold and model; results are those of separate trainings, bit for bit."""
    estimator, labels = trainer(name, **params)
    _, together = searched(OrtGridSearchCV, estimator, grid, labels)
    assert len(trained_alone) == n_alone
    _, alone = searched(GridSearchCV, estimator, grid, labels)
    if "rate" in params:
        assert all(map(np.array_equal, chain(*together), chain(*alone)))
    assert_same_results(estimator, grid, labels)


@pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::sklearn.exceptions.FitFailedWarning"
)
def test_a_solver_that_fails_is_trained_alone(trained_alone):
    estimator, labels = trainer("ridge", "LBFGS")
    grid = {"learning_penalty": [L2Penalty(1e-3), L2Penalty(3e38)]}
    found, expected = (
        search(estimator, grid, cv=2, refit=False, error_score=-1.0).fit(X, labels)
        for search in (OrtGridSearchCV, GridSearchCV)
    )
    np.testing.assert_array_equal(
        found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"]
    )
    assert len(trained_alone) == 2 + 4
