"""Searches give the results of scikit-learn's, whether candidates are trained together or alone."""

from itertools import cycle, product

import numpy as np
import pytest
from joblib import parallel_config
from scipy.stats import loguniform
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    KFold,
    RandomizedSearchCV,
    ShuffleSplit,
)
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.fitting.trainer import Trainer
from ortlearn.learning_rates import (
    AdaptiveSchedule,
    LearningRateAdam,
    LearningRateLBFGS,
    LearningRateSGD,
    LearningRateSGDNesterov,
)
from ortlearn.penalties import ElasticPenalty, L1Penalty, L2Penalty
from ortlearn.search import OrtGridSearchCV, OrtHalvingGridSearchCV, OrtRandomizedSearchCV
from ortlearn.search.stack import MAX_ELEMENTS, _Stack
from ortlearn.transforms.batching.rules import RULES
from tests.calls import calls_of

rng = np.random.default_rng(0)
X = rng.normal(size=(83, 5)).astype(np.float32)
scores = X @ rng.normal(size=(5, 3)) + rng.normal(size=(83, 3))
y, binary, classes = scores[:, 0].astype(np.float32), (scores[:, 0] > 0).astype(int), scores.argmax(axis=1)
weights = rng.uniform(0.5, 2.0, size=83)

UPDATES = {
    "SGD": LearningRateSGD(learning_rate="constant"),
    "Nesterov": LearningRateSGDNesterov(learning_rate="constant"),
    "Adam": LearningRateAdam(),
}
MODELS = {
    "ridge": (Ridge(), y),
    "binary": (LogisticRegression(), binary),
    "multinomial": (LogisticRegression(), classes),
    "network": (MLPRegressor(hidden_layer_sizes=(6, 4)), y),
    "classifier": (MLPClassifier(hidden_layer_sizes=(6,)), classes),
    "pipeline": (make_pipeline(StandardScaler(), LogisticRegression()), binary),
}
RATES = {"learning_rate__eta0": [0.01, 0.03]}
TRANSFORMERS = [
    FunctionTransformer(*functions, check_inverse=False)
    for functions in ((np.log, np.exp), (np.sqrt, np.square))
]


def trainer(name="ridge", rate="SGD", penalty=None, **params):
    """Return an estimator whose last batch is short, and its labels."""
    model, labels = MODELS[name]
    rate = clone(UPDATES[rate]) if rate in list(UPDATES) else rate
    settings = {"max_iter": 4, "batch_size": 9, "random_state": 0, **params}
    return OrtGradientOptimizer(model, learning_rate=rate, learning_penalty=penalty, **settings), labels


@pytest.fixture
def trained_alone():
    """Trainings by a separate call of ``fit``."""
    with calls_of(Trainer.fit) as calls:
        yield calls


class Recorder:
    """Scorer that records the fitted attributes of each estimator, without times."""

    def __init__(self):
        self.found = []

    def __call__(self, estimator, X, y, sample_weight=None):
        names = ("epoch", "loss", "rate")
        history = [[record[name] or 0.0 for name in names] for record in estimator.history_]
        arrays = [*estimator.get_weights().values(), np.array(history, dtype=float), estimator.predict(X)]
        self.found.append(arrays)
        return estimator.score(X, y, sample_weight)


def searched(search_class, estimator, grid, labels, fit_params=None, **params):
    recorder = Recorder()
    settings = {"cv": 2, "refit": False, "error_score": "raise", "scoring": recorder, **params}
    search = search_class(estimator, grid, **settings).fit(X, labels, **(fit_params or {}))
    return search, recorder.found


def assert_same_results(estimator, grid, labels, **params):
    """Compare weights, losses, predictions and scores with those of GridSearchCV."""
    search, together = searched(OrtGridSearchCV, estimator, grid, labels, **params)
    other, alone = searched(GridSearchCV, estimator, grid, labels, **params)
    assert len(together) == len(alone) > 0
    for arrays, expected in zip(together, alone, strict=True):
        for array, value in zip(arrays, expected, strict=True):
            assert array.dtype == value.dtype and array.shape == value.shape
            np.testing.assert_allclose(array, value, rtol=1e-5, atol=1e-5 * np.abs(value).max(initial=0.1))
    assert search.cv_results_.keys() == other.cv_results_.keys()
    assert search.cv_results_["params"] == other.cv_results_["params"]
    np.testing.assert_array_equal(search.cv_results_["rank_test_score"], other.cv_results_["rank_test_score"])
    return search


#: Each update with each penalty, and the models in turn: their operators have separate rules.
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
    assert len(trained_alone) == 2 + 2 * 7


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
        ({"rate": "auto"}, {"learning_penalty": ["l2", None]}),
        ({"rate": LearningRateLBFGS()}, {"learning_rate__gtol": [1e-3, 1e-4]}),
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
    """Each iteration has samples of its own, on which its candidates are trained together."""
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
