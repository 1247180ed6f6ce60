"""Steps of pipelines that become parts of the graph."""

import warnings

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
    TargetEncoder,
)

from ortlearn.exceptions import ConversionError, FallbackWarning
from ortlearn.models.transformations.numeric import FUNCTIONS
from ortlearn.trainable.conversion import to_trainable
from ortlearn.trainable.from_estimator import sklearn_to_onnx
from tests.curves import Curves
from tests.preprocessing.graph_runs import run
from tests.preprocessing.pipeline_steps import Mine, check


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: getattr(f, "__name__", "identity"))
def test_functions_of_numpy_convert(function, dtype, numbers):
    X, y = np.abs(numbers[0]) + 0.1, numbers[1]
    inside = MinMaxScaler(feature_range=(0.1, 0.9))  # of the numbers that arctanh takes
    scaler = inside if function is np.arctanh else StandardScaler(with_mean=False)
    fitted = make_pipeline(scaler, FunctionTransformer(function), Ridge()).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        converted = check(fitted, X, dtype)
    assert converted.entry.sklearn_steps is None
    got = run(sklearn_to_onnx(fitted[:-1], 3, dtype), {"X": X.astype(dtype)})
    assert got.dtype == dtype
    expected = fitted[:-1].transform(X)
    np.testing.assert_allclose(got, expected, rtol=1e-5 if dtype == np.float32 else 1e-12, atol=1e-6)


def test_functions_with_arguments_stay(numbers):
    class Unhashable:
        __hash__ = None
        __name__ = "unhashable"

        def __call__(self, X):
            return np.exp(X)

    for transformer in (
        FunctionTransformer(np.square, kw_args={"where": True}),
        FunctionTransformer(Unhashable()),
    ):
        fitted = make_pipeline(transformer, Ridge()).fit(*numbers)
        with pytest.warns(FallbackWarning, match="functiontransformer"):
            check(fitted, numbers[0])


def test_functions_among_columns(people):
    X, y = people
    columns = ColumnTransformer(
        [("log", FunctionTransformer(np.log1p), ["fare", "age"]), ("o", OneHotEncoder(), ["city"])]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check(make_pipeline(columns, Ridge()).fit(X, y), X).entry.sklearn_steps is None


def test_the_last_step_must_convert(numbers):
    fitted = make_pipeline(StandardScaler(), Mine()).fit(*numbers)
    with pytest.raises(ConversionError, match="skl2onnx"):
        to_trainable(fitted, X=numbers[0], run=run)


def test_without_samples_every_step_must_convert(numbers):
    fitted = make_pipeline(Curves(), Ridge()).fit(*numbers)
    with pytest.raises(ConversionError, match="skl2onnx"):
        to_trainable(fitted)
    with pytest.warns(FallbackWarning):
        trainable = to_trainable(fitted, X=numbers[0], run=run)
    assert trainable.entry.sklearn_steps is not None and not trainable.takes_numbers
    assert trainable.trained and trainable.n_features == trainable.entry.sklearn_steps[-1].n_features_out_


COLUMNS = {
    "encoders": [
        ("o", OneHotEncoder(handle_unknown="ignore"), ["city", "kind"]),
        ("n", StandardScaler(), ["age", "fare"]),
    ],
    "whole numbers too": [("o", OneHotEncoder(), ["city", "age"]), ("n", "passthrough", ["fare"])],
    "ordinal": [
        ("o", OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), ["kind", "city"]),
        ("n", "passthrough", ["fare"]),
    ],
    "target": [("t", TargetEncoder(), ["city"]), ("n", StandardScaler(), ["age"])],
    "drop first": [("o", OneHotEncoder(drop="first"), ["city", "kind"]), ("n", MinMaxScaler(), ["fare"])],
    "words": [("w", TfidfVectorizer(), "note"), ("o", OneHotEncoder(), ["kind"])],
    "pairs of words": [("w", CountVectorizer(ngram_range=(1, 2), lowercase=False), "note")],
    "stop words": [("w", TfidfVectorizer(stop_words=["the", "fox"]), "note")],
    "pipelines": [
        ("o", make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()), ["city"]),
        ("n", make_pipeline(SimpleImputer(), StandardScaler()), ["age", "fare"]),
    ],
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", list(COLUMNS))
def test_columns_of_several_kinds_convert(name, dtype, people):
    X, y = people
    fitted = make_pipeline(ColumnTransformer(COLUMNS[name]), StandardScaler(with_mean=False), Ridge()).fit(
        X, y
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        converted = check(fitted, X, dtype)
    read = sorted({column for _, _, columns in COLUMNS[name] for column in np.atleast_1d(columns)})
    assert converted.entry.sklearn_steps is None and sorted(converted.entry.schema.types()) == read


def test_missing_values_convert(people):
    X, y = people[0].copy(), people[1]
    X.loc[::5, "city"] = np.nan
    X.loc[::7, "fare"] = np.nan
    for strategy in ({"strategy": "most_frequent"}, {"strategy": "constant", "fill_value": "?"}):
        text = make_pipeline(SimpleImputer(**strategy), OneHotEncoder())
        columns = ColumnTransformer([("o", text, ["city"]), ("n", SimpleImputer(), ["fare"])])
        assert check(make_pipeline(columns, Ridge()).fit(X, y), X).entry.sklearn_steps is None
    as_category = ColumnTransformer([("o", OneHotEncoder(), ["city"]), ("n", SimpleImputer(), ["fare"])])
    assert check(make_pipeline(as_category, Ridge()).fit(X, y), X).entry.sklearn_steps is None


UNFAITHFUL = {
    "a tokenizer": (TfidfVectorizer(tokenizer=str.split, token_pattern=None), "note", "tokenizer=<method"),
    "an analyzer": (CountVectorizer(analyzer=str.split), "note", "analyzer=<method"),
    "accents": (CountVectorizer(strip_accents="unicode"), "note", "strip_accents='unicode'"),
    "ends of words": (CountVectorizer(token_pattern=r"\b[a-z]+\b"), "note", "token_pattern="),
    "pairs of words": (CountVectorizer(ngram_range=(1, 2), stop_words=["the"]), "note", "stop words"),
    "hashes of pairs": (HashingVectorizer(n_features=32, ngram_range=(1, 2)), "note", "hashes n-grams"),
    "weights of neighbours": (KNNImputer(weights=np.exp), ["fare"], "skl2onnx cannot convert it"),
}


@pytest.mark.parametrize("name", list(UNFAITHFUL))
def test_options_that_onnx_does_not_support(name, people):
    step, columns, reason = UNFAITHFUL[name]
    X, y = people
    fitted = make_pipeline(ColumnTransformer([("it", step, columns)]), Ridge()).fit(X, y)
    with pytest.warns(FallbackWarning, match=reason):
        converted = check(fitted, X)
    assert converted.entry.schema.is_number_matrix
