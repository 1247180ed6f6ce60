"""Successive halving gives the results of scikit-learn's, and trains no epoch twice."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    HalvingGridSearchCV,
)
from sklearn.neural_network import MLPRegressor

from ortlearn.learning_rates import (
    AdaptiveSchedule,
    LearningRateAdam,
    LearningRateSGD,
)
from ortlearn.penalties import L2Penalty
from ortlearn.search import OrtHalvingGridSearchCV
from ortlearn.search.stack import _Stack
from tests.calls import calls_of
from tests.search.cases import X, trainer


def epochs_of(calls):
    """Return the number of epochs that stacks have run for all of their members, without final checks."""
    return sum(
        len(call["self"].members)
        for call in calls
        if len(next(iter(call["orders"].values()))) == len(call["self"].members[0].data)
    )


HALVING = {"learning_rate__eta0": [0.001, 0.01, 0.03], "learning_penalty__l2": [1e-4, 1e-2, 0.1]}


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    "name, rate, params, options",
    [
        ("ridge", "SGD", {}, {}),
        pytest.param("network", "Adam", {}, {"factor": 2, "min_resources": 1}, marks=pytest.mark.slow),
        pytest.param(
            "classifier",
            "Nesterov",
            {"average": 20},
            {"aggressive_elimination": True, "min_resources": 6},
            marks=pytest.mark.slow,
        ),
        ("ridge", LearningRateSGD(learning_rate=AdaptiveSchedule(), eta0=0.5), {"batch_size": 10}, {"cv": 2}),
        pytest.param(
            "multinomial",
            "Adam",
            {"early_stopping": True, "n_iter_no_change": 2},
            {"scoring": "neg_log_loss"},
            marks=pytest.mark.slow,
        ),
        ("binary", "SGD", {"shuffle": False, "batch_size": 20}, {"cv": 2}),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:The training reached max_iter")
def test_halving_equals_that_of_scikit_learn(name, rate, params, options):
    """Attributes and results are equal, and no epoch of a candidate is trained twice."""
    estimator, labels = trainer(name, rate, L2Penalty(), **{**params, "max_iter": 9})
    options = {"cv": 3, **options}
    with calls_of(_Stack._run) as calls:
        search = OrtHalvingGridSearchCV(estimator, HALVING, **options).fit(X, labels)
    other = HalvingGridSearchCV(estimator, HALVING, resource="max_iter", max_resources=9, **options)
    other.fit(X, labels)
    assert search.n_iterations_ > 1
    names = (
        "n_resources_ n_candidates_ n_iterations_ n_required_iterations_ n_possible_iterations_ best_index_"
    )
    names += " n_remaining_candidates_ min_resources_ max_resources_ best_params_ n_splits_ multimetric_"
    for attribute in names.split():
        assert getattr(search, attribute) == getattr(other, attribute), attribute
    assert vars(search).keys() == vars(other).keys()
    assert search.cv_results_.keys() == other.cv_results_.keys()
    for key in ("iter", "n_resources", "params"):
        assert list(search.cv_results_[key]) == list(other.cv_results_[key])
    for key in ("mean_test_score", "mean_train_score", "std_test_score"):
        np.testing.assert_allclose(search.cv_results_[key], other.cv_results_[key], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(search.predict(X), other.predict(X), rtol=1e-5)
    if "early_stopping" in params:
        assert 0 < epochs_of(calls) < search.n_splits_ * np.dot(search.n_resources_, search.n_candidates_)
    else:
        added = np.diff([0, *search.n_resources_])
        assert epochs_of(calls) == search.n_splits_ * np.dot(added, search.n_candidates_)


@pytest.mark.slow
def test_halving_by_samples_and_of_other_estimators(trained_alone):
    """Each iteration has its own samples, on which its candidates are trained together."""
    estimator, labels = trainer("ridge", max_iter=3)
    options = {"cv": 2, "resource": "n_samples", "min_resources": 20, "random_state": 0}
    search = OrtHalvingGridSearchCV(estimator, {"learning_rate__eta0": [0.001, 0.01, 0.05, 0.1]}, **options)
    assert search.fit(X, labels).n_resources_ == [20, 60] and len(trained_alone) == 1
    other = HalvingGridSearchCV(estimator, search.param_grid, **options).fit(X, labels)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"], rtol=1e-4, atol=1e-5
    )
    trees = OrtHalvingGridSearchCV(MLPRegressor(), {"alpha": [1e-3, 0.1, 1.0]}, max_resources=2, cv=2)
    with pytest.warns(ConvergenceWarning):
        assert trees.fit(X, labels).n_candidates_ == [3]
    with pytest.raises(ValueError, match="max_resources='auto' is the value of solver"):
        OrtHalvingGridSearchCV(Ridge(), {"alpha": [1.0]}, resource="solver", cv=2).fit(X, labels)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["cosine", "one_cycle", "step"])
def test_schedules_that_span_all_epochs_begin_anew(schedule):
    """Rates of a schedule without a period depend on the number of epochs, which iterations increase."""
    estimator, labels = trainer("ridge", LearningRateAdam(schedule=schedule), max_iter=9)
    grid = {"learning_rate__eta0": [0.01, 0.1, 0.3, 1.0]}
    with calls_of(_Stack._run) as calls:
        search = OrtHalvingGridSearchCV(estimator, grid, cv=3).fit(X, labels)
    other = HalvingGridSearchCV(estimator, grid, cv=3, resource="max_iter", max_resources=9).fit(X, labels)
    found, expected = (one.cv_results_["mean_test_score"] for one in (search, other))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert epochs_of(calls) == 3 * np.dot(search.n_resources_, search.n_candidates_)
