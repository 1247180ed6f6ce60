"""Imputers of numeric features, also of columns without values and of other gaps than in the fit."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, MissingIndicator, SimpleImputer
from sklearn.linear_model import BayesianRidge, PoissonRegressor, Ridge
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVR

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import FallbackWarning
from ortlearn.models import all_covered
from ortlearn.testing import check_model
from ortlearn.trainable.conversion import to_trainable
from tests.models.transformations import assert_same_transformation, transformed
from tests.pairwise import pairwise

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:Skipping features"),
]

RNG = np.random.RandomState(0)
X = RNG.normal(size=(60, 4)) @ [[1, 0, 0, 1], [0, 1, 0, -1], [0, 0.5, 1, 0], [0, 0, 0, 0.5]]
GAPS = np.where(RNG.uniform(size=X.shape) < 0.2, np.nan, X)
#: The second column has no value.
EMPTY = np.where(np.arange(4) == 1, np.nan, GAPS)
#: Other gaps than in the samples of the fit, the first sample with no value.
NEW = np.where(RNG.uniform(size=X.shape) < 0.4, np.nan, RNG.normal(size=X.shape))
NEW[0] = np.nan
ROUNDS = {
    "default": {"max_iter": 3},
    "one round": {"max_iter": 1},
    "no round": {"max_iter": 0},
    "a constant first": {"initial_strategy": "constant", "fill_value": 0.3, "keep_empty_features": True},
    "limits": {"max_iter": 3, "min_value": -0.5, "max_value": [1.0, 2.0, 0.5, 0.7]},
    "random order": {"max_iter": 3, "imputation_order": "random", "random_state": 0},
    "gaps of the fit": {"max_iter": 3, "skip_complete": True, "imputation_order": "descending"},
    "nearest columns": {"max_iter": 3, "n_nearest_features": 2, "random_state": 0},
    "flags": {"max_iter": 3, "add_indicator": True, "initial_strategy": "median"},
    "ridge": {"estimator": Ridge(), "max_iter": 3},
    "a pipeline": {"estimator": make_pipeline(StandardScaler(), BayesianRidge()), "max_iter": 2},
    "vectors": {"estimator": SVR(), "max_iter": 2},
}


def columns_of(options, given):
    """Return options with one limit for all columns if a column has no values."""
    empty = given is EMPTY and "max_value" in options
    return {**options, "max_value": 1.0} if empty else options


@pytest.mark.slow
@pytest.mark.parametrize("given", [GAPS, EMPTY], ids=["gaps", "empty column"])
@pytest.mark.parametrize("name", ROUNDS)
def test_rounds_of_regressions(name, given, run):
    model = IterativeImputer(**columns_of(ROUNDS[name], given)).fit(given)
    for samples in (given, NEW, NEW[:1], NEW[1:2]):
        assert_same_transformation(model, samples, 1e-9, 1e-5)
    check_model(model, NEW[1:], run=run)


def test_an_empty_feature_that_is_kept():
    model = IterativeImputer(keep_empty_features=True).fit(EMPTY)
    assert_same_transformation(model, NEW, 1e-9, 1e-5)


def test_regressors_that_predict_exponentials():
    model = IterativeImputer(PoissonRegressor(), initial_strategy="median", max_iter=2).fit(np.exp(GAPS))
    assert_same_transformation(model, np.exp(NEW), 1e-9, 1e-4)


def test_forests_impute():
    model = IterativeImputer(RandomForestRegressor(3, max_depth=3, random_state=0), max_iter=2).fit(GAPS)
    assert_same_transformation(model, NEW, 1e-9, 1e-5)


@pytest.mark.slow
def test_other_marks_of_missing_values(run):
    marked = np.where(np.isnan(GAPS), -9.0, GAPS)
    for imputer in (
        IterativeImputer(missing_values=-9, max_iter=2),
        KNNImputer(missing_values=-9, weights="distance"),
    ):
        model = imputer.fit(marked)
        assert_same_transformation(model, np.where(np.isnan(NEW), -9.0, NEW), 1e-9, 1e-5)
        check_model(model, np.where(np.isnan(NEW), -9.0, NEW), run=run)


@pytest.mark.slow
def test_sampling_from_the_posterior_stays_in_scikit_learn():
    imputer = IterativeImputer(sample_posterior=True, random_state=0)
    assert not all_covered(imputer.fit(GAPS))
    with pytest.warns(FallbackWarning, match="'iterativeimputer'"):
        to_trainable(make_pipeline(imputer, Ridge()).fit(GAPS, X[:, 0]), X=GAPS)


def test_regressions_are_trained_and_written_back():
    model = IterativeImputer(max_iter=3, tol=1e-9).fit(GAPS[:15])
    optimizer = OrtGradientOptimizer(model, max_iter=20, learning_rate=0.01, warm_start=True, random_state=0)
    optimizer.fit(GAPS, X)  # the targets are the missing values
    assert optimizer.train_losses_[-1] < 0.95 * optimizer.train_losses_[0]
    trained = optimizer.to_sklearn()
    for before, after in zip(model.imputation_sequence_, trained.imputation_sequence_, strict=True):
        assert not np.array_equal(before.estimator.coef_, after.estimator.coef_)
    np.testing.assert_allclose(optimizer.transform(NEW), trained.transform(NEW), atol=1e-4)


NEIGHBOURS = {
    "uniform": {},
    "distance": {"weights": "distance"},
    "one": {"n_neighbors": 1},
    "all": {"n_neighbors": 99},
    "flags": {"add_indicator": True},
}


@pytest.mark.sweep(4)
@pairwise(
    name=NEIGHBOURS,
    given=[pytest.param(GAPS, id="gaps"), pytest.param(EMPTY, id="empty column")],
    kept=[True, False],
)
def test_nearest_samples(name, given, kept, run):
    model = KNNImputer(keep_empty_features=kept, **NEIGHBOURS[name]).fit(given)
    for samples in (NEW, NEW[:1], NEW[1:2], X):
        assert_same_transformation(model, samples, 1e-8, 1e-4)
    check_model(model, NEW, run=run)


def test_samples_that_share_no_column():
    given = np.array([[1.0, np.nan, 2.0], [np.nan, 5.0, np.nan], [3.0, np.nan, 4.0], [2.0, 1.0, np.nan]])
    new = np.array(
        [[np.nan, np.nan, 7.0], [np.nan, 3.0, np.nan], [np.nan, np.nan, np.nan], [0.0, np.nan, 1.0]]
    )
    for options in NEIGHBOURS.values():
        assert_same_transformation(KNNImputer(**options).fit(given), new, 1e-12, 1e-5)


def test_a_sample_of_the_fit_is_its_own_nearest():
    given = np.concatenate([X, X[:1]])
    holes = given.copy()
    holes[:, 2] = np.nan
    model = KNNImputer(weights="distance").fit(given)
    assert_same_transformation(model, holes, 1e-5, 1e-4)
    np.testing.assert_allclose(transformed(model, holes, np.float64)[:, 2], given[:, 2], atol=1e-5)


def test_samples_of_neighbours_are_trained():
    model = KNNImputer(n_neighbors=3).fit(GAPS)
    optimizer = OrtGradientOptimizer(model, max_iter=20, learning_rate=0.01, warm_start=True, random_state=0)
    optimizer.fit(GAPS, X)
    # the nearest samples change during training
    assert optimizer.train_losses_[-1] < 0.995 * optimizer.train_losses_[0]
    trained = optimizer.to_sklearn()
    np.testing.assert_allclose(optimizer.transform(NEW), trained.transform(NEW), atol=1e-4)
    assert np.array_equal(np.isnan(trained._fit_X), np.isnan(GAPS))


@pytest.mark.parametrize("strategy", ["callable", "median", "most_frequent", "constant"])
@pytest.mark.parametrize("kept", [True, False])
def test_simple_imputers(strategy, kept):
    options = {"strategy": np.max if strategy == "callable" else strategy, "keep_empty_features": kept}
    model = SimpleImputer(add_indicator=True, **options).fit(GAPS if strategy == "callable" else EMPTY)
    assert_same_transformation(model, NEW, 1e-12, 1e-6)


@pytest.mark.parametrize("texts", [True, False])
def test_an_indicator_of_no_column(texts, check_graph):
    given = pd.DataFrame(X[:, :2], columns=["a", "b"])
    imputer = SimpleImputer()
    if texts:
        given = pd.DataFrame({"a": np.where(X[:, 0] > 0, "up", "down"), "b": np.where(X[:, 1] > 0, "x", "y")})
        imputer = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())
    model = make_pipeline(make_union(imputer, MissingIndicator()), Ridge()).fit(given, X[:, 0])
    check_graph(model, given, given[:1])


def test_imputers_of_a_frame():
    frame = pd.DataFrame(GAPS, columns=list("abcd"))
    model = make_pipeline(make_union(IterativeImputer(), KNNImputer()), Ridge()).fit(frame, X[:, 0])
    trainable = to_trainable(model, X=frame)
    assert trainable.entry.sklearn_steps is None
