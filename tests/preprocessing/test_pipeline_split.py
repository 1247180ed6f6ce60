"""Pipelines are split: steps without an equal ONNX graph stay in scikit-learn."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import StackingRegressor, VotingRegressor
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.impute import KNNImputer
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
)

from ortlearn.exceptions import ConversionError, FallbackWarning
from ortlearn.models import ModelWriter
from ortlearn.preprocessing.skl2onnx_steps import append_converted
from ortlearn.trainable.conversion import to_trainable
from tests.curves import Curves
from tests.preprocessing.graph_runs import run
from tests.preprocessing.pipeline_steps import N_SAMPLES, Names, Squares, check, product

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
    assert (
        pickle.loads(pickle.dumps(converted.entry.sklearn_steps)).transform(numbers[0]).shape[0] == N_SAMPLES
    )


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
