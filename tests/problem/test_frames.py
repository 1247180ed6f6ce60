"""Data frames of several column types: training, prediction, export and errors."""

import pickle

import numpy as np
import onnxruntime
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import CategoricalNB
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import LinearSVC

from ortlearn import OrtGradientOptimizer
from ortlearn.inference.sample_chunks import SAMPLES_OF_COLUMNS
from ortlearn.saving.public import load, save
from tests.estimators.mixed_frames import N_SAMPLES, columns, small_step


@pytest.fixture(scope="module")
def pipeline(people):
    """Return a fitted pipeline for all columns."""
    return make_pipeline(columns(), Ridge(alpha=0.1)).fit(*people)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_pipeline_predicts_like_scikit_learn(dtype, optimizer, pipeline, people):
    X, y = people
    model = small_step(optimizer, pipeline, dtype=dtype).fit(X, y)
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


def test_exported_model_has_raw_columns_as_inputs(optimizer, pipeline, people):
    X, y = people
    model = optimizer(pipeline, max_iter=2, random_state=0, learning_rate=0.01).fit(X, y)
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


def test_classifier_with_sample_weight(optimizer, people):
    X, y = people
    labels = np.where(y > np.median(y), "much", "little")
    weights = np.linspace(0.5, 2, N_SAMPLES)
    model = optimizer(
        make_pipeline(columns(), MLPClassifier((6,))), max_iter=30, learning_rate=0.05, random_state=0
    )
    model.fit(X, labels, sample_weight=weights)
    assert model.score(X, labels) > 0.8 and model.classes_.tolist() == ["little", "much"]
    assert model.predict_proba(X[:3]).shape == (3, 2) and model.decision_function(X).shape == (N_SAMPLES,)


FORMS = {
    "pandas": lambda X: X,
    "polars": lambda X: pl.DataFrame({c: X[c].astype(object).where(X[c].notna(), None).tolist() for c in X}),
    "columns in another order": lambda X: X[["note", "id", "fare", "kind", "city", "age"]],
    "without an unused column": lambda X: X.drop(columns="id"),
    "categories": lambda X: X.astype({"city": "category", "note": "category"}),
    "nullable": lambda X: X.astype({"age": "Int32", "fare": "Float64"}),
    "another index": lambda X: X.set_axis(np.arange(N_SAMPLES) * 3 + 5),
}


@pytest.mark.parametrize("form", list(FORMS))
def test_forms_of_frames(form, pipeline, people, both):
    X, y = people
    model = small_step(both[0], pipeline).fit(X, y)
    expected = model.predict(X)
    samples = FORMS[form](X)
    if form == "polars":  # None is a separate category, as in scikit-learn
        known = X["city"].notna().to_numpy()
        np.testing.assert_array_equal(model.predict(samples)[known], expected[known])
    else:
        np.testing.assert_array_equal(model.predict(samples), expected)


def test_polars_in_fit(both):
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


def test_single_samples(pipeline, people, both):
    X, y = people
    for optimizer in both:
        model = small_step(optimizer, pipeline).fit(X, y)
        singly = np.concatenate([model.predict(X.iloc[[i]]) for i in range(5)])
        np.testing.assert_allclose(singly, model.predict(X[:5]), rtol=1e-6)


def test_unknown_categories(optimizer, people):
    X, y = people[0][["kind", "age"]], people[1]
    far = X[:2].assign(kind="z")
    lenient = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["kind"]), ("passthrough", ["age"])
    )
    fitted = make_pipeline(lenient, Ridge()).fit(X, y)
    np.testing.assert_allclose(
        small_step(optimizer, fitted, learning_rate=1e-15).fit(X, y).predict(far),
        fitted.predict(far),
        rtol=1e-5,
    )
    for encoder in (OneHotEncoder(), OrdinalEncoder()):
        strict = make_column_transformer((encoder, ["kind"]), (StandardScaler(), ["age"]))
        model = small_step(optimizer, make_pipeline(strict, Ridge())).fit(X, y)
        with pytest.raises(ValueError, match=r"Found unknown categories \['z'\] in column 'kind'"):
            model.predict(far)
        assert model.predict(X).shape == (N_SAMPLES,)


def test_unknown_numeric_categories(optimizer):
    X = np.repeat([[1.0, 5.0], [2.0, 6.0]], 5, axis=0)
    model = small_step(optimizer, make_pipeline(OrdinalEncoder(), Ridge())).fit(X, X[:, 0])
    with pytest.raises(ValueError, match=r"unknown categories \['7.0'\] in column 1"):
        model.predict(X + np.array([0, 1]))


@pytest.mark.parametrize("columns, category", [(None, -2), (list("abcd"), 9)])
def test_unknown_categories_of_a_model_are_named(optimizer, columns, category, tmp_path):
    X = np.tile(np.arange(3), 40).reshape(30, 4)
    known = X if columns is None else pd.DataFrame(X, columns=columns)
    trained = small_step(optimizer, CategoricalNB()).fit(known, X[:, 0] > 0)
    expected = trained.predict(known)
    save(trained, tmp_path / "trained")
    for model in (trained, load(tmp_path / "trained")):
        assert (model.predict(known) == expected).all()
        new = known.copy()
        (new if columns is None else new.iloc)[4, 2] = category
        with pytest.raises(ValueError, match=rf"unknown categories \['{category}.0'\] in column 2"):
            model.predict(new)
        with pytest.raises(ValueError, match="in column 2"):
            model.partial_fit(new, X[:, 0] > 0)


def test_fractions_of_categories_are_truncated_as_in_scikit_learn(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = CategoricalNB().fit(X, y)
    trained = OrtGradientOptimizer(model, warm_start=True, keep_better=False, random_state=0).fit(X, y)
    save(trained, tmp_path / "trained")
    for own in (trained, load(tmp_path / "trained")):
        assert own.score(X, y) > model.score(X, y) - 0.02
        np.testing.assert_array_equal(own.predict(X), own.predict(np.trunc(X)))


def test_invalid_columns(optimizer, pipeline, people, unchanged):
    X, y = people
    model = small_step(optimizer, pipeline).fit(X, y)

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


def test_dictionaries_are_for_onnx_models(optimizer, people):
    X, y = people
    with pytest.raises(ValueError, match="X is a dictionary, which only ONNX models"):
        optimizer(make_pipeline(columns(), Ridge())).fit(dict(X), y)


@pytest.mark.parametrize(
    "encoder", [OneHotEncoder(), make_pipeline(SimpleImputer(), OrdinalEncoder())], ids=str
)
def test_numeric_categories_rounded_by_float32(optimizer, encoder):
    X = np.array([[0.1], [0.2], [0.7], [0.2]] * 5)
    model = make_pipeline(encoder, Ridge()).fit(X, X.ravel())
    trained = optimizer(model, warm_start=True, learning_rate=1e-30, max_iter=1).fit(X, X.ravel())
    np.testing.assert_allclose(trained.predict(X), model.predict(X), atol=1e-6)
    with pytest.raises(ValueError, match="unknown categories"):
        trained.predict([[0.3]])


def test_feature_names_are_checked_without_column_selection(optimizer, people):
    X, y = people[0][["city", "kind"]].fillna("?"), people[1]
    model = optimizer(make_pipeline(OneHotEncoder(), Ridge()), max_iter=2, random_state=0).fit(X, y)
    assert [value.name for value in model.onnx_.graph.input] == ["city", "kind"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X[["kind", "city"]])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X.rename(columns={"kind": "sort"}))


def test_documents(optimizer, people):
    texts, y = people[0]["note"], people[1]
    fitted = make_pipeline(TfidfVectorizer(), Ridge()).fit(texts, y)
    for form in (texts, texts.tolist(), texts.to_numpy()):
        model = small_step(optimizer, fitted).fit(form, y)
        np.testing.assert_allclose(model.predict(form), fitted.predict(form), rtol=1e-5)
        np.testing.assert_allclose(model.predict(form[:1]), fitted.predict(form[:1]), rtol=1e-5)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_missing_documents(missing, optimizer, people, unchanged):
    texts, y = people[0][["note"]].astype(object), people[1]
    columns = make_column_transformer((TfidfVectorizer(), "note"))
    fitted = make_pipeline(columns, Ridge()).fit(texts, y)
    model = small_step(optimizer, fitted).fit(texts, y)
    with_none = texts.copy()
    with_none.iloc[[3, 5], 0] = missing

    def fails():
        for call in (model.predict, lambda X: model.fit(X, y), lambda X: model.partial_fit(X, y)):
            with pytest.raises(
                ValueError, match=r"Column 'note' of X has missing texts, in samples \[3, 5\]"
            ):
                call(with_none)

    unchanged(model, texts, fails)
    alone = small_step(optimizer, make_pipeline(TfidfVectorizer(), Ridge()).fit(texts["note"], y))
    with pytest.raises(ValueError, match=r"X has missing texts, in samples \[3, 5\].*replace them by ''"):
        alone.fit(texts["note"], y).predict(with_none["note"])


def test_arrays_of_text(optimizer, people):
    texts, y = people[0][["city", "kind"]].fillna("?").to_numpy().astype(str), people[1]
    fitted = make_pipeline(OneHotEncoder(), Ridge()).fit(texts, y)
    for form in (texts, texts.astype(object), texts.tolist()):
        model = small_step(optimizer, fitted).fit(form, y)
        np.testing.assert_allclose(model.predict(form), fitted.predict(form), rtol=1e-5)


def test_integers_and_sparse_matrices(optimizer):
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


@pytest.mark.slow
def test_pickles_clones_and_partial_fit(optimizer, people):
    X, y = people
    model = optimizer(make_pipeline(columns(), Ridge()), max_iter=3, learning_rate=0.05, random_state=0)
    model.fit(X, y)
    back = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    back.partial_fit(X[:40], y[:40])
    model.partial_fit(X[:40], y[:40])
    for name, array in model.trained_coef_.items():
        np.testing.assert_array_equal(back.trained_coef_[name], array)
    np.testing.assert_array_equal(clone(model).fit(X, y).train_losses_, model.train_losses_[:3])
    first = clone(model).partial_fit(X, y)
    assert len(first.train_losses_) == 1 and first.predict(X).shape == (N_SAMPLES,)


def test_classes_of_first_partial_fit(optimizer, people):
    X = people[0]
    model = optimizer(make_pipeline(columns(), LogisticRegression()), learning_rate=0.1, random_state=0)
    labels = np.repeat(["a", "b"], N_SAMPLES // 2)
    model.partial_fit(X, labels, classes=["a", "b", "c"])
    assert model.predict_proba(X[:2]).shape == (2, 3)


@pytest.mark.slow
def test_searches_over_frames(people, both):
    X, y = people
    model = both[0](make_pipeline(columns(), Ridge()), max_iter=5, random_state=0)
    search = GridSearchCV(model, {"learning_rate": [1e-9, 0.05]}, cv=2)
    search.fit(X, y)
    assert search.best_params_["learning_rate"] == 0.05 and search.predict(X).shape == (N_SAMPLES,)
    assert cross_val_score(search.best_estimator_, X, y, cv=2).min() > 0.3


def test_target_encoder_with_and_without_hoisting(optimizer, people):
    X, y = people[0][["kind", "age"]], people[1]
    encoder = make_column_transformer((TargetEncoder(), ["kind"]), (StandardScaler(), ["age"]))
    fitted = make_pipeline(encoder, Ridge()).fit(X, y)
    weights = [
        optimizer(fitted, precompute=hoist, max_iter=3, random_state=0).fit(X, y).trained_coef_
        for hoist in (True, False)
    ]
    for name, array in weights[0].items():
        np.testing.assert_allclose(array, weights[1][name], rtol=1e-6)


def test_float64_with_a_float32_converter(optimizer, cancer):
    fitted = LinearSVC().fit(*cancer)
    model = small_step(optimizer, fitted, dtype="float64").fit(*cancer)
    np.testing.assert_allclose(
        model.decision_function(cancer[0]), fitted.decision_function(cancer[0]), rtol=1e-8, atol=1e-8
    )
    assert {array.dtype.name for array in model.trained_coef_.values()} == {"float64"}


def test_columns_are_predicted_in_chunks(pipeline, people, both):
    X, y = people
    model = small_step(both[0], pipeline).fit(X, y)
    expected, losses = model.predict(X), model.losses(X, y)
    repeats = SAMPLES_OF_COLUMNS // len(X) + 2
    many, labels = pd.concat([X] * repeats, ignore_index=True), np.concatenate([y] * repeats)
    found = model.predict(many)
    np.testing.assert_allclose(found, np.concatenate([expected] * repeats), rtol=1e-6)
    found = model.losses(many, labels)
    np.testing.assert_allclose(found, np.concatenate([losses] * repeats), rtol=1e-4, atol=1e-6)
