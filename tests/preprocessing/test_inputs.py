"""Inputs of a graph depend on the types of the columns and on the steps that read them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from onnx import TensorProto, parser
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.ensemble import VotingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)

from ortlearn.exceptions import ConversionError
from ortlearn.graphs import TensorType, value_types
from ortlearn.preprocessing.column_reading import read_columns
from ortlearn.preprocessing.columns import column_kind, count_samples, with_new_columns
from ortlearn.preprocessing.missing import accepts_missing, missing_columns
from ortlearn.preprocessing.readers import first_readers, selected_names
from ortlearn.preprocessing.schema import graph_inputs, input_schema, schema_of_graph

FLOAT, DOUBLE, INT64, STRING = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.STRING


@pytest.fixture
def frame():
    """A column of each kind."""
    return pd.DataFrame(
        {
            "city": ["Oslo", "Lima", None, "Oslo"],
            "age": [30, 40, 50, 60],
            "fare": [1.5, np.nan, 2.5, 3.5],
            "member": [True, False, True, True],
            "class": pd.Categorical(["a", "b", "a", "b"]),
            "day": pd.date_range("2026-01-01", periods=4),
        }
    )


def inputs(schema):
    return {item.name: item.known.elem_type for item in schema.inputs}


KINDS = {
    "float": np.array([1.0, np.nan]),
    "integer": np.array([1, 2]),
    "bool": np.array([True, False]),
    "text": np.array(["a", "b"]),
}
OBJECTS = [
    (["a", None], "text"),
    (["a", np.nan, pd.NA], "text"),
    ([1, 2], "integer"),
    ([1, None], "float"),
    ([1, pd.NA], "float"),
    ([1.5, 2], "float"),
    ([True, False], "bool"),
    ([True, None], "float"),
    ([None, None], "float"),
    (["a", 1], "other"),
    ([b"a", b"b"], "other"),
    ([(1,), (2,)], "other"),
]


@pytest.mark.parametrize("kind", list(KINDS))
def test_kinds(kind):
    assert column_kind(KINDS[kind]) == kind
    assert column_kind(KINDS[kind].astype(object)) == ("float" if kind == "float" else kind)


@pytest.mark.parametrize("values, kind", OBJECTS)
def test_kinds_of_objects(values, kind):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    assert column_kind(array) == kind


@pytest.mark.parametrize("values", [pd.date_range("2026", periods=2), pd.timedelta_range("1D", periods=2)])
def test_dates_are_not_numbers(values):
    assert column_kind(np.asarray(values)) == "other"


NUMBERS = {
    "floats": np.ones((5, 3)),
    "integers": np.ones((5, 3), dtype=np.int64),
    "list": [[1, 2, 3]] * 5,
    "objects": np.ones((5, 3), dtype=object),
    "sparse": scipy.sparse.csr_matrix(np.ones((5, 3))),
    "frame of floats": pd.DataFrame(np.ones((5, 3)), columns=["a", "b", "c"]),
    "frame of numbers": pd.DataFrame({"a": [1] * 5, "b": [True] * 5, "c": [0.5] * 5}),
    "nullable": pd.DataFrame({c: pd.array([1, None, 2, 3, 4], dtype="Int64") for c in "abc"}),
    "polars": pl.DataFrame({"a": [1, 2], "b": [0.5, 1.5], "c": [True, False]}),
}


@pytest.mark.parametrize("dtype, elem_type", [(np.float32, FLOAT), (np.float64, DOUBLE)])
@pytest.mark.parametrize("form", list(NUMBERS))
def test_numeric_columns_are_one_matrix(form, dtype, elem_type):
    schema = input_schema(NUMBERS[form], StandardScaler(), dtype)
    assert schema.is_number_matrix and schema.n_features == 3
    assert schema.types() == {"X": TensorType(elem_type, (None, 3))}


def test_a_column_of_each_kind(frame):
    encoders = make_column_transformer(
        (OneHotEncoder(), ["city", "class", "age"]), (StandardScaler(), ["fare", "member"])
    ).fit(frame)
    schema = input_schema(frame, encoders)
    # what an encoder reads keeps its kind, what is computed with is a number; a date is read by nobody
    assert inputs(schema) == {"city": STRING, "age": INT64, "fare": FLOAT, "member": FLOAT, "class": STRING}
    assert (schema.n_features, schema.by_name, schema.is_matrix) == (6, True, False)
    assert schema.input_of_column() == dict(enumerate(["city", "age", "fare", "member", "class"]))


def test_dates_read_by_a_step(frame):
    with pytest.raises(ConversionError, match="Column 'day' of X has values other than numbers or text"):
        input_schema(frame, OneHotEncoder().fit(frame))


def test_large_integers_are_not_rounded():
    X = pd.DataFrame({"id": [2**24 + 1, 2**24 + 2], "size": [1.0, 2.0]})
    encoder = ColumnTransformer([("id", OneHotEncoder(), [0])], remainder="passthrough").fit(X.to_numpy())
    assert inputs(input_schema(X.set_axis([0, 1], axis=1), encoder)) == {"X0": INT64, "X1": FLOAT}
    assert input_schema(X.set_axis([0, 1], axis=1), encoder, np.float64).is_number_matrix
    small = X.assign(id=[1, 2]).set_axis([0, 1], axis=1)
    assert input_schema(small, encoder).is_number_matrix


def test_arrays_and_lists_of_text():
    texts = np.array([["a", "b"], ["c", "d"]])
    assert input_schema(texts, OneHotEncoder().fit(texts)).types() == {"X": TensorType(STRING, (None, 2))}
    mixed = [["a", 1], ["b", 2]]
    assert inputs(input_schema(mixed, OneHotEncoder().fit(mixed))) == {"X0": STRING, "X1": INT64}
    documents = ["the quick fox", "jumps"]
    for form in (documents, np.array(documents), pd.Series(documents)):
        assert input_schema(form, None).types() == {"X": TensorType(STRING, (None, 1))}


def test_names_of_inputs():
    X = pd.DataFrame([["a", "b"]], columns=["", 3])
    assert list(inputs(input_schema(X, OneHotEncoder().fit(X.to_numpy())))) == ["X0", "X1"]
    X = pd.DataFrame([["a", "b"]], columns=["one two", "é.ß"])
    assert list(inputs(input_schema(X, OneHotEncoder().fit(X)))) == ["one two", "é.ß"]


def test_duplicate_column_names():
    X = pd.DataFrame([["a", "b"]], columns=["a", "a"])
    with pytest.raises(ValueError, match=r"several columns named \['a'\]"):
        input_schema(X, OneHotEncoder().fit(X.to_numpy()))


def test_wrong_number_of_columns():
    with pytest.raises(ValueError, match="X has 2 features, but the model to train is expecting 3 features"):
        input_schema(np.ones((4, 2)), Ridge().fit(np.ones((4, 3)), np.ones(4)))


def readers(estimator, n_columns):
    found = first_readers(estimator, range(n_columns))
    return [(r.position, type(r.step).__name__, r.index, r.imputed) for r in found]


def test_readers_of_nested_steps(frame):
    inner = make_column_transformer((StandardScaler(), ["fare"]), ("passthrough", ["age"]))
    text = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())
    model = make_pipeline(
        "passthrough",
        make_column_transformer((text, ["class", "city"]), (inner, ["age", "fare"]), ("drop", ["day"])),
        Ridge(),
    )
    X = frame.assign(city=["a", "b", np.nan, "c"])
    model[:-1].fit(X)
    assert readers(model, 6) == [
        (4, "OneHotEncoder", 0, True),
        (0, "OneHotEncoder", 1, True),
        (2, "StandardScaler", 0, False),
        (1, "NoneType", 0, False),
    ]
    assert selected_names(model) is not None and selected_names(StandardScaler()) is None


def test_readers_of_unions_and_imputers_that_add_columns():
    X = np.array([[1.0, np.nan], [2.0, 3.0]])
    union = make_union(SimpleImputer(), make_pipeline(FunctionTransformer(), PolynomialFeatures()))
    union = union.fit(np.ones((2, 2)))
    names = [(0, "SimpleImputer"), (1, "SimpleImputer"), (0, "PolynomialFeatures"), (1, "PolynomialFeatures")]
    assert [entry[:2] for entry in readers(union, 2)] == names
    flagged = make_pipeline(SimpleImputer(add_indicator=True), OneHotEncoder()).fit(X)
    assert {entry[1] for entry in readers(flagged, 2)} == {"SimpleImputer"}


@pytest.mark.parametrize(
    "columns",
    [["fare", "age"], [2, 1], slice(1, 3), [False, True, True, False], make_column_selector("fare|age")],
)
def test_ways_to_select_columns(columns, frame):
    X = frame[["city", "age", "fare", "class"]]
    fitted = ColumnTransformer([("n", StandardScaler(), columns)]).fit(X)
    assert {position for position, *_ in readers(fitted, 4)} == {1, 2}
    assert inputs(input_schema(X, fitted)) == {"age": FLOAT, "fare": FLOAT}


def test_conversion_to_input_types(frame):
    schema = schema_of_graph(
        {
            "fare": TensorType(FLOAT, ("N", 1)),
            "city": TensorType(STRING, ("N", 1)),
            "age": TensorType(INT64, ("N",)),
            "member": TensorType(DOUBLE, ("N", 1)),
            "class": TensorType(STRING, ("N",)),
        }
    )
    columns = read_columns(frame.iloc[:3], schema)
    assert [a.dtype.name for a in columns.values()] == ["float32", "object", "int64", "float64", "object"]
    assert [a.shape for a in columns.values()] == [(3, 1), (3, 1), (3,), (3, 1), (3,)]
    np.testing.assert_array_equal(columns["fare"].ravel(), np.array([1.5, np.nan, 2.5], np.float32))
    assert columns["city"].ravel().tolist()[:2] == ["Oslo", "Lima"]
    assert columns["member"].ravel().tolist() == [1.0, 0.0, 1.0]
    assert columns["class"].tolist() == ["a", "b", "a"]


def test_missing_texts():
    schema = schema_of_graph({"a": TensorType(STRING, ("N", 1)), "b": TensorType(STRING, ("N", 1))})
    values = np.array([None, np.nan, pd.NA, "x", 3], dtype=object)
    columns = read_columns({"a": values, "b": np.array(["x"] * 5)}, schema)
    assert columns["a"].ravel().tolist() == ["None", "nan", "nan", "x", "3"]


def test_polars_and_dictionaries(frame):
    schema = schema_of_graph({"n": TensorType(FLOAT, ("N", 1)), "t": TensorType(STRING, ("N", 1))})
    polars = pl.DataFrame({"t": ["a", None], "n": [None, 2], "other": [1, 2]})
    for X in (polars, {"t": ["a", None], "n": [None, 2]}):
        columns = read_columns(X, schema)
        assert columns["t"].ravel().tolist() == ["a", "None"]
        np.testing.assert_array_equal(columns["n"], np.array([[np.nan], [2]], np.float32))
    assert count_samples(polars) == count_samples({"a": [1, 2]}) == 2
    with pytest.raises(ValueError, match="differ in length"):
        count_samples({"a": [1, 2], "b": [1]})


BAD = [
    ({"n": [1.0]}, r"Columns are missing: \['t'\]; X has \['n'\]"),
    ({"n": ["x"], "t": ["a"]}, "Column 'n' of X must hold numbers, but contains 'x'"),
    ({"n": [[1.0, 2.0]], "t": ["a"]}, r"Column 'n' of X has the shape \(1, 2\)"),
]


@pytest.mark.parametrize("X, message", BAD)
def test_incompatible_columns(X, message):
    schema = schema_of_graph({"n": TensorType(FLOAT, ("N", 1)), "t": TensorType(STRING, ("N", 1))})
    with pytest.raises(ValueError, match=message):
        read_columns(X, schema)


@pytest.mark.parametrize("values", [[1.5, 2.0], [np.nan, 1.0]])
def test_integers_are_preserved(values):
    schema = schema_of_graph({"i": TensorType(INT64, ("N", 1)), "j": TensorType(INT64, ("N", 1))})
    assert read_columns({"i": [1.0, 2.0], "j": [3, 4]}, schema)["i"].dtype == np.int64
    with pytest.raises(ValueError, match="Column 'i' of X had integers when"):
        read_columns({"i": values, "j": [1, 2]}, schema)


def test_unknown_categories(frame):
    X = frame[["city", "age"]].fillna("?")
    for encoder in (OneHotEncoder(), OrdinalEncoder()):
        schema = input_schema(X, encoder.fit(X))
        assert len(read_columns(X, schema)) == 2
        with pytest.raises(ValueError, match=r"unknown categories \['Rome'\] in column 'city'"):
            read_columns(X.assign(city="Rome"), schema)
    lenient = OneHotEncoder(handle_unknown="ignore").fit(X)
    assert len(read_columns(X.assign(city="Rome"), input_schema(X, lenient))) == 2


def test_filled_missing_categories(frame):
    X = pd.DataFrame({"city": ["Oslo", np.nan, "Lima"]})
    filled = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()).fit(X)
    assert read_columns(X, input_schema(X, filled))["city"].ravel().tolist() == ["Oslo", "nan", "Lima"]
    complete = X.dropna()
    schema = input_schema(complete, OneHotEncoder().fit(complete))
    with pytest.raises(ValueError, match="unknown categories"):
        read_columns(X, schema)


def test_new_columns(frame):
    def shout(key, values, kind):
        return [str(v).upper() for v in values] if kind == "text" else values

    for X in (frame, pl.DataFrame({"city": ["Oslo", "Lima"], "age": [1, 2]})):
        new = with_new_columns(X, shout)
        assert type(new) is type(X) and list(new.columns) == list(X.columns)
        assert list(new["city"])[:2] == ["OSLO", "LIMA"] and list(X["city"])[0] == "Oslo"


def test_new_columns_of_categories():
    X = pd.DataFrame({"c": pd.Categorical(["u", "v"]), "i": pd.Categorical([3, 4])}, index=[7, 9])
    same = with_new_columns(X, lambda key, values, kind: values)
    pd.testing.assert_frame_equal(same, X)
    gone = with_new_columns(X, lambda key, values, kind: np.full(len(values), np.nan))
    assert list(gone.dtypes) == list(X.dtypes) and gone.isna().all(axis=None)
    others = with_new_columns(X, lambda key, values, kind: ["w"] * len(values))
    assert others["c"].tolist() == ["w", "w"]


def test_inputs_of_graphs():
    model = parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
        g (float[N,2] x, string[N] s, float[N] label) => (float[N,2] y) <float k = {1}>
        { y = Add (x, k) }""")
    assert list(graph_inputs(model, value_types(model), "label")) == ["x", "s"]
    bad = parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
        g (complex64[N] x) => (complex64[N] y) { y = Identity (x) }""")
    with pytest.raises(ConversionError, match="Input 'x' of the graph must be a tensor of numbers or text"):
        graph_inputs(bad, value_types(bad), None)
    del model.graph.input[:]
    with pytest.raises(ConversionError, match="no input"):
        graph_inputs(model, {}, None)


AROUND = {
    "an idle step": lambda model: make_pipeline("passthrough", model),
    "a pipeline of one": lambda model: make_pipeline(make_pipeline("passthrough", model)),
    "calibration": lambda model: CalibratedClassifierCV(model, cv=2),
    "a search": lambda model: GridSearchCV(make_pipeline("passthrough", model), {}, cv=2),
    "a vote": lambda model: VotingClassifier([("a", make_pipeline("passthrough", model))]),
}


@pytest.mark.parametrize("library", [pd, pl])
@pytest.mark.parametrize("around", list(AROUND))
def test_input_names_follow_the_selection(library, around):
    X = library.DataFrame({"a": range(12), "b": list("xyxy") * 3, "c": [1.0, 0.0, 1.0, 0.0] * 3})
    columns = make_column_transformer((OneHotEncoder(), ["b"]), (StandardScaler(), ["c"]))
    model = AROUND[around](make_pipeline(columns, LogisticRegression())).fit(X, [0, 1, 1, 0] * 3)
    schema = input_schema(X[["c", "b", "a"]], model)
    assert schema.n_features == 3 and [item.column for item in schema.inputs] == ["b", "c"]


def _second_imputed():
    columns = ColumnTransformer([("i", SimpleImputer(), [1])], remainder="passthrough")
    return make_pipeline(columns, LogisticRegression())


def _second_only():
    return make_pipeline(ColumnTransformer([("b", SimpleImputer(), [1])]), LogisticRegression())


MISSING = {
    "imputed": (make_pipeline(SimpleImputer(), Ridge()), True, {0, 1}),
    "only scaled": (make_pipeline(StandardScaler(), Ridge()), False, set()),
    "one of two": (
        make_pipeline(ColumnTransformer([("i", SimpleImputer(), [1])], remainder="passthrough"), Ridge()),
        True,
        {1},
    ),
    "members": (VotingClassifier([("a", _second_imputed()), ("b", _second_only())]), True, {1}),
    "a union": (
        make_pipeline(
            make_union(
                ColumnTransformer([("n", Normalizer(), [0])]),
                ColumnTransformer([("i", SimpleImputer(), [1])]),
            ),
            Ridge(),
        ),
        True,
        {1},
    ),
    "a wrapper": (OneVsRestClassifier(_second_imputed()), True, {1}),
    "neither": (LogisticRegression(), False, set()),
}


@pytest.mark.parametrize("name", list(MISSING))
def test_steps_that_accept_missing_values(name):
    model, by_tags, expected = MISSING[name]
    X = np.random.RandomState(0).normal(size=(20, 2))
    fitted = model.fit(X, (X[:, 0] > 0).astype(int))
    assert accepts_missing(fitted) is by_tags
    for form in (X, X.tolist(), scipy.sparse.csr_matrix(X) if name == "neither" else X, pd.DataFrame(X)):
        assert missing_columns(fitted, form) == expected
