"""Wrappers that ONNX has no part in, and what a model is for."""

import warnings

import numpy as np
import pytest
from scipy import special
from sklearn.cluster import KMeans
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, IsolationForest, VotingClassifier, VotingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from ortlearn.conversion.preparation.kinds import describe, last_step
from ortlearn.preprocessing.target_transforms import FUNCTIONS, write_inverse
from ortlearn.preprocessing.unwrapping import Unwrapped, unwrap
from ortlearn.exceptions import ConversionError
from ortlearn.graphs import GraphBuilder

X, CLASSES = load_iris(return_X_y=True)
TWO = (CLASSES > 0).astype(int)
SEVERAL = np.stack([CLASSES > 0, CLASSES > 1], axis=1).astype(int)


def test_a_search_is_its_best_estimator():
    search = GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=2).fit(X, TWO)
    assert unwrap(search).estimator is search.best_estimator_
    pipeline = make_pipeline(StandardScaler(), FrozenEstimator(search)).fit(X, TWO)
    inner = unwrap(pipeline).estimator
    assert inner.steps[0] == pipeline.steps[0] and inner.steps[1][1] is search.best_estimator_
    no_refit = GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=2, refit=False).fit(X, TWO)
    with pytest.raises(ConversionError, match="refit=True"):
        unwrap(no_refit)


def test_what_has_no_wrapper_stays():
    for model in (Ridge(), make_pipeline(StandardScaler(), Ridge())):
        assert unwrap(model) == Unwrapped(model)


@pytest.mark.parametrize(
    "options, expected",
    [
        ({}, (0.5, 1, True)),
        ({"threshold": 0.2, "pos_label": 0}, (0.2, 0, True)),
        ({"response_method": "decision_function"}, (0.0, 1, False)),
    ],
)
def test_thresholds(options, expected):
    model = FixedThresholdClassifier(LogisticRegression(), **options).fit(X, TWO)
    found = unwrap(model)
    assert found.estimator is model.estimator_
    threshold = found.threshold
    assert (threshold.value, threshold.positive, threshold.of_probability) == expected


def test_a_tuned_threshold_and_one_without_probabilities():
    tuned = TunedThresholdClassifierCV(LogisticRegression(), cv=2).fit(X, TWO)
    assert unwrap(tuned).threshold.value == tuned.best_threshold_
    ridge = FixedThresholdClassifier(RidgeClassifier()).fit(X, TWO)
    assert unwrap(ridge).threshold.of_probability is False


def test_votes_that_skl2onnx_trips_over():
    voting = VotingClassifier([("a", LogisticRegression(max_iter=500))], weights=[2]).fit(X, CLASSES)
    found = unwrap(voting).estimator
    assert found.flatten_transform is False and voting.flatten_transform is True
    assert isinstance(found.weights, np.ndarray)
    assert isinstance(unwrap(VotingRegressor([("a", Ridge())], weights=[2])).estimator.weights, np.ndarray)
    bagging = BaggingClassifier(RidgeClassifier(), n_estimators=2, random_state=0).fit(X, CLASSES)
    assert unwrap(bagging).estimator.estimators_ is bagging.estimators_
    np.testing.assert_array_equal(unwrap(bagging).estimator.predict(X), bagging.predict(X))


@pytest.mark.parametrize(
    "model, y, kind, classes, has_probabilities",
    [
        (LogisticRegression(), CLASSES, "classification", [0, 1, 2], True),
        (RidgeClassifier(), TWO, "classification", [0, 1], False),
        (RidgeClassifier(), SEVERAL, "multilabel", [0, 1], False),
        (OneVsRestClassifier(LogisticRegression()), SEVERAL, "multilabel", [0, 1], True),
        (MultiOutputClassifier(LogisticRegression()), SEVERAL, "multilabel", [[0, 1], [0, 1]], True),
        (MLPClassifier((2,), max_iter=1), SEVERAL, "multilabel", [0, 1], True),
        (LinearRegression(), X[:, 0], "regression", None, None),
        (KMeans(2, n_init=1), None, "clusters", None, None),
        (GaussianMixture(2), None, "mixture", None, None),
        (IsolationForest(n_estimators=2), None, "outliers", [-1, 1], False),
        (make_pipeline(StandardScaler(), PCA(2)), None, "transformation", None, None),
        (make_pipeline(PCA(2), "passthrough"), None, "transformation", None, None),
    ],
)
def test_kinds(model, y, kind, classes, has_probabilities):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = model.fit(X, y)
    found = describe(unwrap(fitted))
    assert found.kind == kind and found.has_probabilities is has_probabilities
    known = found.classes
    assert (known if known is None else [np.asarray(c).tolist() for c in known]) == classes
    assert found.core is last_step(fitted)


TARGETS = np.array([[0.5, 2.0], [1.5, -3.0], [4.0, 1.0]])


@pytest.mark.parametrize(
    "transformer",
    [
        StandardScaler(),
        StandardScaler(with_mean=False),
        StandardScaler(with_std=False),
        RobustScaler(),
        MaxAbsScaler(),
        MinMaxScaler((-1, 3)),
        make_pipeline(StandardScaler(), MinMaxScaler()),
        FunctionTransformer(np.arcsinh, inverse_func=np.sinh),
        FunctionTransformer(),
    ],
)
def test_inverses_of_targets(transformer, run_onnx):
    transformed = transformer.fit_transform(TARGETS)
    np.testing.assert_allclose(
        _inverse(transformer, run_onnx, transformed), transformer.inverse_transform(transformed), rtol=1e-5
    )


def _inverse(transformer, run_onnx, values):
    from onnx import helper, parser

    from ortlearn.graphs import append_nodes

    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[N,2] x) => (float[N,2] y) { y = Identity (x) }'
    )
    op = GraphBuilder(existing_names=["x", "y"])
    result = op.Identity(write_inverse(op, transformer, "y"))
    outputs = [helper.make_tensor_value_info(result, 1, ["N", 2])]
    return run_onnx(append_nodes(model, op, outputs=outputs), values.astype(np.float32))[0]


@pytest.mark.parametrize("function", [f for f in FUNCTIONS if f is not None], ids=lambda f: f.__name__)
def test_every_inverse_function(function, run_onnx):
    values = np.array([[0.1, 0.2], [0.4, 0.9]])
    transformer = FunctionTransformer(inverse_func=function, check_inverse=False).fit(values)
    np.testing.assert_allclose(_inverse(transformer, run_onnx, values), function(values), rtol=1e-5)


def test_an_inverse_that_no_graph_has():
    quantiles = QuantileTransformer(n_quantiles=3).fit(TARGETS)
    for transformer in (quantiles, FunctionTransformer(special.erf, inverse_func=special.erfinv)):
        with pytest.raises(ConversionError, match="is not known as ONNX: use a scaler"):
            write_inverse(GraphBuilder(), transformer, "y")


def test_transformed_targets_come_apart():
    inner = TransformedTargetRegressor(Ridge(), func=np.arcsinh, inverse_func=np.sinh)
    model = TransformedTargetRegressor(inner, transformer=StandardScaler()).fit(X, X[:, 0])
    found = unwrap(model)
    assert found.estimator is model.regressor_.regressor_
    assert found.target_transformers == (model.transformer_, model.regressor_.transformer_)
