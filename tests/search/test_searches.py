"""Searches give the results of scikit-learn's, whether candidates are trained together or alone."""

from itertools import cycle, product

import numpy as np
import pytest
from joblib import parallel_config
from scipy.stats import loguniform
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import FitFailedWarning
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RandomizedSearchCV,
    ShuffleSplit,
)
from sklearn.neural_network import MLPRegressor
from sklearn.preprocessing import FunctionTransformer

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.learning_rates import (
    AdaptiveSchedule,
    LearningRateAdam,
    LearningRateLBFGS,
    LearningRateSGD,
)
from ortlearn.penalties import (
    ElasticPenalty,
    GroupLassoPenalty,
    L1Penalty,
    L2Penalty,
    MaxNormPenalty,
    PerWeightPenalty,
)
from ortlearn.search import OrtGridSearchCV, OrtRandomizedSearchCV
from ortlearn.search.compiler import StackCompiler
from ortlearn.search.stack import MAX_ELEMENTS
from ortlearn.training.steps.epoch_graph import epoch_graph
from ortlearn.transforms.batching.rules import RULES
from tests.calls import calls_of
from tests.search.cases import (
    MODELS,
    RATES,
    UPDATES,
    X,
    assert_same_results,
    classes,
    searched,
    trainer,
    weights,
    y,
)

TRANSFORMERS = [
    FunctionTransformer(*functions, check_inverse=False)
    for functions in ((np.log, np.exp), (np.sqrt, np.square))
]


PENALTIES = [L1Penalty(), L2Penalty(), ElasticPenalty()]
KINDS = [
    (name, rate, penalty)
    for name, (rate, penalty) in zip(cycle(MODELS), product(UPDATES, PENALTIES), strict=False)
]


@pytest.mark.slow
@pytest.mark.sweep(1)
@pytest.mark.parametrize("name, rate, penalty", KINDS, ids=str)
def test_results_equal_grid_search(name, rate, penalty, trained_alone):
    estimator, labels = trainer(name, rate, penalty)
    strength = "learning_penalty__" + ("l1" if isinstance(penalty, L1Penalty) else "l2")
    assert_same_results(estimator, {**RATES, strength: [0.01, 0.1]}, labels)
    assert len(trained_alone) == 4 * 2  # those of GridSearchCV


@pytest.mark.slow
@pytest.mark.sweep(1)
@pytest.mark.parametrize("seeds", [[0, 1], [0, 1, 2, 3]])
@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("name", ["binary", "network"])
def test_candidates_with_different_seeds(name, shuffle, seeds, trained_alone):
    """With two rates per seed, candidates share orders of samples; with one, each has its own."""
    estimator, labels = trainer(name, shuffle=shuffle)
    rates = [0.01, 0.03] if len(seeds) == 2 else [0.03]
    grid = {"random_state": seeds, "learning_rate__eta0": rates}
    assert_same_results(estimator, grid, labels)
    assert len(trained_alone) == 2 * 4  # those of GridSearchCV


@pytest.mark.slow
def test_seeds_of_epochs_of_many_batches_are_trained_together(trained_alone):
    """Such an epoch has two loops, one of which runs several batches in an iteration."""
    estimator, labels = trainer(batch_size=2)
    grid = {"random_state": [0, 1], "learning_rate__eta0": [0.01, 0.03]}
    assert_same_results(estimator, grid, labels, cv=[(np.arange(79), np.arange(79, 83))])
    assert len(trained_alone) == 4  # those of GridSearchCV


@pytest.mark.slow
@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    "params",
    [
        {"batch_size": 7},
        {"batch_size": 1000},
        {"dtype": "float64"},
        {"average": 20},
        {"clip_norm": 0.5, "clip_value": 0.3},
        {"learning_loss": "huber", "batch_size": 1},
        {"rate": LearningRateSGD(learning_rate="invscaling")},
        {"rate": LearningRateSGD(learning_rate=AdaptiveSchedule(), eta0=0.5)},
    ],
    ids=str,
)
def test_settings_of_training(params, trained_alone):
    estimator, labels = trainer("ridge", **params)
    assert_same_results(estimator, {"learning_rate__eta0": [0.01, 0.03, 0.05]}, labels)
    assert len(trained_alone) == 2 * 3  # those of GridSearchCV


@pytest.mark.parametrize(
    "name, penalty, strengths",
    [
        ("ridge", ElasticPenalty(), {"l1": [0.0, 0.01], "l2": [0.02, 0.1]}),
        pytest.param("network", GroupLassoPenalty(), {"strength": [0.01, 0.1]}, marks=pytest.mark.slow),
        pytest.param("multinomial", MaxNormPenalty(), {"max_norm": [0.3, 0.5, 0.6]}, marks=pytest.mark.slow),
        pytest.param("binary", L2Penalty(toward="start"), {"l2": [0.1, 0.3]}, marks=pytest.mark.slow),
        pytest.param(
            "network",
            PerWeightPenalty({"coefs_[0]": L1Penalty(0.1), "coefs_[1]": ElasticPenalty(0.1, 0.2)}),
            {"coefs_[0]__l1": [0.01, 0.1], "coefs_[1]__l2": [0.3, 0.1]},
            marks=pytest.mark.slow,
        ),
    ],
    ids=str,
)
def test_candidates_that_differ_in_strengths_share_a_graph(name, penalty, strengths):
    """Strengths are inputs of the graph; those of zero leave a term out, which is another graph."""
    estimator, labels = trainer(name, penalty=penalty, batch_size=6)
    grid = {f"learning_penalty__{key}": values for key, values in strengths.items()}
    with calls_of(epoch_graph, StackCompiler.key_of) as built:
        assert_same_results(estimator, grid, labels, cv=[(np.arange(60), np.arange(60, 83))])
    assert len(built) == 1 + any(0.0 in values for values in strengths.values())


@pytest.mark.slow
def test_candidates_that_differ_in_momentum_loss_and_update(trained_alone):
    """Only candidates with graphs of the same structure are in one stack."""
    estimator, labels = trainer("network", "Nesterov")
    grid = [
        {"learning_rate__momentum": [0.5, 0.9], "learning_loss": ["squared_error", "huber"]},
        {"learning_rate": [LearningRateAdam(), LearningRateAdam(beta_1=0.8)]},
        {"learning_rate": [LearningRateLBFGS(gtol=10.0)]},
    ]
    assert_same_results(estimator, grid, labels)
    assert len(trained_alone) == 2 * 7  # of GridSearchCV


@pytest.mark.slow
@pytest.mark.sweep(1)
@pytest.mark.parametrize(
    "model, labels, grid",
    [
        (MLPRegressor(hidden_layer_sizes=(6,)), y, {"activation": ["relu", "tanh"]}),
        (MLPRegressor(hidden_layer_sizes=(6,)), y, {"hidden_layer_sizes": [(3,), (6,), (4, 2)]}),
        (LogisticRegression(), classes, {"fit_intercept": [True, False]}),
        (
            TransformedTargetRegressor(Ridge()),
            np.exp(y / 4),
            {"transformer": TRANSFORMERS},
        ),
    ],
    ids=["activations", "layers", "intercepts", "transformers"],
)
def test_candidates_of_several_models(model, labels, grid, trained_alone):
    """On the same samples, each model has its own graph for predictions."""
    estimator = OrtGradientOptimizer(
        model, learning_rate=clone(UPDATES["SGD"]), max_iter=3, batch_size=9, random_state=0
    )
    candidates = {f"estimator__{name}": values for name, values in grid.items()}
    assert_same_results(estimator, {**candidates, **RATES}, labels)
    assert len(trained_alone) == 2 * 2 * len(*grid.values())  # those of GridSearchCV


@pytest.mark.slow
def test_sample_weights(trained_alone):
    estimator, labels = trainer("binary")
    _, plain = searched(OrtGridSearchCV, estimator, RATES, labels)
    _, weighted = searched(OrtGridSearchCV, estimator, RATES, labels, fit_params={"sample_weight": weights})
    assert all((array != other).any() for (array, *_), (other, *_) in zip(weighted, plain, strict=True))
    assert_same_results(estimator, RATES, labels, fit_params={"sample_weight": weights})
    assert len(trained_alone) == 2 * 2
    with config_context(enable_metadata_routing=True):
        routed = clone(estimator).set_fit_request(sample_weight=True)
        assert_same_results(routed, RATES, labels, fit_params={"sample_weight": weights})
    assert len(trained_alone) == 2 * 2 * 2


@pytest.mark.parametrize(
    "given", [np.ones(90), np.ones(80), "text", 2.0], ids=lambda given: str(np.size(given))
)
def test_sample_weight_of_another_form(given):
    """Indexing them would train on weights of other samples, or raise an error of the search."""
    estimator, labels = trainer("binary")
    found = []
    for search_class in (OrtGridSearchCV, GridSearchCV):
        search = search_class(
            estimator,
            RATES,
            cv=2,
            refit=False,
            error_score="raise",
            scoring=lambda estimator, X, y, sample_weight=None: 1.0,
        )
        try:
            found.append(search.fit(X, labels, sample_weight=given).cv_results_["mean_test_score"].tolist())
        except (TypeError, ValueError) as error:
            found.append(str(error))
    assert found[0] == found[1]


@pytest.mark.slow
def test_class_weights(trained_alone):
    estimator, labels = trainer("multinomial", class_weight="balanced")
    assert_same_results(estimator, RATES, labels)
    assert len(trained_alone) == 2 * 2


@pytest.mark.slow
@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    "params, grid",
    [
        ({"warm_start": True}, RATES),
        ({"max_seconds": 60.0}, RATES),
        ({}, {"learning_rate__eta0": [0.01]}),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_unsupported_settings_are_trained_alone(params, grid, trained_alone):
    estimator, labels = trainer("ridge", **params)
    searched(OrtGridSearchCV, estimator, grid, labels)
    assert len(trained_alone) == 2 * len(next(iter(grid.values())))
    assert_same_results(estimator, grid, labels)


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    "name, params",
    [
        ("ridge", {"early_stopping": True, "n_iter_no_change": 2, "max_iter": 30}),
        pytest.param(
            "classifier",
            {"early_stopping": True, "scoring": "neg_log_loss", "n_iter_no_change": 2},
            marks=pytest.mark.slow,
        ),
        pytest.param("network", {"tol": 1e-2, "n_iter_no_change": 1, "max_iter": 50}, marks=pytest.mark.slow),
        ("binary", {"early_stopping": True, "average": 20, "validation_every": 2, "max_iter": 12}),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_candidates_that_stop_early_leave_the_others(name, params, trained_alone):
    """Each keeps the epoch at which it would stop alone, whatever stack it is in."""
    estimator, labels = trainer(name, **params)
    grid = {"learning_rate__eta0": [0.001, 0.01, 0.05, 0.1, 0.2]}
    assert_same_results(estimator, grid, labels)
    assert len(trained_alone) == 2 * 5  # those of GridSearchCV


@pytest.mark.slow
def test_operators_without_a_rule_are_trained_alone(monkeypatch, trained_alone):
    estimator, labels = trainer("network")
    monkeypatch.delitem(RULES, ("", "Relu"))
    assert_same_results(estimator, RATES, labels)
    assert len(trained_alone) == 2 * 2 * 2


@pytest.mark.slow
def test_other_estimators_are_trained_alone(trained_alone):
    model, labels = MODELS["ridge"]
    estimator = OrtGradientForwardBackwardOptimizer(
        model, learning_rate=LearningRateSGD(), max_iter=2, random_state=0
    )
    assert_same_results(estimator, RATES, labels)
    assert len(trained_alone) == 2 * 2 * 2
    for search_class in (OrtGridSearchCV, GridSearchCV):
        assert search_class(Ridge(), {"alpha": [0.1, 1.0]}).fit(X, y).best_params_ == {"alpha": 1.0}


@pytest.mark.slow
def test_a_diverging_candidate_fails_alone(trained_alone):
    """The results of the others do not change, and its error is that of its separate training."""
    estimator, labels = trainer("ridge")
    grid = {"learning_rate__eta0": [0.01, 1e20, 0.03]}
    expected = searched(OrtGridSearchCV, estimator, RATES, labels)[0].cv_results_["mean_test_score"]
    assert not trained_alone
    with (
        pytest.warns(UserWarning, match="non-finite"),
        pytest.warns(FitFailedWarning, match="training diverged"),
    ):
        search, _ = searched(OrtGridSearchCV, estimator, grid, labels, error_score=np.nan)
    assert [call["self"].configuration.updates.learning_rate.eta0 for call in trained_alone] == [1e20] * 2
    found = search.cv_results_["mean_test_score"]
    np.testing.assert_allclose(found[[0, 2]], expected, rtol=1e-6)
    assert np.isnan(found[1])


def test_a_candidate_with_an_invalid_parameter_fails_alone(trained_alone):
    estimator, labels = trainer("ridge")
    grid = {"batch_size": [9, 0], **RATES}
    with pytest.warns(UserWarning, match="non-finite"), pytest.warns(FitFailedWarning, match="batch_size"):
        search, _ = searched(OrtGridSearchCV, estimator, grid, labels, error_score=np.nan)
    assert np.isnan(search.cv_results_["mean_test_score"]).tolist() == [False, False, True, True]
    assert not trained_alone


@pytest.mark.slow
def test_attributes_equal_grid_search(trained_alone):
    estimator, labels = trainer("binary")
    search = OrtGridSearchCV(estimator, RATES, cv=3, return_train_score=True).fit(X, labels)
    assert len(trained_alone) == 1  # the best one, on all samples
    other = GridSearchCV(estimator, RATES, cv=3, return_train_score=True).fit(X, labels)
    for name in ("best_params_", "best_index_", "n_splits_", "multimetric_"):
        assert getattr(search, name) == getattr(other, name)
    assert {name for name in vars(search) if name.endswith("_")} == {
        n for n in vars(other) if n.endswith("_")
    }
    assert vars(search).keys() == vars(other).keys()
    np.testing.assert_array_equal(search.classes_, other.classes_)
    np.testing.assert_array_equal(search.predict_proba(X), other.predict_proba(X))
    np.testing.assert_allclose(search.best_score_, other.best_score_)
    np.testing.assert_allclose(search.score(X, labels), other.score(X, labels))
    assert search.refit_time_ > 0 and (search.cv_results_["mean_fit_time"] > 0).all()
    assert clone(search).get_params().keys() == GridSearchCV(estimator, RATES).get_params().keys()
    assert estimator._fitted is None


def test_random_splits_are_the_same_for_all_candidates():
    estimator, labels = trainer("ridge")
    splitter = ShuffleSplit(n_splits=3, random_state=np.random.RandomState(0))
    grid = {"learning_rate__eta0": [0.01, 0.0100001]}
    search = searched(OrtGridSearchCV, estimator, grid, labels, cv=splitter)[0]
    first, second = (search.cv_results_[f"split{i}_test_score"] for i in (0, 1))
    assert abs(first[0] - first[1]) < 1e-4 < abs(first[0] - second[0])


@pytest.mark.slow
def test_groups(trained_alone):
    estimator, labels = trainer("ridge")
    assert_same_results(estimator, RATES, labels, cv=GroupKFold(3), fit_params={"groups": np.arange(83) % 7})
    assert len(trained_alone) == 2 * 3


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_an_iterator_of_splits():
    estimator, labels = trainer("ridge")
    found = []
    for search_class in (OrtGridSearchCV, GridSearchCV):
        splits = iter(list(KFold(3).split(X)))
        search = searched(search_class, estimator, RATES, labels, cv=splits)[0]
        found.append(search.cv_results_["mean_test_score"])
    np.testing.assert_allclose(*found, rtol=1e-4)


@pytest.mark.slow
def test_randomized_search(trained_alone):
    estimator, labels = trainer("ridge", penalty=L2Penalty())
    drawn = {"learning_rate__eta0": loguniform(1e-3, 1e-1), "learning_penalty__l2": loguniform(1e-3, 1e-1)}
    params = {"n_iter": 4, "random_state": 0, "cv": KFold(3), "refit": False}
    search = OrtRandomizedSearchCV(estimator, drawn, **params).fit(X, labels)
    assert not trained_alone
    other = RandomizedSearchCV(estimator, drawn, **params).fit(X, labels)
    assert search.cv_results_["params"] == other.cv_results_["params"]
    found, expected = (found.cv_results_["mean_test_score"] for found in (search, other))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_several_jobs_train_alone(trained_alone):
    estimator, labels = trainer("ridge")
    with parallel_config(backend="threading"):
        searched(OrtGridSearchCV, estimator, RATES, labels, n_jobs=2)
    assert len(trained_alone) == 2 * 2


@pytest.mark.slow
def test_maximum_number_of_weights_of_a_stack(trained_alone):
    """Five candidates of 45,000 weights each: two stacks of two, and one that is trained alone."""
    width, labels = MAX_ELEMENTS * 9 // (20 * (X.shape[1] + 2)), trainer("ridge")[1]
    model = MLPRegressor(hidden_layer_sizes=(width,))
    estimator = OrtGradientOptimizer(
        model, learning_rate=clone(UPDATES["SGD"]), max_iter=2, batch_size=9, random_state=0
    )
    assert_same_results(estimator, {"learning_rate__eta0": [0.001, 0.002, 0.003, 0.004, 0.005]}, labels)
    assert len(trained_alone) == 2 * 1 + 2 * 5


@pytest.mark.needs_callbacks
def test_callbacks_are_called_for_every_training(trained_alone):
    from ortlearn.callbacks import LearningRateMonitor

    estimator, labels = trainer("ridge")
    estimator.set_callbacks(LearningRateMonitor())
    searched(OrtGridSearchCV, estimator, RATES, labels)
    assert len(trained_alone) == 2 * 2
