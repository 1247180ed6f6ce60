"""Column transformers and unions of frames and arrays: selection, nesting and passthrough columns."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from onnx import checker
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    BaggingRegressor,
    HistGradientBoostingRegressor,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler

from ortlearn import OrtGradientOptimizer
from ortlearn.trainable.conversion import to_trainable

RNG = np.random.RandomState(0)
N = 60
FRAME = pd.DataFrame(
    {
        "city": RNG.choice(["Oslo", "Lima", "Rome"], N),
        "kind": pd.Categorical(RNG.choice(["a", "b"], N)),
        "age": RNG.randint(18, 80, N),
        "fare": np.where(RNG.uniform(size=N) < 0.1, np.nan, RNG.uniform(0, 30, N)),
        "member": RNG.uniform(size=N) > 0.5,
        "note": [" ".join(RNG.choice(["red", "Green", "blue", "x"], 4)) for _ in range(N)],
    }
)
Y = (FRAME["city"] == "Oslo") + FRAME["age"] / 30 + FRAME["note"].str.count("red")
SCALE, ENCODE = StandardScaler(), OneHotEncoder(handle_unknown="ignore")
FILL = SimpleImputer()
INNER = ColumnTransformer([("first", SCALE, [0])], remainder="passthrough")

#: Steps of a ColumnTransformer, and its other parameters.
COLUMNS = {
    "names": ([("e", ENCODE, ["city", "kind"]), ("n", make_pipeline(FILL, SCALE), ["fare", "age"])], {}),
    "positions": ([("e", ENCODE, [1, 0]), ("n", FILL, [-3, 2])], {}),
    "slices": ([("e", ENCODE, slice(0, 2)), ("n", FILL, slice("age", "member"))], {}),
    "masks": ([("e", ENCODE, [True] + [False] * 5), ("n", FILL, np.arange(6) == 3)], {}),
    "callables": (
        [
            ("e", ENCODE, make_column_selector(dtype_include="category")),
            ("n", FILL, make_column_selector(dtype_include=np.number)),
            ("none", SCALE, make_column_selector("nothing is called that")),
        ],
        {},
    ),
    "remainder passes": (
        [("e", ENCODE, ["city", "kind"]), ("d", "drop", ["note", "fare"])],
        {"remainder": "passthrough"},
    ),
    "remainder is scaled": (
        [("e", ENCODE, ["city", "kind", "note"])],
        {"remainder": make_pipeline(FILL, SCALE)},
    ),
    "weights of transformers": (
        [
            ("e", ENCODE, ["city"]),
            ("n", "passthrough", ["age", "member"]),
            ("d", "drop", ["kind", "fare", "note"]),
        ],
        {"transformer_weights": {"e": 0.3, "n": 2}},
    ),
    "one column twice": ([("e", ENCODE, ["age"]), ("n", SCALE, ["age"]), ("m", MinMaxScaler(), ["age"])], {}),
    "unions": (
        [
            (
                "n",
                make_pipeline(FILL, make_union(SCALE, PCA(1), "passthrough"), MinMaxScaler()),
                ["age", "fare"],
            ),
            ("e", make_union(ENCODE, OrdinalEncoder()), ["city", "kind"]),
        ],
        {},
    ),
    "passthrough pipelines": (
        [
            ("p", make_pipeline("passthrough"), ["age"]),
            ("q", make_pipeline(FILL, make_union(make_pipeline("passthrough"), PCA(1))), ["fare", "age"]),
        ],
        {},
    ),
    "columns in columns": (
        [("c", make_pipeline(FILL, make_union(INNER, MinMaxScaler())), ["fare", "age", "member"])],
        {},
    ),
    "columns of several kinds in columns": (
        [("c", ColumnTransformer([("n", SCALE, ["age"]), ("e", ENCODE, ["city"])]), ["kind", "city", "age"])],
        {},
    ),
    "text": ([("t", TfidfVectorizer(), "note"), ("u", CountVectorizer(), 0), ("n", SCALE, ["age"])], {}),
}


def columns(name, *steps):
    transformers, options = COLUMNS[name]
    return make_pipeline(ColumnTransformer(transformers, sparse_threshold=0, **options), *steps, Ridge())


@pytest.mark.sweep(13)
@pytest.mark.parametrize("name", COLUMNS)
def test_selections_and_nestings(name, check_graph):
    dtype = (np.float32, np.float64)[list(COLUMNS).index(name) % 2]
    model = columns(name).fit(FRAME, Y)
    backwards = FRAME[FRAME.columns[::-1]].assign(more="an unused column")
    # scikit-learn selects by position only if the columns have the order of the fit
    check_graph(
        model, FRAME, FRAME.iloc[:1], *([] if name in ("positions", "masks") else [backwards]), dtype=dtype
    )


@pytest.mark.parametrize("name", ["names", "remainder is scaled", "text"])
def test_polars(name, check_graph):
    frame = pl.DataFrame({c: FRAME[c].tolist() for c in FRAME}).with_columns(pl.col("fare").fill_nan(None))
    check_graph(columns(name).fit(frame, Y), frame, frame[:3], frame.select(frame.columns[::-1]))


def test_arrays_of_objects(check_graph):
    X = FRAME.to_numpy(dtype=object)
    steps = [("e", ENCODE, [1, 0]), ("n", make_pipeline(FILL, SCALE), [3, 2]), ("t", TfidfVectorizer(), 5)]
    model = make_pipeline(ColumnTransformer(steps), Ridge()).fit(X, Y)
    check_graph(model, X, X[:2])


@pytest.mark.parametrize("side_by_side", [False, True])
def test_passthrough_text_is_read_by_later_steps(side_by_side, check_graph):
    first = ColumnTransformer(
        [("p", "passthrough", ["city", "note"]), ("n", FILL, ["fare"]), ("m", "passthrough", ["age"])]
    )
    if side_by_side:
        first = FeatureUnion([("all", first), ("again", ColumnTransformer([("p", "passthrough", ["kind"])]))])
    later = ColumnTransformer(
        [("e", ENCODE, [0]), ("t", TfidfVectorizer(), 1), ("n", SCALE, [2, 3])], sparse_threshold=0
    )
    check_graph(make_pipeline(first, later, Ridge()).fit(FRAME, Y), FRAME, FRAME.iloc[:2])


@pytest.mark.parametrize(
    "pattern, found",
    [
        (
            "columns.named_transformers_['n']['scale'].mean_",
            ["columns: named_transformers_['n']['scale'].mean_"],
        ),
        (
            "columns__n",
            [
                "columns: named_transformers_['n']['fill'].statistics_",
                "columns: named_transformers_['n']['scale'].mean_",
                "columns: named_transformers_['n']['scale'].scale_",
            ],
        ),
        (
            ["columns__n__fill", "coef_"],
            ["columns: named_transformers_['n']['fill'].statistics_", "ridge: coef_"],
        ),
        ("*['t']*idf_", ["columns: named_transformers_['t']._tfidf.idf_"]),
    ],
)
def test_selected_weights_are_trained(pattern, found):
    scaled = Pipeline([("fill", FILL), ("scale", SCALE)])
    steps = [("n", scaled, ["age", "fare"]), ("t", TfidfVectorizer(), "note")]
    model = Pipeline([("columns", ColumnTransformer(steps)), ("ridge", Ridge())]).fit(FRAME, Y)
    assert sorted(to_trainable(model, X=FRAME).origins().values()) == ["ridge: coef_", "ridge: intercept_"]
    assert sorted(to_trainable(model, pattern, X=FRAME).origins().values()) == found


SOME = [("e", ENCODE, ["city"]), ("n", SCALE, ["age"])]
SOME_KINDS = [("e", ENCODE, ["kind"]), ("n", SCALE, ["age"])]
OTHER = ColumnTransformer([("n", make_pipeline(FILL, SCALE), ["fare"])])
MEMBERS = {
    "votes": lambda first, last: VotingRegressor(
        [("a", make_pipeline(first, last)), ("b", make_pipeline(OTHER, last))]
    ),
    "stack": lambda first, last: StackingRegressor([("a", make_pipeline(first, last))], cv=2),
    "one vs rest": lambda first, last: OneVsRestClassifier(make_pipeline(first, LogisticRegression())),
}


@pytest.mark.parametrize("remainder", ["drop", "passthrough", FILL], ids=str)
@pytest.mark.parametrize("name", MEMBERS)
def test_members_that_select_their_columns(name, remainder, check_graph):
    X = FRAME[["city", "age", "fare"]].fillna({"fare": 1.0})
    model = MEMBERS[name](ColumnTransformer(SOME, remainder=remainder), Ridge())
    model.fit(X, np.digitize(Y, [1, 3]) if name == "one vs rest" else Y)
    trainable = check_graph(model, X, X[X.columns[::-1]])
    reads_all = name == "votes" or remainder != "drop"
    assert set(trainable.entry.schema.types()) == ({*X} if reads_all else {"city", "age"})


def test_members_with_and_without_a_selection_of_columns(check_graph):
    X = FRAME[["kind", "age", "fare"]]
    boosting = HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=3)
    pipeline = make_pipeline(ColumnTransformer(SOME_KINDS), Ridge())
    model = VotingRegressor([("a", boosting), ("b", pipeline), ("c", boosting)]).fit(X, Y)
    kinds = X["kind"].cat.set_categories(["a", "b", "z"]).mask(np.arange(N) % 5 == 0, "z")
    check_graph(model, X, X.assign(kind=kinds))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_bagged_pipelines_that_select_by_position(check_graph):
    columns = ColumnTransformer([("e", ENCODE, [0]), ("n", SCALE, [2])])
    model = BaggingRegressor(make_pipeline(columns, Ridge()), n_estimators=3, random_state=0)
    check_graph(model.fit(FRAME, Y), FRAME)


def test_unknown_categories_of_a_member_are_refused():
    X = FRAME[["city", "kind"]]
    members = [make_pipeline(OneHotEncoder(), Ridge()), make_pipeline(OrdinalEncoder(), Ridge())]
    model = VotingRegressor(list(zip("ab", members, strict=True))).fit(X, Y)
    ours = OrtGradientOptimizer(model, warm_start=True, max_iter=1, learning_rate=1e-9).fit(X, Y)
    np.testing.assert_allclose(ours.predict(X), model.predict(X), rtol=1e-4)
    with pytest.raises(ValueError, match=r"unknown categories \['Bonn'\] in column 'city'"):
        ours.predict(X.assign(city="Bonn"))


@pytest.mark.parametrize("last", [Ridge(), LogisticRegression()], ids=str)
def test_columns_with_the_names_of_outputs(last, check_graph):
    names = ["label", "probabilities", "variable", "coef"]
    X = pd.DataFrame(RNG.normal(size=(N, 4)), columns=names)
    steps = [("n", SCALE, names[::-1]), ("p", make_pipeline("passthrough"), ["coef"])]
    model = make_pipeline(ColumnTransformer(steps), last).fit(X, X["label"] > 0)
    checker.check_model(check_graph(model, X, X[names[::-1]]).model, full_check=True)


def test_a_stack_passes_columns_that_no_member_reads(check_graph):
    X = FRAME[["age", "member"]].astype(float)
    member = make_pipeline(ColumnTransformer([("n", SCALE, ["age"])]), Ridge())
    check_graph(StackingRegressor([("a", member)], passthrough=True, cv=2).fit(X, Y), X)


def test_passthrough_columns_of_an_array(check_graph):
    X = RNG.normal(size=(N, 3))
    nothing = make_pipeline(make_pipeline("passthrough"))
    steps = ColumnTransformer([("p", nothing, [1]), ("s", make_pipeline(SCALE, nothing), [2, 0])])
    check_graph(make_pipeline(steps, make_union(nothing, PCA(1)), Ridge()).fit(X, Y), X)
