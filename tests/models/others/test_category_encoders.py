"""Encoders of category_encoders, before and after training."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import FallbackWarning
from ortlearn.models import all_covered, write_model
from ortlearn.preprocessing.column_reading import read_columns
from ortlearn.preprocessing.schema import input_schema
from ortlearn.trainable.conversion import to_trainable
from ortlearn.trainable.from_estimator import write_weights

ce = pytest.importorskip("category_encoders")
pytestmark = pytest.mark.filterwarnings("ignore:.*no_silent_downcasting")
LEARNED = [
    *(ce.TargetEncoder, ce.JamesSteinEncoder, ce.MEstimateEncoder, ce.QuantileEncoder, ce.WOEEncoder),
    *(ce.LeaveOneOutEncoder, ce.CatBoostEncoder),
]
FIXED = [ce.OrdinalEncoder, ce.OneHotEncoder, ce.CountEncoder]
HANDLED = [
    dict.fromkeys(names, "return_nan")
    for names in ((), ("handle_missing",), ("handle_unknown",), ("handle_missing", "handle_unknown"))
]
COLUMNS = ["text", "whole", "category"]


@pytest.fixture
def frame(samples):
    """Columns of texts, whole numbers and categories, one of a single sample, and classes."""
    rng = np.random.RandomState(0)
    X = pd.DataFrame({"number": samples.X[:, 0]})
    X["text"] = np.array(list("uvwxyz"))[rng.choice(6, 200, p=[0.3, 0.3, 0.2, 0.1, 0.06, 0.04])]
    X["whole"] = rng.randint(0, 4, 200)
    X["category"] = pd.Categorical(np.array(["red", "green"])[rng.randint(0, 2, 200)])
    X.loc[3, "text"] = "once"
    y = X["number"] + (X["text"] == "v") + 0.3 * rng.normal(size=200) > 0.5
    return X, y.astype(int)


def others(X):
    """Return samples with unknown and missing values."""
    X = X.iloc[:20].copy()
    X.loc[:5, "text"], X.loc[6:9, "text"], X.loc[10:12, "whole"] = "never", None, 77
    return X


def compare(trainable, weights, encoder, X, run):
    found = run(trainable.with_weights(weights), read_columns(X, trainable.entry.schema))[0]
    expected = np.asarray(encoder.transform(X), dtype=np.float64)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("handled", HANDLED, ids=str)
@pytest.mark.parametrize("kind", LEARNED)
def test_learned_tables(kind, handled, frame, run):
    full, y = frame
    for X in (full, full.assign(text=full["text"].where(np.arange(200) > 20, None))):
        encoder = kind(cols=COLUMNS, **handled).fit(X, y)
        trainable = to_trainable(encoder, "*", X=X, dtype=np.float64)
        assert trainable.entry.sklearn_steps is None and len(trainable.trained) == 3
        weights = trainable.initial_weights()
        changed = {name: 1.1 * array + 0.05 for name, array in weights.items()}
        back = write_weights(encoder, trainable, trainable.coefficients(changed))
        for samples in (X, others(X)):
            compare(trainable, weights, encoder, samples, run)
            compare(trainable, changed, back, samples, run)


@pytest.mark.parametrize("handled", HANDLED, ids=str)
@pytest.mark.parametrize("kind", FIXED)
def test_fixed_tables(kind, handled, frame, run):
    full, y = frame
    for X in (full, full.assign(text=full["text"].where(np.arange(200) > 20, None))):
        encoder = kind(cols=COLUMNS, **handled).fit(X, y)
        schema = input_schema(X, encoder, np.float64)
        written = write_model(encoder, schema.types(), np.float64, columns=schema.input_of_column())
        for samples in (X, others(X)):
            found = run(written.model, read_columns(samples, schema))[0]
            np.testing.assert_array_equal(found, np.asarray(encoder.transform(samples), dtype=np.float64))


@pytest.mark.parametrize("kind", LEARNED + FIXED)
def test_in_a_pipeline(kind, frame):
    X, y = frame
    model = make_pipeline(kind(cols=COLUMNS), LogisticRegression()).fit(X, y)
    trained = OrtGradientOptimizer(model, random_state=0, max_iter=20).fit(X, y)
    assert [value.name for value in trained.onnx_.graph.input] == list(X.columns)
    np.testing.assert_allclose(trained.to_sklearn().predict_proba(X), trained.predict_proba(X), atol=1e-5)


def test_selected_tables_are_trained(frame):
    X, y = frame
    model = make_pipeline(ce.LeaveOneOutEncoder(cols=["text"]), LogisticRegression()).fit(X[["text"]], y)
    names = ["leaveoneoutencoder*", "coef", "intercept"]
    trained = OrtGradientOptimizer(
        model, names, learning_rate="Adam", warm_start=True, max_iter=20, random_state=0, keep_better=False
    ).fit(X[["text"]], y)
    assert trained.weights_to_train_["mapping_text"] == "leaveoneoutencoder: mapping['text']"
    assert trained.train_losses_[-1] < trained.train_losses_[0]
    back = trained.to_sklearn()
    np.testing.assert_allclose(back.predict_proba(X[["text"]]), trained.predict_proba(X[["text"]]), atol=1e-5)
    before, after = (own[0].transform(X[["text"]])["text"].to_numpy() for own in (model, back))
    assert np.abs(before - after).max() > 1e-3


@pytest.mark.parametrize(
    "params",
    [
        {"handle_unknown": "error"},
        {"handle_missing": -1.0},
        {"drop_invariant": True},
        {"hierarchy": {"text": {"first": ("u", "v"), "second": ("w", "x", "y", "z", "once")}}},
    ],
    ids=str,
)
def test_other_encoders_stay_in_scikit_learn(params, frame):
    X, y = frame
    encoder = ce.TargetEncoder(cols=["text"], **params)
    model = make_pipeline(encoder, LogisticRegression()).fit(X[["text"]], y)
    assert not all_covered(model)
    with pytest.warns(FallbackWarning, match="TargetEncoder"):
        trained = OrtGradientOptimizer(model, random_state=0, max_iter=20).fit(X[["text"]], y)
    np.testing.assert_allclose(
        trained.to_sklearn().predict_proba(X[["text"]]), trained.predict_proba(X[["text"]]), atol=1e-5
    )
