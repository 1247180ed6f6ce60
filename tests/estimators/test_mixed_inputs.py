"""Frames of several kinds, missing values, steps in scikit-learn, ONNX files of several inputs."""

import pickle
import warnings

import numpy as np
import onnxruntime
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from onnx import parser
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import LinearSVC

from ortlearn.estimators import row_chunks
from ortlearn.exceptions import ConversionError, FallbackWarning
from tests.curves import Curves

N_ROWS = 160


@pytest.fixture(scope="module")
def people():
    """Six columns of four kinds; what they pay."""
    random = np.random.RandomState(0)
    words = ["late", "early", "Window", "aisle", "Été"]
    X = pd.DataFrame(
        {
            "city": random.choice(["Oslo", "Lima", "Rome"], N_ROWS),
            "kind": pd.Categorical(random.choice(["a", "b"], N_ROWS)),
            "age": random.randint(18, 80, N_ROWS),
            "fare": random.uniform(0, 30, N_ROWS),
            "note": [" ".join(random.choice(words, 3)) for _ in range(N_ROWS)],
            "id": np.arange(N_ROWS).astype(str),
        }
    )
    X.loc[::7, "fare"] = np.nan
    X.loc[::11, "city"] = np.nan
    pays = (X["city"] == "Oslo") + X["age"] / 30 + X["note"].str.contains("late") + X["fare"].fillna(15) / 10
    return X, pays.to_numpy()


def columns():
    return make_column_transformer(
        (
            make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")),
            ["city", "kind"],
        ),
        (make_pipeline(SimpleImputer(), StandardScaler()), ["age", "fare"]),
        (TfidfVectorizer(), "note"),
    )


@pytest.fixture(scope="module")
def pipeline(people):
    """A fitted pipeline of everything."""
    return make_pipeline(columns(), Ridge(alpha=0.1)).fit(*people)


def small_step(optimizer, model, **options):
    """What fit leaves after a step that changes next to nothing."""
    options = {"learning_rate": 1e-12, "max_iter": 1, "warm_start": True, "random_state": 0, **options}
    return optimizer(model, **options)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_converted_pipeline_predicts_the_same(dtype, either, pipeline, people):
    X, y = people
    model = small_step(either, pipeline, dtype=dtype).fit(X, y)
    np.testing.assert_allclose(model.predict(X), pipeline.predict(X), rtol=1e-5, atol=1e-5)
    assert {array.dtype.name for array in model.trained_coef_.values()} == {dtype}
    assert model.feature_names_in_.tolist() == list(X.columns) and model.n_features_in_ == 6


@pytest.mark.parametrize("gradient", ["rules", pytest.param("ort", marks=pytest.mark.needs_training)])
def test_training_from_fresh_weights(gradient, optimizer, people):
    X, y = people
    model = optimizer(
        make_pipeline(columns(), MLPRegressor(hidden_layer_sizes=(8,))),
        learning_rate=0.02,
        max_iter=60,
        random_state=0,
        gradient=gradient,
    )
    model.fit(X, y, X_val=X[:50], y_val=y[:50])
    assert model.train_losses_[-1] < 0.2 * model.train_losses_[0]
    assert model.validation_losses_[-1] < model.validation_losses_[0]
    assert model.score(X, y) > 0.8
    np.testing.assert_allclose(model.losses(X, y), (model.predict(X) - y) ** 2 / 2, rtol=1e-3, atol=1e-5)


def test_the_exported_model_takes_raw_columns(either, pipeline, people):
    X, y = people
    model = either(pipeline, max_iter=2, random_state=0, learning_rate=0.01).fit(X, y)
    session = onnxruntime.InferenceSession(model.onnx_.SerializeToString())
    kinds = {value.name: value.type for value in session.get_inputs()}
    text, number = "tensor(string)", "tensor(float)"
    assert kinds == {"city": text, "kind": text, "age": number, "fare": number, "note": text}
    feeds = {
        name: X[[name]].astype(object).fillna("nan").to_numpy().astype(str).astype(object)
        if kind == text
        else X[[name]].to_numpy().astype(np.float32)
        for name, kind in kinds.items()
    }
    np.testing.assert_array_equal(session.run(None, feeds)[0].ravel(), model.predict(X))


def test_classifiers_and_weights_of_rows(either, people):
    X, y = people
    labels = np.where(y > np.median(y), "much", "little")
    weights = np.linspace(0.5, 2, N_ROWS)
    model = either(
        make_pipeline(columns(), MLPClassifier((6,))), max_iter=30, learning_rate=0.05, random_state=0
    )
    model.fit(X, labels, sample_weight=weights)
    assert model.score(X, labels) > 0.8 and model.classes_.tolist() == ["little", "much"]
    assert model.predict_proba(X[:3]).shape == (3, 2) and model.decision_function(X).shape == (N_ROWS,)


FORMS = {
    "pandas": lambda X: X,
    "polars": lambda X: pl.DataFrame({c: X[c].astype(object).where(X[c].notna(), None).tolist() for c in X}),
    "columns in another order": lambda X: X[["note", "id", "fare", "kind", "city", "age"]],
    "without a column nobody reads": lambda X: X.drop(columns="id"),
    "categories": lambda X: X.astype({"city": "category", "note": "category"}),
    "nullable": lambda X: X.astype({"age": "Int32", "fare": "Float64"}),
    "another index": lambda X: X.set_axis(np.arange(N_ROWS) * 3 + 5),
}


@pytest.mark.parametrize("form", list(FORMS))
def test_forms_of_frames(form, pipeline, people, both):
    X, y = people
    model = small_step(both[0], pipeline).fit(X, y)
    expected = model.predict(X)
    rows = FORMS[form](X)
    if form == "polars":  # None is a category of its own, as in scikit-learn
        known = X["city"].notna().to_numpy()
        np.testing.assert_array_equal(model.predict(rows)[known], expected[known])
    else:
        np.testing.assert_array_equal(model.predict(rows), expected)


def test_polars_from_the_start(both):
    random = np.random.RandomState(0)
    X = pl.DataFrame({"city": random.choice(["Oslo", "Lima"], 50), "age": random.randint(18, 80, 50)})
    y = (X["city"].to_numpy() == "Oslo") + X["age"].to_numpy() / 30
    fitted = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["city"]), (StandardScaler(), ["age"])), Ridge()
    ).fit(X, y)
    for optimizer in both:
        model = small_step(optimizer, fitted).fit(X, y)
        np.testing.assert_allclose(model.predict(X), fitted.predict(X), rtol=1e-5)
        assert pickle.loads(pickle.dumps(model)).predict(X[:1]).shape == (1,)


def test_single_rows(pipeline, people, both):
    X, y = people
    for optimizer in both:
        model = small_step(optimizer, pipeline).fit(X, y)
        singly = np.concatenate([model.predict(X.iloc[[i]]) for i in range(5)])
        np.testing.assert_allclose(singly, model.predict(X[:5]), rtol=1e-6)


def test_unknown_categories(either, people):
    X, y = people[0][["kind", "age"]], people[1]
    far = X[:2].assign(kind="z")
    lenient = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["kind"]), ("passthrough", ["age"])
    )
    fitted = make_pipeline(lenient, Ridge()).fit(X, y)
    np.testing.assert_allclose(
        small_step(either, fitted, learning_rate=1e-15).fit(X, y).predict(far),
        fitted.predict(far),
        rtol=1e-5,
    )
    for encoder in (OneHotEncoder(), OrdinalEncoder()):
        strict = make_column_transformer((encoder, ["kind"]), (StandardScaler(), ["age"]))
        model = small_step(either, make_pipeline(strict, Ridge())).fit(X, y)
        with pytest.raises(ValueError, match=r"Found unknown categories \['z'\] in column 'kind'"):
            model.predict(far)
        assert model.predict(X).shape == (N_ROWS,)


def test_unknown_numbers(either):
    X = np.repeat([[1.0, 5.0], [2.0, 6.0]], 5, axis=0)
    model = small_step(either, make_pipeline(OrdinalEncoder(), Ridge())).fit(X, X[:, 0])
    with pytest.raises(ValueError, match=r"unknown categories \['7.0'\] in column 1"):
        model.predict(X + np.array([0, 1]))


def test_columns_that_lack(either, pipeline, people, unchanged):
    X, y = people
    model = small_step(either, pipeline).fit(X, y)

    def fails():
        with pytest.raises(ValueError, match=r"Columns are missing: \['city'\]"):
            model.predict(X.drop(columns="city"))
        with pytest.raises(ValueError, match="Column 'age' of X must hold numbers, but contains 'old'"):
            model.predict(X.assign(age="old"))
        with pytest.raises(ValueError, match="contains infinity .*column 'fare'"):
            model.predict(X.assign(fare=np.inf))
        with pytest.raises(ValueError, match="0 sample"):
            model.predict(X[:0])
        with pytest.raises(ValueError, match=r"Columns are missing: \['note'\]"):
            model.fit(X.drop(columns="note"), y)

    unchanged(model, X, fails)


def test_dictionaries_are_for_onnx_models(either, people):
    X, y = people
    with pytest.raises(ValueError, match="X is a dictionary, which only ONNX models"):
        either(make_pipeline(columns(), Ridge())).fit(dict(X), y)


@pytest.mark.parametrize(
    "front", [OneHotEncoder(), make_pipeline(SimpleImputer(), OrdinalEncoder())], ids=str
)
def test_categories_are_numbers_that_float32_rounds(either, front):
    X = np.array([[0.1], [0.2], [0.7], [0.2]] * 5)
    model = make_pipeline(front, Ridge()).fit(X, X.ravel())
    trained = either(model, warm_start=True, learning_rate=1e-30, max_iter=1).fit(X, X.ravel())
    np.testing.assert_allclose(trained.predict(X), model.predict(X), atol=1e-6)
    with pytest.raises(ValueError, match="unknown categories"):
        trained.predict([[0.3]])


def test_names_are_checked_where_nobody_selects_by_name(either, people):
    X, y = people[0][["city", "kind"]].fillna("?"), people[1]
    model = either(make_pipeline(OneHotEncoder(), Ridge()), max_iter=2, random_state=0).fit(X, y)
    assert [value.name for value in model.onnx_.graph.input] == ["city", "kind"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X[["kind", "city"]])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X.rename(columns={"kind": "sort"}))


def test_documents(either, people):
    texts, y = people[0]["note"], people[1]
    fitted = make_pipeline(TfidfVectorizer(), Ridge()).fit(texts, y)
    for form in (texts, texts.tolist(), texts.to_numpy()):
        model = small_step(either, fitted).fit(form, y)
        np.testing.assert_allclose(model.predict(form), fitted.predict(form), rtol=1e-5)
        np.testing.assert_allclose(model.predict(form[:1]), fitted.predict(form[:1]), rtol=1e-5)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_missing_documents(missing, either, people, unchanged):
    texts, y = people[0][["note"]].astype(object), people[1]
    columns = make_column_transformer((TfidfVectorizer(), "note"))
    fitted = make_pipeline(columns, Ridge()).fit(texts, y)
    model = small_step(either, fitted).fit(texts, y)
    with_none = texts.copy()
    with_none.iloc[[3, 5], 0] = missing

    def fails():
        for call in (model.predict, lambda X: model.fit(X, y), lambda X: model.partial_fit(X, y)):
            with pytest.raises(
                ValueError, match=r"Column 'note' of X has missing texts, in samples \[3, 5\]"
            ):
                call(with_none)

    unchanged(model, texts, fails)
    alone = small_step(either, make_pipeline(TfidfVectorizer(), Ridge()).fit(texts["note"], y))
    with pytest.raises(ValueError, match=r"X has missing texts, in samples \[3, 5\].*replace them by ''"):
        alone.fit(texts["note"], y).predict(with_none["note"])


def test_arrays_of_text(either, people):
    texts, y = people[0][["city", "kind"]].fillna("?").to_numpy().astype(str), people[1]
    fitted = make_pipeline(OneHotEncoder(), Ridge()).fit(texts, y)
    for form in (texts, texts.astype(object), texts.tolist()):
        model = small_step(either, fitted).fit(form, y)
        np.testing.assert_allclose(model.predict(form), fitted.predict(form), rtol=1e-5)


def test_whole_numbers_and_sparse_matrices(optimizer):
    X = np.random.RandomState(0).randint(0, 4, (60, 3))
    y = X[:, 0] - X[:, 1] * 0.5
    fitted = LinearRegression().fit(X, y)
    for form in (
        X,
        X.astype(np.int8),
        X.astype(float),
        scipy.sparse.csr_matrix(X),
        scipy.sparse.csc_array(X),
    ):
        model = small_step(optimizer, fitted).fit(form, y)
        np.testing.assert_allclose(model.predict(form), y, atol=1e-4)
        assert model.onnx_.graph.input[0].name == "X"


def test_pickles_clones_and_partial_fit(either, people):
    X, y = people
    model = either(make_pipeline(columns(), Ridge()), max_iter=3, learning_rate=0.05, random_state=0)
    model.fit(X, y)
    back = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    back.partial_fit(X[:40], y[:40])
    model.partial_fit(X[:40], y[:40])
    for name, array in model.trained_coef_.items():
        np.testing.assert_array_equal(back.trained_coef_[name], array)
    np.testing.assert_array_equal(clone(model).fit(X, y).train_losses_, model.train_losses_[:3])
    first = clone(model).partial_fit(X, y)
    assert len(first.train_losses_) == 1 and first.predict(X).shape == (N_ROWS,)


def test_first_partial_fit_knows_every_class(either, people):
    X = people[0]
    model = either(make_pipeline(columns(), LogisticRegression()), learning_rate=0.1, random_state=0)
    labels = np.repeat(["a", "b"], N_ROWS // 2)
    model.partial_fit(X, labels, classes=["a", "b", "c"])
    assert model.predict_proba(X[:2]).shape == (2, 3)


def test_searches_over_frames(people, both):
    X, y = people
    model = both[0](make_pipeline(columns(), Ridge()), max_iter=5, random_state=0)
    search = GridSearchCV(model, {"learning_rate": [1e-9, 0.05]}, cv=2)
    search.fit(X, y)
    assert search.best_params_["learning_rate"] == 0.05 and search.predict(X).shape == (N_ROWS,)
    assert cross_val_score(search.best_estimator_, X, y, cv=2).min() > 0.3


def test_target_encoders_and_switching_hoisting_off(either, people):
    X, y = people[0][["kind", "age"]], people[1]
    encoder = make_column_transformer((TargetEncoder(), ["kind"]), (StandardScaler(), ["age"]))
    fitted = make_pipeline(encoder, Ridge()).fit(X, y)
    weights = [
        either(fitted, hoist=hoist, max_iter=3, random_state=0).fit(X, y).trained_coef_
        for hoist in (True, False)
    ]
    for name, array in weights[0].items():
        np.testing.assert_allclose(array, weights[1][name], rtol=1e-6)


@pytest.fixture
def numbers():
    X = np.random.RandomState(0).normal(size=(100, 3))
    return X, X[:, 0] + X[:, 1] ** 2


def test_missing_values_where_they_are_filled(either, numbers):
    X, y = numbers[0].copy(), numbers[1]
    X[::6, 0] = np.nan
    fitted = make_pipeline(SimpleImputer(), Ridge()).fit(X, y)
    for form in (X, X.tolist(), pd.DataFrame(X)):
        model = small_step(either, fitted).fit(form, y)
        np.testing.assert_allclose(model.predict(form), fitted.predict(X), rtol=1e-4, atol=1e-5)
    assert either(fitted).__sklearn_tags__().input_tags.allow_nan
    assert not either(Ridge()).__sklearn_tags__().input_tags.allow_nan


def test_missing_values_where_they_are_not(either, numbers, unchanged):
    X, y = numbers
    holes = X.copy()
    holes[3, 1] = np.nan
    for model in (Ridge(), make_pipeline(StandardScaler(), Ridge())):
        trained = either(model.fit(X, y), max_iter=1, random_state=0).fit(X, y)

        def fails(trained=trained):
            for method in (trained.predict, lambda X: trained.fit(X, y), lambda X: trained.partial_fit(X, y)):
                with pytest.raises(ValueError, match="contains NaN"):
                    method(holes)

        unchanged(trained, X, fails)
    with pytest.raises(ValueError, match="contains NaN"):
        either(make_pipeline(StandardScaler(), Ridge())).fit(holes, y)


def test_missing_values_in_some_columns_only(either, numbers):
    X, y = numbers[0].copy(), numbers[1]
    X[::6, 2] = np.nan
    filled = ColumnTransformer([("fill", SimpleImputer(), [2])], remainder="passthrough")
    model = either(make_pipeline(filled, Ridge()), max_iter=2, random_state=0).fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    X[5, 1] = np.nan
    with pytest.raises(ValueError, match=r"contains NaN in columns \[1\]"):
        model.predict(X)
    names = pd.DataFrame(X, columns=["a", "b", "c"])
    model = either(
        make_pipeline(
            make_column_transformer((SimpleImputer(), ["c"]), ("passthrough", ["a", "b"])), Ridge()
        ),
        max_iter=2,
        random_state=0,
    ).fit(names.fillna({"b": 0}), y)
    with pytest.raises(ValueError, match="contains NaN in column 'b'"):
        model.predict(names)


def test_trees_that_know_missing_values(both, numbers):
    X, y = numbers[0].copy(), numbers[1]
    X[::6, 0] = np.nan
    fitted = HistGradientBoostingRegressor(max_iter=5).fit(X, y)
    model = small_step(both[0], fitted).fit(X, y)
    np.testing.assert_allclose(model.predict(X), fitted.predict(X), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", [HistGradientBoostingRegressor, HistGradientBoostingClassifier])
def test_trees_that_know_categories(kind, both, people):
    """Missing categories, and one that fit has not seen, go where scikit-learn sends them."""
    X, y = people[0][["age", "city", "fare", "kind"]], people[1]
    X = X.astype({"city": "category"})
    y = y if kind is HistGradientBoostingRegressor else np.where(y > 3, "much", "little")
    fitted = kind(max_iter=10, categorical_features=["city", "kind"], min_samples_leaf=5).fit(X, y)
    model = small_step(both[0], fitted).fit(X, y)
    assert sorted(value.name for value in model.onnx_.graph.input) == ["age", "city", "fare", "kind"]
    method = "predict" if kind is HistGradientBoostingRegressor else "predict_proba"
    for rows in (X, X.astype({"city": object}).assign(city="Quito"), X.assign(kind=None, fare=np.nan)):
        expected = getattr(fitted, method)(rows)
        np.testing.assert_allclose(getattr(model, method)(rows), expected, rtol=1e-4, atol=1e-5)
    trained = both[0](fitted, warm_start=True, max_iter=5, learning_rate=0.05, random_state=0).fit(X, y)
    assert trained.train_losses_[-1] < trained.train_losses_[0]


def test_a_step_in_scikit_learn(either, numbers):
    X, y = numbers
    spline = make_pipeline(StandardScaler(), Curves(n_knots=4), Ridge(alpha=1e-3))
    model = either(spline, learning_rate=0.3, max_iter=60, random_state=0, batch_size=25)
    with pytest.warns(FallbackWarning, match="Step 'curves' .Curves. stays in scikit-learn"):
        model.fit(X, y, X_val=X[:20], y_val=y[:20])
    assert model.score(X, y) > 0.85 and model.n_features_in_ == 3
    assert model.onnx_.graph.input[0].type.tensor_type.shape.dim[1].dim_value == 18
    back = pickle.loads(pickle.dumps(model))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(back.predict(X), model.predict(X))
        back.partial_fit(X, y)
    with pytest.raises(ValueError, match="3 features"):
        model.predict(X[:, :2])
    with pytest.raises(ValueError, match="NaN"):
        model.predict(np.full((2, 3), np.nan))


def test_a_step_in_scikit_learn_on_a_frame(either, people):
    X, y = people[0].fillna({"fare": 0}), people[1]
    steps = make_column_transformer(
        (Curves(), ["fare"]), (OneHotEncoder(handle_unknown="ignore"), ["city", "kind"])
    )
    fitted = make_pipeline(steps, Ridge()).fit(X, y)
    with pytest.warns(FallbackWarning, match="Step 'columntransformer'"):
        model = small_step(either, fitted).fit(X, y)
    np.testing.assert_allclose(model.predict(X), fitted.predict(X), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(
        model.predict(X[["kind", "fare", "city"]]), fitted.predict(X), rtol=1e-5, atol=1e-5
    )
    assert {value.name for value in model.onnx_.graph.input} == {"X"}


def test_sparse_results_of_a_step_in_scikit_learn(either, people):
    texts, y = people[0]["note"].tolist(), people[1]
    fitted = make_pipeline(TfidfVectorizer(strip_accents="ascii", ngram_range=(1, 3)), Ridge()).fit(texts, y)
    with pytest.warns(FallbackWarning, match="tfidfvectorizer"):
        model = small_step(either, fitted).fit(texts, y)
    np.testing.assert_allclose(model.predict(texts), fitted.predict(texts), rtol=1e-5)


def test_outputs_of_steps_must_be_finite(either, numbers):
    X, y = numbers
    logs = make_pipeline(FunctionTransformer(lambda X: 1 / X), Ridge())
    with pytest.warns(FallbackWarning, match="functiontransformer"):
        trained = either(logs, max_iter=1, random_state=0).fit(np.abs(X) + 1, y)
    with np.errstate(divide="ignore"), pytest.raises(ValueError, match="infinity"):
        trained.predict(np.zeros((2, 3)))


def test_a_last_step_that_does_not_convert(either, people):
    X, y = people

    class Mine(Ridge):
        """It computes what Ridge does, and trains as Ridge does."""

    class Other(Ridge):
        def predict(self, X):
            return 2 * super().predict(X)

    either(make_pipeline(columns(), Mine())).fit(X, y)
    with pytest.raises(ConversionError, match="Other has no model definition"):
        either(make_pipeline(columns(), Other())).fit(X, y)


TWO_INPUTS = """<ir_version: 8, opset_import: ["": 18, "ai.onnx.ml": 3]>
    g (float[N,1] size, string[N,1] city, int64[N] floor) => (float[N,1] price)
    <float[3,1] coef = {0.1, 0.2, 0.3}, int64[2] column = {-1, 1}>
    { c = ai.onnx.ml.LabelEncoder <keys_strings = ["Oslo", "Lima"], values_floats = [1.0, -1.0]> (city)
      i = Cast <to = 1> (floor) f = Reshape (i, column) a = Concat <axis = 1> (size, c, f)
      price = MatMul (a, coef) }"""


@pytest.fixture
def houses():
    random = np.random.RandomState(0)
    X = {
        "city": random.choice(["Oslo", "Lima"], 80),
        "size": random.uniform(0, 2, 80),
        "floor": random.randint(0, 3, 80),
    }
    return X, 2 * X["size"] + np.where(X["city"] == "Oslo", 1, -1) - X["floor"]


def test_onnx_models_of_several_inputs(either, houses):
    X, y = houses
    model = either(parser.parse_model(TWO_INPUTS), learning_rate=0.1, max_iter=40, random_state=0)
    model.fit(X, y)
    np.testing.assert_allclose(model.trained_coef_["coef"].ravel(), [2, 1, -1], atol=0.15)
    expected = model.predict(X)
    for form in (
        pd.DataFrame(X),
        pl.DataFrame(X),
        {name: np.reshape(values, (-1, 1)) for name, values in X.items()},
    ):
        np.testing.assert_array_equal(model.predict(form), expected)
    np.testing.assert_array_equal(model.fit(pd.DataFrame(X), y).predict(X), expected)
    assert model.score(X, y) > 0.99 and model.losses(X, y).shape == (80,)
    assert [value.name for value in model.onnx_.graph.input] == ["size", "city", "floor"]
    model.partial_fit(X, y)


def test_onnx_models_of_several_inputs_refuse_the_rest(either, houses):
    X, y = houses
    model = either(parser.parse_model(TWO_INPUTS), max_iter=1, random_state=0)
    with pytest.raises(ValueError, match=r"Columns are missing: \['floor'\]"):
        model.fit({"city": X["city"], "size": X["size"]}, y)
    with pytest.raises(ValueError, match=r"takes the columns \['size', 'city', 'floor'\] by name"):
        model.fit(np.ones((80, 3)), y)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[80, 79\]"):
        model.fit(X, y[1:])
    with pytest.raises(ValueError, match="differ in length"):
        model.fit({**X, "size": X["size"][1:]}, y)
    with pytest.raises(ValueError, match="Column 'size' of X must hold numbers"):
        model.fit({**X, "size": X["city"]}, y)


OWN_LOSS = """<ir_version: 8, opset_import: ["": 18]>
    g (float[N,1] size, int64[N,1] floor, float[N,1] label) => (float loss, float[N,1] price)
    <float[2,1] coef = {0.1, 0.2}>
    { f = Cast <to = 1> (floor) a = Concat <axis = 1> (size, f) price = MatMul (a, coef)
      d = Sub (price, label) q = Mul (d, d) loss = ReduceMean <keepdims = 0> (q) }"""


@pytest.mark.parametrize("hoist", [True, False])
def test_onnx_models_of_several_inputs_with_their_own_loss(hoist, optimizer, houses):
    X, _ = houses
    y = 2 * X["size"] - X["floor"]
    model = optimizer(
        parser.parse_model(OWN_LOSS), learning_rate=0.05, max_iter=40, random_state=0, hoist=hoist
    )
    model.fit({"size": X["size"], "floor": X["floor"]}, y)
    np.testing.assert_allclose(model.trained_coef_["coef"].ravel(), [2, -1], atol=0.1)
    assert model.predict({"size": X["size"][:3], "floor": X["floor"][:3]}).shape == (3,)


def test_onnx_models_of_one_input_by_name(either, numbers):
    X, y = numbers
    model = parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
        g (float[N,3] rows) => (float[N,1] score) <float[3,1] coef = {0.1, 0.1, 0.1}>
        { score = MatMul (rows, coef) }""")
    trained = either(model, max_iter=3, random_state=0).fit({"rows": X}, y)
    np.testing.assert_array_equal(trained.predict(X), trained.predict({"rows": X}))


def test_float64_where_the_converter_has_float32_only(either, cancer):
    fitted = LinearSVC().fit(*cancer)
    model = small_step(either, fitted, dtype="float64").fit(*cancer)
    np.testing.assert_allclose(
        model.decision_function(cancer[0]), fitted.decision_function(cancer[0]), rtol=1e-8, atol=1e-8
    )
    assert {array.dtype.name for array in model.trained_coef_.values()} == {"float64"}


def test_columns_are_predicted_in_chunks(pipeline, people, both, monkeypatch):
    X, y = people
    model = small_step(both[0], pipeline).fit(X, y)
    expected, losses = model.predict(X), model.losses(X, y)
    monkeypatch.setattr(row_chunks, "ROWS_OF_COLUMNS", 7)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-6)
    np.testing.assert_allclose(model.losses(X, y), losses, rtol=1e-4, atol=1e-6)
