"""Encoders and imputers of categories: columns of all types; missing, rare and unknown categories."""

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler, TargetEncoder

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import ConversionError, FallbackWarning
from ortlearn.testing import check_model
from ortlearn.trainable.conversion import to_trainable
from ortlearn.trainable.from_estimator import sklearn_to_onnx

pytestmark = pytest.mark.filterwarnings("ignore:`TargetEncoder.shuffle`:FutureWarning")

RNG = np.random.RandomState(0)
NUMBERS = RNG.choice(4, 80, p=[0.5, 0.3, 0.12, 0.08])
Y = np.array([3.0, -2.0, 5.0, 0.0])[NUMBERS] + 0.1 * RNG.normal(size=80)


def named(*names):
    """Return a column with these values for the numbers 0 to 3."""
    return np.array(names, dtype=object)[NUMBERS]


#: A column of each type, and samples with unknown categories.
COLUMNS = {
    "text": (named("Oslo", "Lima", "Rome", "Bern"), np.array(["Paris", ""], dtype=object)),
    "None": (named("Oslo", "Lima", "Rome", None), np.array(["Paris", None], dtype=object)),
    "NaN": (named("Oslo", "Lima", np.nan, "Bern"), np.array(["Paris", np.nan], dtype=object)),
    "None and NaN": (named("Oslo", np.nan, "Rome", None), np.array([np.nan, "x"], dtype=object)),
    "category": (pd.Categorical(named("a", "b", np.nan, "d")), pd.Categorical(["z", "a"])),
    "integers": (NUMBERS - 2, np.array([17, -2])),
    "integers and NA": (pd.array(named(7, 1, 3, pd.NA), dtype="Int64"), pd.array([9, pd.NA], dtype="Int64")),
    "floats": (NUMBERS / 2, np.array([0.25, 1.5])),
    "floats and NaN": (np.where(NUMBERS == 2, np.nan, NUMBERS / 2), np.array([9.0, np.nan])),
    "bool": (NUMBERS > 1, np.array([True, False])),
}
ENCODERS = {
    "one column each": OneHotEncoder(handle_unknown="ignore"),
    "without the first": OneHotEncoder(drop="first", handle_unknown="ignore"),
    "without one of two": OneHotEncoder(drop="if_binary", handle_unknown="ignore"),
    "rare ones together": OneHotEncoder(min_frequency=15, handle_unknown="infrequent_if_exist"),
    "rare ones, without the first": OneHotEncoder(max_categories=2, drop="first", handle_unknown="ignore"),
    "numbers": OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-7, encoded_missing_value=-5),
    "rare numbers": OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=9, max_categories=3, encoded_missing_value=-5
    ),
    "means": TargetEncoder(cv=2, random_state=0),
    "shrunk means": TargetEncoder(smooth=5.0, cv=2, random_state=0),
}


def frame(index):
    """Return a frame of all columns (0), or of samples with unknown categories (1)."""
    columns = {kind: pair[index] for kind, pair in COLUMNS.items()}
    return pd.DataFrame({k: pd.Series(v, dtype=getattr(v, "dtype", None)) for k, v in columns.items()})


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.filterwarnings("ignore:Found unknown categories")
def test_encoders(name, check_graph):
    dtype = (np.float32, np.float64)[list(ENCODERS).index(name) % 2]
    X, new = frame(0), frame(1)
    assert X["None"].isna().sum() and X["None"].dtype == object
    model = make_pipeline(ENCODERS[name], StandardScaler(with_mean=False), Ridge()).fit(X, Y)
    check_graph(model, X, new, dtype=dtype)


@pytest.mark.parametrize("y", [Y, NUMBERS > 1, NUMBERS], ids=["numbers", "two", "four"])
def test_gradients_of_encodings(y, run):
    X = np.column_stack([NUMBERS, NUMBERS % 2]).astype(float)
    check_model(TargetEncoder(cv=2, random_state=0).fit(X, y), X, run=run)


def test_selected_encodings_are_trained_in_a_pipeline():
    X = pd.DataFrame({"city": named("Oslo", "Lima", "Rome", None)})
    model = make_pipeline(TargetEncoder(cv=2, smooth=30.0, random_state=0), LogisticRegression())
    model.fit(X, NUMBERS > 1)
    assert all("logisticregression" in origin for origin in to_trainable(model, X=X).origins().values())
    trained = OrtGradientOptimizer(
        model, "targetencoder.encodings_[0]", warm_start=True, learning_rate=1.0, max_iter=5, random_state=0
    ).fit(X, NUMBERS > 1)
    assert trained.train_losses_[-1] < 0.9 * trained.train_losses_[0]
    back = trained.to_sklearn()
    assert np.abs(back[0].encodings_[0] - model[0].encodings_[0]).max() > 0.05
    np.testing.assert_array_equal(back[1].coef_, model[1].coef_)
    np.testing.assert_allclose(back.predict_proba(X), trained.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("encoder", [OneHotEncoder(), OneHotEncoder(handle_unknown="ignore")], ids=str)
def test_a_category_that_equals_the_text_of_a_missing_value(encoder):
    X = named("None", "Lima", "Rome", None)[:, None]
    with pytest.warns(FallbackWarning, match="the text of a missing value"):
        to_trainable(make_pipeline(encoder, Ridge()).fit(X, Y), X=X)


def test_categories_that_are_equal_in_float32(check_graph):
    X = 1 + NUMBERS[:, None] * 1e-9
    model = make_pipeline(OneHotEncoder(), Ridge()).fit(X, Y)
    with pytest.raises(ConversionError, match="are equal in float32"):
        sklearn_to_onnx(model)
    check_graph(model, X)


IMPUTERS = {
    "most frequent": SimpleImputer(strategy="most_frequent"),
    "constant": SimpleImputer(strategy="constant", fill_value="?"),
    "with flags": SimpleImputer(strategy="most_frequent", add_indicator=True),
    "another text": SimpleImputer(strategy="constant", fill_value="?", missing_values="Lima"),
}


@pytest.mark.parametrize("name", IMPUTERS)
def test_imputers_of_text(name, check_graph):
    other = "Rome" if name == "another text" else np.nan
    X = pd.DataFrame({"a": named("Oslo", "Lima", other, "Bern"), "b": named("x", other, "y", "x")})
    imputer = IMPUTERS[name]
    encoder = OneHotEncoder(handle_unknown="ignore")
    check_graph(make_pipeline(imputer, encoder, Ridge()).fit(X, Y), X, X.assign(a="Lima", b=other))
    flags = make_union(
        make_pipeline(imputer, encoder), MissingIndicator(missing_values=imputer.missing_values)
    )
    check_graph(make_pipeline(flags, Ridge()).fit(X, Y), X)


@pytest.mark.parametrize("missing", [pd.NA, np.nan])
def test_missing_values_of_nullable_columns(missing, check_graph):
    X = pd.DataFrame({"a": pd.array(named(7, 1, 3, pd.NA), dtype="Int64"), "b": RNG.normal(size=80)})
    X = X.astype({"b": "Float64"})
    check_graph(make_pipeline(SimpleImputer(missing_values=missing), Ridge()).fit(X, Y), X)
