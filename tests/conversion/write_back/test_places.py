"""Every array that fitted estimators are known to hold can be written where it is."""

import copy

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    IsolationForest,
    VotingRegressor,
)
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LinearRegression, Ridge, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

from ortlearn.conversion.weights.fitted_attributes import fitted_arrays
from ortlearn.conversion.write_back.places import place_of

RNG = np.random.RandomState(0)
X = RNG.normal(size=(40, 3))
Y = X @ [1.0, -2.0, 0.5] + 0.1 * RNG.normal(size=40)
FEW = {"n_estimators": 2, "random_state": 0}
MODELS = {
    "scalar": Ridge().fit(X, Y),
    "matrix": LinearRegression().fit(X, np.stack([Y, -Y], axis=1)),
    "lists": MLPRegressor(hidden_layer_sizes=(3,), max_iter=5, random_state=0),
    "tree": DecisionTreeRegressor(max_depth=2),
    "trees in an array": GradientBoostingRegressor(**FEW),
    "predictors": HistGradientBoostingRegressor(max_iter=2),
    "members": MultiOutputRegressor(Ridge()).fit(X, np.stack([Y, -Y], axis=1)),
    "names": VotingRegressor([("one", Ridge()), ("two", SVR())]),
    "a step in a step": make_pipeline(StandardScaler(), make_pipeline(MinMaxScaler(), Ridge())),
    "a union": make_pipeline(make_union(StandardScaler(), MinMaxScaler()), Ridge()),
    "columns": make_column_transformer((StandardScaler(), [0]), (MinMaxScaler(), [1, 2])),
    "a search": GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=2),
    "a kernel": GaussianProcessRegressor(alpha=0.1),
    "weights of members": AdaBoostClassifier(**FEW).fit(X, Y > 0),
    "depths": IsolationForest(**FEW),
    "sparse": SGDClassifier(max_iter=5, tol=None, random_state=0).fit(X, Y > 0).sparsify(),
    "idf": TfidfTransformer().fit(np.abs(X)),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", list(MODELS))
def test_what_is_written_is_read_again(name):
    model = MODELS[name]
    if not hasattr(model, "n_features_in_"):
        model = model.fit(X, Y)
    arrays = fitted_arrays(model)
    assert arrays
    for array in arrays:
        changed = copy.deepcopy(model)
        values = array.values + np.arange(1, array.values.size + 1).reshape(array.values.shape) / 8
        place_of(array, changed).write(values)
        found = {(a.step, a.attribute): a.values for a in fitted_arrays(changed)}
        written = found[array.step, array.attribute]
        np.testing.assert_allclose(written, values, rtol=1e-12)
        assert written.dtype == array.values.dtype
        kept = [a for a in arrays if not a.attribute.startswith(array.attribute.partition(" ")[0])]
        for other in kept:
            np.testing.assert_array_equal(found[other.step, other.attribute], other.values)


def test_kinds_of_numbers_are_kept():
    model = Ridge().fit(X, Y)
    arrays = {array.attribute: array for array in fitted_arrays(model)}
    place_of(arrays["intercept_"], model).write(np.array(3.5))
    place_of(arrays["coef_"], model).write(np.array([1.0, 2.0, 3.0]))
    assert isinstance(model.intercept_, float) and model.intercept_ == 3.5
    assert model.coef_.shape == (3,)


def test_fortran_order_is_kept():
    model = LinearRegression().fit(X, np.stack([Y, -Y], axis=1))
    model.coef_ = np.asfortranarray(model.coef_)
    array = next(a for a in fitted_arrays(model) if a.attribute == "coef_")
    place_of(array, model).write(np.arange(6.0).reshape(2, 3))
    assert model.coef_.flags.f_contiguous
    np.testing.assert_array_equal(model.coef_, [[0, 1, 2], [3, 4, 5]])
