"""Pipelines are split: steps without an equal ONNX graph stay in scikit-learn."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from onnx import checker
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import StackingRegressor, VotingRegressor
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
    TargetEncoder,
)

from ortlearn.exceptions import ConversionError, FallbackWarning
from ortlearn.models import ModelWriter
from ortlearn.models.transformations.numeric import FUNCTIONS
from ortlearn.preprocessing.column_reading import read_columns
from ortlearn.preprocessing.skl2onnx_steps import append_converted
from ortlearn.trainable.conversion import to_trainable
from ortlearn.trainable.from_estimator import sklearn_to_onnx
from tests.curves import Curves
from tests.preprocessing.graph_runs import run

N_ROWS = 120
CITIES = ["Oslo", "Lima", "Rome"]


class Squares(TransformerMixin, BaseEstimator):
    """A transformer without fitted attributes."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.asarray(X) ** 2


class Names(TransformerMixin, BaseEstimator):
    """A transformer that returns a frame with text."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        side = np.where(np.asarray(X)[:, 0] > 0, "right", "left")
        return pd.DataFrame({"side": side, "far": np.abs(np.asarray(X)[:, 1])})


class Mine(BaseEstimator):
    """An estimator without a definition."""

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        return np.zeros(len(X))


def dense(X):
    return X.toarray() if hasattr(X, "toarray") else X


@pytest.fixture(scope="module")
def numbers():
    X = np.random.RandomState(0).normal(size=(N_ROWS, 3))
    return X, X[:, 0] + X[:, 1] ** 2


@pytest.fixture(scope="module")
def people():
    random = np.random.RandomState(0)
    words = ["the", "quick", "Brown", "fox", "jumps", "don't", "x-ray", "a", "Été", "99", "o_o"]
    X = pd.DataFrame(
        {
            "city": random.choice(CITIES, N_ROWS),
            "kind": pd.Categorical(random.choice(["a", "b"], N_ROWS)),
            "age": random.randint(18, 80, N_ROWS),
            "fare": random.uniform(0, 30, N_ROWS),
            "note": [" ".join(random.choice(words, 5)) for _ in range(N_ROWS)],
        }
    )
    return X, (X["city"] == "Oslo") + X["age"] / 30 + X["note"].str.contains("fox")


def check(fitted, X, dtype=np.float32):
    """Check that a graph predicts like its estimator, and return the trainable model."""
    trainable = to_trainable(fitted, X=X, dtype=dtype, run=run)
    model = trainable.with_weights(trainable.initial_weights())
    checker.check_model(model)
    rows = X if trainable.entry.sklearn_steps is None else trainable.entry.sklearn_steps.transform(X)
    got = run(model, read_columns(dense(rows), trainable.entry.schema)).ravel()
    np.testing.assert_allclose(got, fitted.predict(X), rtol=1e-4, atol=1e-5)
    return trainable


def product(a, b):
    """A kernel of a user."""
    return float(a @ b) ** 2


STAY = {
    "spline": (make_pipeline(Curves(), Ridge()), "curves", 1),
    "in the middle": (
        make_pipeline(StandardScaler(), Nystroem(product, n_components=10), MinMaxScaler(), Ridge()),
        "nystroem",
        2,
    ),
    "the last of two": (
        make_pipeline(Curves(), PCA(5), FunctionTransformer(np.cbrt), PCA(3), Ridge()),
        "functiontransformer",
        3,
    ),
    "without fitted attributes": (make_pipeline(StandardScaler(), Squares(), Ridge()), "squares", 2),
    "in a union": (make_pipeline(make_union(PCA(2), Curves()), Ridge()), "featureunion", 1),
    "in columns": (
        make_pipeline(ColumnTransformer([("s", Curves(), [1])]), StandardScaler(), Ridge()),
        "columntransformer",
        1,
    ),
    "in a pipeline at the end": (
        make_pipeline(StandardScaler(), make_pipeline(Curves(), Ridge())),
        "curves",
        2,
    ),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", list(STAY))
def test_step_without_converter(name, dtype, numbers):
    model, step, n_steps = STAY[name]
    fitted = model.fit(*numbers)
    with pytest.warns(FallbackWarning, match=f"Step '{step}' .* stays in scikit-learn") as caught:
        converted = check(fitted, numbers[0], dtype)
    assert len(caught) == 1
    assert len(converted.entry.sklearn_steps.steps) == n_steps and converted.entry.schema.float_dtype == dtype
    assert str(converted.entry.schema.n_features) in str(caught[0].message)
    assert pickle.loads(pickle.dumps(converted.entry.sklearn_steps)).transform(numbers[0]).shape[0] == N_ROWS


def bent(number):
    return ColumnTransformer([("scale", StandardScaler(), ["b"]), ("bend", Curves(), [number])])


INNER = {
    "columns by name": bent("a"),
    "a pipeline": ColumnTransformer([("all", make_pipeline(StandardScaler(), Curves()), ["a", "b"])]),
    "a union": make_union(StandardScaler(), Curves()),
    "columns in columns": make_pipeline(ColumnTransformer([("deep", bent("b"), ["a", "b"])])),
    "remainder": ColumnTransformer([("scale", StandardScaler(), ["b"])], remainder=Curves()),
}


@pytest.mark.parametrize("name", INNER)
def test_error_names_the_step(name, numbers):
    frame = pd.DataFrame(numbers[0][:, :2], columns=["a", "b"])
    fitted = make_pipeline(INNER[name], Ridge()).fit(frame, numbers[1])
    with pytest.warns(FallbackWarning) as caught:
        assert to_trainable(fitted, X=frame, run=run).entry.sklearn_steps is not None
    (text,) = (str(warning.message) for warning in caught)
    assert "because of Curves in it: neither ortlearn nor skl2onnx converts it to ONNX" in text
    assert "declare a model definition of Curves" in text


def test_unsupported_part_is_named_among_encoders(people):
    parts = [("code", OrdinalEncoder(), ["city"]), ("bag", CountVectorizer(strip_accents="ascii"), "note")]
    fitted = make_pipeline(ColumnTransformer(parts), Ridge()).fit(*people)
    with pytest.warns(FallbackWarning, match="because of CountVectorizer in it: CountVectorizer cannot"):
        to_trainable(fitted, X=people[0], run=run)


def test_documents_of_a_column_are_named(people):
    words = ColumnTransformer([("bag", HashingVectorizer(n_features=8, ngram_range=(1, 2)), "note")])
    fitted = make_pipeline(words, Ridge()).fit(*people)
    with pytest.warns(FallbackWarning, match="because of HashingVectorizer in it"):
        to_trainable(fitted, X=people[0], run=run)


# Rows of one encoder: three of them numbers that float32 rounds, one missing.
FLOATS = pd.DataFrame({"g": [1.1, 2.7, np.nan, 2.7] * 20, "f": np.linspace(1e6, 2e6, 80)})


@pytest.mark.parametrize("unknown", [{}, {"handle_unknown": "use_encoded_value", "unknown_value": -1}])
def test_numbers_are_categories_as_float32_has_them(unknown):
    encoder = OrdinalEncoder(encoded_missing_value=-5, **unknown)
    columns = ColumnTransformer([("codes", encoder, ["g"]), ("scale", StandardScaler(), ["f"])])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (
            check(make_pipeline(columns, Ridge()).fit(FLOATS, np.arange(80)), FLOATS).entry.sklearn_steps
            is None
        )


def test_members_that_select_their_columns(people):
    X, y = people
    members = [
        (str(i), make_pipeline(ColumnTransformer([("o", OneHotEncoder(), [name])], remainder=rest), Ridge()))
        for i, (name, rest) in enumerate([("city", "drop"), ("kind", "drop")])
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        converted = check(VotingRegressor(members).fit(X, y), X)
    assert list(converted.entry.schema.types()) == ["city", "kind"] and converted.entry.sklearn_steps is None
    assert check(StackingRegressor(members).fit(X, y), X).entry.sklearn_steps is None


def test_members_that_select_numbers(people):
    X, y = people[0][["age", "fare"]], people[1]
    inner = make_pipeline(ColumnTransformer([("n", StandardScaler(), ["age"])]), Ridge())
    assert check(StackingRegressor([("a", inner), ("b", Ridge())]).fit(X, y), X).entry.schema.is_number_matrix


def test_supported_steps_are_not_split_off(numbers):
    fitted = make_pipeline(StandardScaler(), PolynomialFeatures(), Normalizer(), PCA(4), Ridge()).fit(
        *numbers
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        converted = check(fitted, numbers[0])
    assert converted.entry.sklearn_steps is None


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


def test_without_rows_every_step_must_convert(numbers):
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


def test_functions_of_skl2onnx_stay_in_scikit_learn(numbers):
    with pytest.raises(ConversionError, match="functions of other opsets"):
        append_converted(ModelWriter(), KNNImputer().fit(numbers[0]), "X")


def test_after_a_frame_of_several_kinds(numbers):
    columns = ColumnTransformer([("o", OneHotEncoder(), ["side"]), ("n", StandardScaler(), ["far"])])
    fitted = make_pipeline(Names(), columns, Ridge()).fit(*numbers)
    with pytest.warns(FallbackWarning, match="Step 'names'"):
        converted = check(fitted, numbers[0])
    assert list(converted.entry.schema.types()) == ["side", "far"]


def test_texts_beyond_ascii():
    texts = ["Ångström und Über", "naïve café", "ПРИВЕТ мир", "中文 字符", "x2 y3 _z", "don't re-do"] * 4
    y = np.arange(len(texts)) % 5
    fitted = make_pipeline(CountVectorizer(), Ridge()).fit(texts, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check(fitted, texts).entry.sklearn_steps is None


def test_classes_and_names_are_kept(people):
    X, y = people
    pipeline = Pipeline(
        [("columns", ColumnTransformer([("s", Curves(), ["fare"])])), ("it", LogisticRegression())]
    )
    with pytest.warns(FallbackWarning, match="Step 'columns'"):
        trainable = to_trainable(pipeline.fit(X, np.where(y > y.mean(), "hi", "lo")), X=X, run=run)
    assert trainable.scores.classes.tolist() == ["hi", "lo"]
    assert trainable.origin == "LogisticRegression (step 'it')" and trainable.entry.selects_by_name
