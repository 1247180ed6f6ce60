"""Methods do not change their arguments, and reject the same X as fit."""

import copy
import functools
import inspect
import pickle

import numpy as np
import pandas
import pytest
from onnx import parser
from scipy.sparse import csr_matrix
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import FallbackWarning, FidelityWarning

FILE = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 18]>
    g (float[N,3] x) => (float[N,1] y) <float[3,1] w = {1, 1, 1}, float[1] b = {0}>
    { z = MatMul (x, w) y = Add (z, b) }""")
rng = np.random.default_rng(0)
X = np.abs(rng.normal(size=(30, 3)))
Y = {"regression": X @ [1.0, 2.0, 3.0], "classes": (X[:, 0] > 0.7).astype(int), "outliers": np.ones(30)}
Y["outliers"][:5] = -1
WEIGHTS = np.linspace(0.5, 1.5, 30)
#: Estimators with labels, which together have all methods.
MODELS = {
    "Ridge": (Ridge(), Y["regression"]),
    "file": (FILE, Y["regression"]),
    "LogisticRegression": (make_pipeline(StandardScaler(), LogisticRegression()), Y["classes"]),
    "PCA": (PCA(2).fit(X), np.ones((30, 2))),
    "GaussianMixture": (GaussianMixture(2, random_state=0), None),
    "OneClassSVM": (OneClassSVM(gamma=0.5).fit(X), Y["outliers"]),
}


def read_only(values):
    values = np.array(values)
    values.flags.writeable = False
    return values


CONTAINERS = {
    "float32": lambda values: np.array(values, dtype=np.float32),
    "float64": np.array,
    "columns first": lambda values: np.array(values, order="F"),
    "every second sample": lambda values: np.repeat(values, 2, axis=0)[::2],
    "read only": read_only,
    "integers": lambda values: np.array(np.round(values * 3), dtype=np.int64),
    "objects": lambda values: np.array(values, dtype=object),
    "list": lambda values: np.asarray(values).tolist(),
    "frame": lambda values: pandas.DataFrame(values) if np.ndim(values) == 2 else pandas.Series(values),
    "sparse": lambda values: csr_matrix(values) if np.ndim(values) == 2 else np.array(values),
}


def arguments_of_methods(y):
    """Return the arguments of methods by name."""
    whole = {"X": X, "y": y}
    weighted = whole | {"sample_weight": WEIGHTS}
    held_out = {"X_val": X[:9], "y_val": None if y is None else y[:9], "sample_weight_val": WEIGHTS[:9]}
    of_y = {"fit": weighted | held_out, "partial_fit": weighted, "score": weighted, "losses": weighted}
    of_X = [
        "predict",
        "predict_proba",
        "predict_log_proba",
        "decision_function",
        "transform",
        "score_samples",
    ]
    return of_y | {"fit_transform": whole, "fit_predict": whole} | {name: {"X": X} for name in of_X}


@functools.cache
def trained_model(optimizer, name):
    estimator, y = MODELS[name]
    return optimizer(estimator, max_iter=2, learning_rate=1e-6, random_state=0).fit(X, y)


#: Models that scikit-learn does not fit on sparse data.
DENSE = ("LogisticRegression", "GaussianMixture", "OneClassSVM")
PAIRS = [(name, kind) for name in MODELS for kind in CONTAINERS if kind != "sparse" or name not in DENSE]
OPTIMIZERS = (OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer)


@pytest.mark.sweep(11)
@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.FidelityWarning")  # a mixture fitted on integers
@pytest.mark.parametrize(("name", "container"), PAIRS)
def test_arguments_are_not_changed(name, container):
    y = MODELS[name][1]
    convert = CONTAINERS[container]
    trained = copy.copy(trained_model(OPTIMIZERS[PAIRS.index((name, container)) % 2], name))
    called = 0
    for method, arguments in arguments_of_methods(y).items():
        if not hasattr(trained, method):
            continue
        given = {key: value for key, value in arguments.items() if value is not None}
        for key in [key for key in given if key.startswith("X")]:
            given[key] = convert(given[key])
        if container not in ("sparse", "objects"):
            for key in [key for key in given if not key.startswith("X")]:
                given[key] = convert(given[key]) if container != "integers" else read_only(given[key])
        before = pickle.dumps(given)
        kept = pickle.loads(before)
        getattr(trained, method)(**given)
        for key, value in kept.items():
            same = np.asarray(value.toarray() if hasattr(value, "toarray") else value)
            now = given[key].toarray() if hasattr(given[key], "toarray") else given[key]
            np.testing.assert_array_equal(np.asarray(now), same)
            assert type(given[key]) is type(value)
        called += 1
    assert called >= 5


#: Errors of invalid X; a scaler, which accepts dates and texts as numbers, gives a warning.
ERRORS = (ValueError, TypeError, FallbackWarning, FidelityWarning)
INVALID = {
    "dates": np.datetime64("2026-01-01") + np.arange(90).reshape(30, 3),
    "durations": np.timedelta64(3, "s") * np.arange(90).reshape(30, 3),
    "dates in a frame": pandas.DataFrame({key: pandas.date_range("2026", periods=30) for key in "abc"}),
    "texts of numbers": X.astype(str),
    "text objects": X.astype(str).astype(object),
    "a masked array": np.ma.masked_array(X, mask=X > 2),
    "nothing masked": np.ma.masked_array(X),
    "a list of masked rows": [np.ma.masked_array(row) for row in X],
    "complex": X + 1j,
    "missing": np.where(X > 1, np.nan, X),
    "infinite": np.where(X > 1, np.inf, X),
    "one dimension": X[:, 0],
    "three dimensions": X[:, :, None],
    "no samples": X[:0],
    "bytes": X.astype("S"),
    "records": np.zeros((30, 3), dtype=[("a", float)]),
}


@pytest.mark.filterwarnings("ignore:X does not have valid feature names|X has feature names:UserWarning")
@pytest.mark.parametrize("kind", INVALID)
@pytest.mark.parametrize("name", MODELS)
def test_every_method_rejects_invalid_X(name, kind):
    estimator, y = MODELS[name]
    trained = trained_model(OPTIMIZERS[len(kind) % 2], name)
    for method, arguments in arguments_of_methods(y).items():
        if hasattr(trained, method):
            with pytest.raises(ERRORS):
                getattr(trained, method)(**arguments | {"X": INVALID[kind]})
    with pytest.raises(ERRORS):
        type(trained)(estimator).partial_fit(INVALID[kind], y)


@pytest.mark.parametrize("argument", ["y", "sample_weight", "X_val", "y_val", "sample_weight_val"])
def test_masked_arrays_as_other_arguments(optimizer, argument):
    estimator, y = MODELS["Ridge"]
    given = arguments_of_methods(y)["fit"]
    given[argument] = np.ma.masked_array(given[argument])
    with pytest.raises(ValueError, match="masked array"):
        optimizer(estimator).fit(**given)
    if argument in ("y", "sample_weight"):
        trained = optimizer(estimator, max_iter=2).fit(X, y)
        for method in ("score", "losses", "partial_fit"):
            with pytest.raises(ValueError, match="masked array"):
                getattr(trained, method)(**arguments_of_methods(y)[method] | {argument: given[argument]})


def test_masked_columns_and_classes():
    two = parser.parse_model("""
        <ir_version: 8, opset_import: ["": 18]>
        g (float[N,1] a, float[N,1] b) => (float[N,1] y) <float[1,1] w = {1}>
        { s = Add (a, b) y = MatMul (s, w) }""")
    columns = {"a": X[:, :1], "b": np.ma.masked_array(X[:, 1:2])}
    with pytest.raises(ValueError, match="masked array"):
        OrtGradientOptimizer(two).fit(columns, Y["regression"])
    with pytest.raises(ValueError, match="classes is a masked array"):
        OrtGradientOptimizer(LogisticRegression()).partial_fit(X, Y["classes"], np.ma.masked_array([0, 1]))


@pytest.mark.parametrize("name", ["Ridge", "LogisticRegression", "file"])
def test_weights_of_shape_n_1(optimizer, name):
    estimator, y = MODELS[name]
    column = WEIGHTS[:, None]
    flat, tall = (optimizer(estimator, max_iter=3, random_state=0) for _ in "12")
    flat.fit(X, y, WEIGHTS)
    tall.fit(X, y, column)
    for key, array in flat.get_weights().items():
        np.testing.assert_array_equal(tall.get_weights()[key], array)
    assert flat.score(X, y, WEIGHTS) == flat.score(X, y, column)
    np.testing.assert_array_equal(flat.losses(X, y, WEIGHTS), flat.losses(X, y, pandas.DataFrame(column)))
    with pytest.raises(ValueError, match="1D|has the shape"):
        flat.fit(X, y, np.hstack([column, column]))


def test_losses_of_weighted_samples(optimizer):
    estimator, y = MODELS["Ridge"]
    trained = optimizer(estimator, max_iter=3, random_state=0).fit(X, y)
    expected = WEIGHTS * (trained.predict(X) - y) ** 2 / 2
    np.testing.assert_allclose(trained.losses(X, y, WEIGHTS), expected, rtol=1e-5)


def test_every_method_with_X_is_listed():
    found = set()
    for cls in (OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer):
        for name in (name for name in dir(cls) if not name.startswith("_")):
            member = inspect.getattr_static(cls, name)
            function = getattr(member, "fn", member)
            if inspect.isfunction(function) and "X" in inspect.signature(function).parameters:
                found.add(name)
    assert found == set(arguments_of_methods(None))


@pytest.mark.parametrize("kind", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
@pytest.mark.parametrize(
    "args, kwargs, text",
    [
        (
            (Ridge(),),
            {"learn_rate": 0.1},
            "unexpected keyword argument 'learn_rate'. Did you mean 'learning_rate'",
        ),
        ((Ridge(),), {"max_iters": 3}, "Did you mean 'max_iter'"),
        ((Ridge(),), {"C": 3}, "unexpected keyword argument 'C'.$"),
        ((), {}, "missing a required argument: 'estimator'"),
        ((Ridge(), None, 1), {}, "too many positional arguments"),
    ],
)
def test_arguments_of_the_constructor(kind, args, kwargs, text):
    with pytest.raises(TypeError, match=f"^{kind.__name__}: .*{text}"):
        kind(*args, **kwargs)
    assert list(inspect.signature(kind).parameters)[:2] == ["estimator", "weights_to_train"]
