"""Models of to_sklearn predict in the shape of y, (n,) or (n, 1), if their attributes determine it."""

import warnings

import numpy as np
import pytest
from sklearn import linear_model as linear
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.cross_decomposition import PLSRegression
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor, RegressorChain
from sklearn.neighbors import KNeighborsRegressor, RadiusNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR, LinearSVR, NuSVR
from sklearn.tree import DecisionTreeRegressor

from ortlearn import OrtGradientOptimizer

LINEAR = (
    "BayesianRidge ElasticNet HuberRegressor Lars LassoLars LinearRegression "
    "OrthogonalMatchingPursuit QuantileRegressor RidgeCV"
).split()
SHAPED = {
    **{name: getattr(linear, name)() for name in LINEAR},
    "Lasso": linear.Lasso(0.01),
    "Ridge": linear.Ridge(),
    "LinearRegression without intercept": linear.LinearRegression(fit_intercept=False),
    "Ridge without intercept": linear.Ridge(fit_intercept=False),
    "LinearSVR": LinearSVR(),
    "KNeighborsRegressor": KNeighborsRegressor(3),
    "RadiusNeighborsRegressor": RadiusNeighborsRegressor(9.0),
    "PLSRegression": PLSRegression(2),
    "RANSACRegressor": linear.RANSACRegressor(linear.LinearRegression(), random_state=0),
    "pipeline": make_pipeline(StandardScaler(), linear.Ridge()),
    "transformed target": TransformedTargetRegressor(linear.Ridge(), transformer=StandardScaler()),
    "pipeline to a transformed target": make_pipeline(
        StandardScaler(), TransformedTargetRegressor(linear.Lasso(0.01))
    ),
    "search": GridSearchCV(linear.Ridge(), {"alpha": [0.1, 1.0]}, cv=2),
    "search of a pipeline": GridSearchCV(
        make_pipeline(StandardScaler(), linear.Lasso()), {"lasso__alpha": [0.01]}, cv=2
    ),
    "stack": StackingRegressor([("ridge", linear.Ridge())], cv=2),
}
#: Models whose ``predict`` always returns (n,).
ALWAYS_FLAT = {
    "AdaBoostRegressor": AdaBoostRegressor(n_estimators=2),
    "BaggingRegressor": BaggingRegressor(linear.LinearRegression(), n_estimators=2),
    "DecisionTreeRegressor": DecisionTreeRegressor(max_depth=2),
    "ExtraTreesRegressor": ExtraTreesRegressor(2, max_depth=2),
    "GammaRegressor": linear.GammaRegressor(),
    "GaussianProcessRegressor": GaussianProcessRegressor(),
    "GradientBoostingRegressor": GradientBoostingRegressor(n_estimators=2),
    "HistGradientBoostingRegressor": HistGradientBoostingRegressor(max_iter=2),
    "MLPRegressor": MLPRegressor(hidden_layer_sizes=3),
    "NuSVR": NuSVR(),
    "PoissonRegressor": linear.PoissonRegressor(),
    "RandomForestRegressor": RandomForestRegressor(2, max_depth=2),
    "SGDRegressor": linear.SGDRegressor(),
    "SVR": SVR(),
    "TweedieRegressor": linear.TweedieRegressor(),
    "VotingRegressor": VotingRegressor([("ridge", linear.Ridge())]),
}
#: Models whose ``predict`` always returns (n, n_outputs).
ALWAYS_MATRIX = {
    "MultiOutputRegressor": MultiOutputRegressor(linear.Ridge()),
    "RegressorChain": RegressorChain(linear.Ridge()),
}
WAYS = [(1, 2), (2, 1), (2, 2)]
WAY_NAMES = ["flat, then a column", "a column, then flat", "column"]


@pytest.fixture(scope="module")
def samples():
    X = np.random.RandomState(0).normal(size=(40, 3))
    return X, {1: X @ [1.0, -2.0, 3.0] + 20, 2: (X @ [1.0, -2.0, 3.0] + 20)[:, None]}


def predictions(model, samples, way):
    """Return predictions of an estimator and its model, fitted before with another shape."""
    X, y = samples
    fitted, trained = way
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of columns and epochs in scikit-learn
        source = clone(model).fit(X, y[fitted])
        ours = OrtGradientOptimizer(source, learning_rate=1e-4, warm_start=True, max_iter=1, random_state=0)
        ours.fit(X, y[trained])
        before = source.predict(X).shape
        written = ours.to_sklearn()
    assert source.predict(X).shape == before
    return ours.predict(X), written.predict(X), written


@pytest.mark.parametrize("way", WAYS, ids=WAY_NAMES)
@pytest.mark.parametrize("name", SHAPED)
def test_shape_of_y(name, way, samples):
    ours, theirs, _ = predictions(SHAPED[name], samples, way)
    assert ours.shape == theirs.shape == samples[1][way[1]].shape
    np.testing.assert_allclose(theirs, ours, rtol=1e-4)


@pytest.mark.parametrize("name", ["LinearRegression", "Ridge", "Lasso"])
def test_attributes_of_linear_models(name, samples):
    _, _, column = predictions(SHAPED[name], samples, (1, 2))
    assert column.coef_.shape == (1, 3) and column.intercept_.shape == (1,)
    _, _, flat = predictions(SHAPED[name], samples, (2, 1))
    assert flat.coef_.shape == (3,) and np.shape(flat.intercept_) in ((), (1,))


def test_shapes_of_coef_and_intercept(samples):
    _, _, flat = predictions(linear.LinearRegression(), samples, (2, 1))
    assert flat.coef_.shape == (3,) and np.ndim(flat.intercept_) == 0
    _, _, without = predictions(linear.LinearRegression(fit_intercept=False), samples, (1, 2))
    assert without.coef_.shape == (1, 3) and without.intercept_ == 0.0


@pytest.mark.parametrize("way", [(1, 2), (2, 1)], ids=["a column", "flat"])
def test_frozen_model(way, samples):
    X, y = samples
    frozen = FrozenEstimator(linear.LinearRegression().fit(X, y[way[0]]))
    ours = OrtGradientOptimizer(frozen, max_iter=1, random_state=0).fit(X, y[way[1]])
    assert ours.to_sklearn().predict(X).shape == ours.predict(X).shape == y[way[1]].shape
    assert frozen.predict(X).shape == y[way[0]].shape


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.parametrize("name", ["LinearRegression", "Ridge", "HuberRegressor", "pipeline"])
def test_returned_model_can_be_trained(name, samples):
    X, y = samples
    _, _, written = predictions(SHAPED[name], samples, (1, 2))
    again = OrtGradientOptimizer(written, learning_rate=1e-4, warm_start=True, max_iter=1, random_state=0)
    again.fit(X, y[2])
    np.testing.assert_allclose(again.to_sklearn().predict(X), again.predict(X), rtol=1e-4)


@pytest.mark.sweep(14)
@pytest.mark.parametrize("name", ALWAYS_FLAT)
def test_models_that_always_return_vectors(name, samples):
    ours, theirs, _ = predictions(ALWAYS_FLAT[name], samples, (1, 2))
    assert ours.shape == (40, 1) and theirs.shape == (40,)
    np.testing.assert_allclose(theirs, ours.ravel(), rtol=1e-4)


@pytest.mark.parametrize("name", ALWAYS_MATRIX)
def test_models_that_always_return_matrices(name, samples):
    ours, theirs, _ = predictions(ALWAYS_MATRIX[name], samples, (2, 1))
    assert ours.shape == (40,) and theirs.shape == (40, 1)
    np.testing.assert_allclose(theirs.ravel(), ours, rtol=1e-4)


def test_several_outputs(samples):
    X, y = samples
    both = np.column_stack([y[1], -y[1]])
    ours = OrtGradientOptimizer(linear.Ridge(), max_iter=1, random_state=0).fit(X, both)
    assert ours.to_sklearn().coef_.shape == (2, 3) and ours.to_sklearn().predict(X).shape == (40, 2)
