"""Estimators that overwrite their input are trained on a copy of it."""

import inspect
import itertools
import warnings

import numpy as np
import pandas
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.discovery import all_estimators

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.preprocessing.initial_fit import may_overwrite
from tests.pairwise import pairwise

OPTIMIZERS = (OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer)
WORDS = ("copy", "overwrite", "inplace")
#: Estimators with a parameter that allows overwriting the input.
OVERWRITING = {
    kind: name
    for _, kind in all_estimators()
    for name in inspect.signature(kind).parameters
    if any(word in name for word in WORDS)
}
#: Estimators without conversion to ONNX, which are rejected.
REJECTED = {"HDBSCAN"}
STEPS = {"max_iter": 2, "random_state": 0}


def samples(dtype, order):
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(60, 3)) * [1.0, 3.0, 0.2] + [2.0, 5.0, 1.0])
    return np.asarray(X, dtype=dtype, order=order)


def labels(kind, X):
    y = X.astype(float) @ [1.0, -0.5, 2.0]
    if get_tags(kind).estimator_type == "classifier":
        return (y > np.median(y)).astype(int)
    if kind.__class__.__name__.startswith(("MultiTask", "CCA", "PLSCanonical", "PLSSVD")):
        return np.column_stack([y, X[:, 1] - y])
    return y


def model(kind, name, copies, piped):
    made = kind(**{name: copies})
    if not piped:
        return made
    if get_tags(made).estimator_type is None and hasattr(made, "transform"):
        return make_pipeline(made, Ridge(copy_X=copies))
    return make_pipeline(StandardScaler(copy=copies), made)


def outcome(optimizer, estimator, X, y, method):
    """Return weights and predictions, or the error; check that no argument has changed."""
    given = [X.copy(order="K"), np.array(y), np.linspace(0.5, 1.5, len(X))]
    kept = [array.copy() for array in given]
    trained = optimizer(estimator, **STEPS)
    weights = {} if get_tags(estimator).estimator_type in (None, "clusterer") else {"sample_weight": given[2]}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            getattr(trained, method)(given[0], given[1], **weights)
            found = trained.predict(given[0]) if hasattr(trained, "predict") else trained.transform(given[0])
    except Exception as error:
        found = type(error)
    for array, before in zip(given, kept, strict=True):
        np.testing.assert_array_equal(array, before)
    return found, getattr(trained, "trained_coef_", {})


def check_same(optimizer, kind, piped, X, method):
    name = OVERWRITING[kind]
    runs = []
    for copies in (True, False):
        estimator = model(kind, name, copies, piped)
        runs.append(outcome(optimizer, estimator, X, labels(kind(), X), method))
    (expected, weights), (got, others) = runs
    if isinstance(expected, type):
        assert got is expected
    else:
        np.testing.assert_array_equal(got, expected)
    assert weights.keys() == others.keys()
    for key in weights:
        np.testing.assert_array_equal(others[key], weights[key])
    return not isinstance(expected, type)


def test_number_of_estimators():
    assert len(OVERWRITING) >= 35


@pytest.mark.sweep(11)
@pytest.mark.parametrize("kind", OVERWRITING, ids=lambda kind: kind.__name__)
def test_float32_in_one_graph(kind):
    X = samples("f4", "C")
    done = any(check_same(OrtGradientOptimizer, kind, piped, X, "fit") for piped in (False, True))
    assert done == (kind.__name__ not in REJECTED)


@pytest.mark.slow
@pytest.mark.parametrize("kind", OVERWRITING, ids=lambda kind: kind.__name__)
def test_types_orders_and_methods(kind):
    arrays = [samples(dtype, order) for dtype in ("f4", "f8") for order in "CF"]
    ways = itertools.product(OPTIMIZERS, ("fit", "partial_fit"))
    for number, (X, (optimizer, method)) in enumerate(zip(arrays, ways, strict=True)):
        check_same(optimizer, kind, number in (1, 2), X, method)


def double_in_place(X):
    X *= 2
    return X


class Shifter(TransformerMixin, BaseEstimator):
    """Transformer that overwrites its input and has no parameter for it."""

    def fit(self, X, y=None):
        self.fitted_ = True
        X += 1
        return self

    def transform(self, X):
        X += 1
        return X


OTHERS = {
    "function": make_pipeline(FunctionTransformer(double_in_place), Ridge()),
    "other package": make_pipeline(Shifter(), Ridge()),
    "targets": TransformedTargetRegressor(LinearRegression(), transformer=StandardScaler(copy=False)),
    "search": GridSearchCV(make_pipeline(StandardScaler(), Ridge()), {"standardscaler__copy": [False]}, cv=2),
    "candidates": GridSearchCV(
        make_pipeline(StandardScaler(), Ridge()), {"ridge": [Ridge(copy_X=False)]}, cv=2
    ),
    "sklearn_steps": make_pipeline(StandardScaler(copy=False), KBinsDiscretizer(3), LinearRegression()),
}


@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.FallbackWarning")
@pairwise(
    indirect=["optimizer"],
    case=OTHERS,
    optimizer=["one_graph", "two_calls"],
    n_samples=[20, 60],
    fitted=[False, True],
)
def test_overwriting_without_a_parameter(optimizer, case, n_samples, fitted):
    X = np.round(samples("f8", "C")[:n_samples], 3)
    y = labels(Ridge(), X)
    given, targets = X.copy(), y.copy()
    estimator = OTHERS[case]
    if fitted:
        estimator = estimator.fit(X.copy(), y.copy())
    trained = optimizer(estimator, warm_start=fitted, **STEPS).fit(given, targets)
    predicted = trained.predict(given)
    np.testing.assert_array_equal(given, X)
    np.testing.assert_array_equal(targets, y)
    np.testing.assert_allclose(trained.predict(X.copy()), predicted)
    written = trained.to_sklearn()
    np.testing.assert_allclose(written.predict(X.copy()), predicted, rtol=1e-3, atol=1e-3)


def test_fit_equals_that_on_copies(optimizer):
    X = samples("f4", "C")
    y = labels(Ridge(), X)
    scores = []
    for copies in (True, False):
        given = X.copy()
        model = make_pipeline(StandardScaler(copy=copies), Ridge(copy_X=copies))
        scores.append(optimizer(model, max_iter=200, random_state=0).fit(given, y).score(given, y))
    assert scores[0] == scores[1] > 0.99


def test_frames(optimizer):
    frame = pandas.DataFrame(samples("f8", "C"), columns=list("abc"))
    given = frame.copy()
    trained = optimizer(make_pipeline(StandardScaler(copy=False), LogisticRegression()), **STEPS)
    trained.fit(given, frame["a"] > 2).predict(given)
    pandas.testing.assert_frame_equal(given, frame)


def test_input_is_copied_only_if_overwritten():
    assert not may_overwrite(make_pipeline(StandardScaler(), Ridge()))
    assert may_overwrite(make_pipeline(StandardScaler(), Ridge(copy_X=False)))
    assert may_overwrite(Shifter())
