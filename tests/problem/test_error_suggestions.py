"""Error messages suggest the correct name or value."""

import numpy as np
import pandas
import polars
import pytest
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import ConversionError, NoTrainableWeightError, UnknownPluginError
from ortlearn.learning_rates import LearningRateSGD, resolve_learning_rate
from ortlearn.penalties import L2Penalty


@pytest.fixture(scope="module")
def samples():
    random = np.random.RandomState(0)
    X = random.randn(30, 3)
    return X, X @ [1.0, -2.0, 0.5]


def test_names_of_plugins_in_any_case(samples):
    def trained(**names):
        return OrtGradientOptimizer(Ridge(), max_iter=2, random_state=0, **names).fit(*samples).trained_coef_

    expected = trained(learning_rate="Adam", learning_loss="huber", learning_penalty="l2")
    found = trained(learning_rate="adam", learning_loss="Huber", learning_penalty={"coef_": "L2"})
    np.testing.assert_array_equal(found["coef"], expected["coef"])
    assert (
        resolve_learning_rate(LearningRateSGD(learning_rate="OPTIMAL", alpha=0.01)).resolved_schedule().alpha
        == 0.01
    )


@pytest.mark.parametrize("schedule", ["constant", "Adaptive", "invscaling", "optimal"])
def test_schedule_as_learning_rate(schedule):
    expected = f"'{schedule}' is a schedule.*LearningRateSGD\\(schedule='{schedule}'\\)"
    with pytest.raises(UnknownPluginError, match=expected):
        resolve_learning_rate(schedule)


@pytest.mark.parametrize(
    "given, nested, example",
    [
        ({"learning_rate": "Adam"}, "learning_rate__eta0", r"LearningRateAdam\(\)"),
        ({"learning_rate": 0.5}, "learning_rate__eta0", r"LearningRateSGD\(eta0=0.5\)"),
        ({"learning_rate": "nobody"}, "learning_rate__eta0", r"LearningRateSGD\(\)"),
        ({"learning_penalty": "l1"}, "learning_penalty__l1", r"L1Penalty\(\)"),
        ({"learning_penalty": None}, "learning_penalty__l1", r"ElasticPenalty\(\)"),
        ({"learning_loss": "huber"}, "learning_loss__delta", r"HuberLoss\(\)"),
    ],
    ids=["name", "number", "unknown", "penalty", "none", "loss"],
)
def test_message_shows_an_object_for_a_given_name(given, nested, example):
    trainer = OrtGradientOptimizer(Ridge(), **given)
    with pytest.raises(ValueError, match=f"such as {nested.partition('__')[0]}={example}"):
        trainer.set_params(**{nested: 1.0})


@pytest.mark.parametrize(
    "pattern, meant",
    [
        ("coefs", "coefs_*"),
        ("coefs[0]", "coefs_[0]"),
        ("mlpregressor__coefs_[1]", "mlpregressor.coefs_[1]"),
        ("pca__components_", "pca.components_"),
        ("pca__components", "pca.components_"),
        ("component_", "components_"),
    ],
)
def test_similar_weight_names(pattern, meant, samples):
    network = MLPRegressor(hidden_layer_sizes=(2,), solver="lbfgs", max_iter=300, random_state=0)
    model = make_pipeline(PCA(2), network).fit(*samples)
    with pytest.raises(NoTrainableWeightError) as caught:
        OrtGradientOptimizer(model, weights_to_train=pattern).fit(*samples)
    assert str(caught.value).endswith(f"Did you mean {meant!r}?")
    OrtGradientOptimizer(model, weights_to_train=meant, max_iter=1).fit(*samples)


def test_no_hint_without_a_similar_name(samples):
    with pytest.raises(NoTrainableWeightError, match=r"\]\.$"):
        OrtGradientOptimizer(Ridge(), weights_to_train="qqqq").fit(*samples)


@pytest.mark.parametrize("kind", ["text", "objects", "frame"])
@pytest.mark.parametrize("fitted", [False, True], ids=["new", "fitted"])
def test_text_in_X(kind, fitted, samples):
    X, y = samples
    text = {"text": X.astype(str), "objects": X.astype(str).astype(object), "frame": pandas.DataFrame(X)}[
        kind
    ]
    text = text.astype(str) if kind == "frame" else text
    model = Ridge().fit(X, y) if fitted else Ridge()
    with pytest.raises(ConversionError, match=r"^Ridge requires numeric input.*X.astype\(float\)"):
        OrtGradientOptimizer(model).fit(text, y)


def _with_text_and_dates(X):
    days = pandas.date_range("2026-01-01", periods=len(X))
    return pandas.DataFrame(X[:, :2], columns=["a", "b"]).assign(city=["Oslo", "Lima"][len(X) % 2], day=days)


@pytest.mark.parametrize("model", [Ridge(), HistGradientBoostingRegressor(max_iter=2)], ids=["ridge", "hist"])
@pytest.mark.parametrize("library", ["pandas", "polars", "array"])
def test_columns_of_text_and_dates_before_a_fit(model, library, samples):
    X, y = samples
    frame = _with_text_and_dates(X)
    forms = {"pandas": frame, "polars": polars.from_pandas(frame), "array": frame.to_numpy()}
    keys = "2 .text., 3 .dates." if library == "array" else "'city' .text., 'day' .dates."
    with pytest.raises(ValueError, match=f"{type(model).__name__} takes numbers, .*: {keys}. Encode text"):
        OrtGradientOptimizer(model).fit(forms[library], y)
    with pytest.raises(ValueError, match=r"other types: 'day' \(dates\)\. Convert dates .* Or drop"):
        OrtGradientOptimizer(model).fit(frame.drop(columns="city"), y)


def test_columns_of_text_that_a_pipeline_does_not_encode(samples):
    X, y = samples
    frame = _with_text_and_dates(X).drop(columns="day")
    encoded = make_column_transformer((OneHotEncoder(), ["city"]), remainder="passthrough")
    pipeline = make_pipeline(encoded, Ridge())
    OrtGradientOptimizer(pipeline, max_iter=2).fit(frame, y)
    with pytest.raises(
        ValueError, match=r"not all columns .* encoded: 'city' \(text\), 'street' \(text\)\. Enc"
    ):
        OrtGradientOptimizer(pipeline, max_iter=2).fit(frame.assign(street="High Street"), y)


@pytest.mark.parametrize("missing", [None, np.nan, pandas.NA], ids=["None", "NaN", "NA"])
@pytest.mark.parametrize("call", ["fit", "partial_fit"])
@pytest.mark.parametrize("model", [Ridge(), LogisticRegression()], ids=["values", "classes"])
def test_missing_labels(model, call, missing, samples):
    X, y = samples
    labels = (y if isinstance(model, Ridge) else np.where(y > 0, "yes", "no")).astype(object)
    labels[4] = missing
    lists = [labels.tolist()] if missing is not np.nan else []  # numpy converts NaN in lists
    for given in (labels, pandas.Series(labels), *lists):
        with pytest.raises(ValueError, match="y has no label for sample 4"):
            getattr(OrtGradientOptimizer(model), call)(X, given)
    with pytest.raises(ValueError, match="y_val has no label for sample 4"):
        OrtGradientOptimizer(model, max_iter=1).fit(X, np.where(y > 0, 1, 0), X_val=X, y_val=labels)


def test_inverse_of_a_target_scaler_overflows(samples):
    X, y = samples
    model = TransformedTargetRegressor(Ridge(), transformer=StandardScaler())
    with pytest.raises(ConversionError, match="StandardScaler .* overflows float32"):
        OrtGradientOptimizer(model).fit(X, y * 1e39)
    trainer = OrtGradientOptimizer(model, dtype="float64", max_iter=2, random_state=0).fit(X, y * 1e39)
    assert np.isfinite(trainer.predict(X)).all()


def test_no_output_for_weights_without_gradient(samples, capfd):
    X, y = samples
    X = np.where(X > 1.5, np.nan, X)
    model = make_pipeline(SimpleImputer(), Ridge())
    trainer = OrtGradientForwardBackwardOptimizer(model, weights_to_train="*", max_iter=1)
    trainer.fit(X, y)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "penalty",
    [L2Penalty(0.1, weights="coefs_*"), {"coefs_[0]": "l2", "coefs_*": L2Penalty(0.1, weights="coefs_[1]")}],
    ids=["one", "several"],
)
def test_weight_names_of_penalties(penalty, samples):
    network = MLPRegressor(hidden_layer_sizes=(2,), solver="lbfgs", max_iter=300, random_state=0).fit(
        *samples
    )
    trainer = OrtGradientOptimizer(network, learning_penalty=penalty, max_iter=2, random_state=0).fit(
        *samples
    )
    found = sorted(name for part in trainer.penalty_.parts() for name in part.weights)
    assert found == ["coefs_0", "coefs_1"] and set(found) <= set(trainer.trained_coef_)
