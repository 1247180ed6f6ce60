"""SplineTransformer: all degrees, knots and extrapolations; missing values and trained knots."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import FallbackWarning, NoTrainableWeightError
from ortlearn.testing import check_model
from ortlearn.trainable.conversion import to_trainable
from tests.models.transformations import assert_same_transformation, transformed
from tests.pairwise import pairwise

RNG = np.random.RandomState(0)
X = RNG.normal(size=(60, 3))
#: Columns with equal quantiles, and a constant column.
TIED = np.column_stack([np.round(X[:, :2]), np.full(60, 0.7)])
MODES = ["error", "constant", "linear", "continue", "periodic"]


def far(samples):
    """Return samples within the base interval, at its ends, and far on both sides of it."""
    ends = samples.min(0)[None], samples.max(0)[None]
    return np.concatenate([samples, 3 * samples, samples - 10, samples + 10, *ends])


SAMPLES = {"distinct": X, "tied": TIED, "one column": X[:, :1]}


@pairwise(
    samples=[pytest.param(samples, id=name) for name, samples in SAMPLES.items()],
    mode=MODES,
    degree=[0, 1, 2, 3, 5],
    knots=["uniform", "quantile"],
    bias=[True, False],
)
def test_splines(samples, mode, degree, knots, bias):
    if mode == "linear" and degree < 2:
        samples = samples[:, :1]  # scikit-learn continues the splines of later columns from other knots
    inside = mode == "error" or (mode == "constant" and degree == 0)  # scikit-learn raises beyond the knots
    for n_knots in (7, 3) if degree < 3 else (7,):
        model = SplineTransformer(n_knots, degree, knots=knots, extrapolation=mode, include_bias=bias)
        model.fit(samples)
        assert_same_transformation(model, samples if inside else far(samples), 1e-9, 1e-4)


@pytest.mark.parametrize("sparse", [True, False])
def test_given_knots_and_sparse_results(sparse):
    knots = np.array([[-2.0, -3.0, -1.0], [-0.5, 0.0, 0.5], [0.5, 0.1, 0.6], [3.0, 2.0, 4.0]])
    model = SplineTransformer(knots=knots, sparse_output=sparse, extrapolation="continue").fit(X)
    assert_same_transformation(model, far(X), 1e-9, 1e-4)


@pytest.mark.parametrize("mode", ["constant", "linear", "continue", "periodic"])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_knots_are_trained(mode, degree):
    samples = X[:, :1] if mode == "linear" else X
    model = SplineTransformer(5, degree, extrapolation=mode, include_bias=False).fit(samples)
    check_model(model, 1.2 * samples)


def test_trained_knots_stay_in_order():
    model = SplineTransformer(4, 3, knots="quantile").fit(X)
    moved = X + 0.3
    optimizer = OrtGradientOptimizer(model, max_iter=30, learning_rate=0.05, warm_start=True, random_state=0)
    optimizer.fit(moved, model.transform(X))  # the targets have their knots farther right
    assert optimizer.train_losses_[-1] < 0.6 * optimizer.train_losses_[0]
    trained = optimizer.to_sklearn()
    knots = [spline.t for spline in trained.bsplines_]
    assert all((np.diff(own) > 0).all() for own in knots)
    steps = [np.diff(own) for own in knots]
    assert all(np.allclose(own[:3], own[3]) and np.allclose(own[-3:], own[-4]) for own in steps)
    np.testing.assert_allclose(transformed(trained, moved, np.float64), trained.transform(moved), atol=1e-9)


def test_step_functions_have_no_parameters():
    with pytest.raises(NoTrainableWeightError):
        to_trainable(SplineTransformer(degree=0).fit(X), X=X)


@pytest.mark.parametrize("mode", ["constant", "linear", "continue", "periodic"])
def test_missing_values_are_zeros(mode):
    gaps = np.where(RNG.uniform(size=X.shape) < 0.2, np.nan, X)
    model = SplineTransformer(extrapolation=mode, handle_missing="zeros").fit(gaps)
    for samples in (gaps, far(X), np.full((1, 3), np.nan)):
        assert_same_transformation(model, samples, 1e-9, 1e-4)


def test_values_beyond_the_knots_are_nan_if_scikit_learn_refuses_them():
    model = SplineTransformer(extrapolation="error").fit(X)
    with pytest.raises(ValueError, match="beyond the limits"):
        model.transform(X - 10)
    found = transformed(model, np.concatenate([X, X - 10]), np.float64)
    assert np.isnan(found[60:]).all() and not np.isnan(found[:60]).any()


def test_linear_extrapolation_of_degree_one_stays_in_scikit_learn():
    model = make_pipeline(SplineTransformer(degree=1, extrapolation="linear"), Ridge()).fit(X, X[:, 0])
    with pytest.warns(FallbackWarning, match="from other knots in columns after the first"):
        assert to_trainable(model, X=X).entry.sklearn_steps is not None
