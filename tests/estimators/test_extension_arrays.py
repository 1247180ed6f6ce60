"""Labels, weights and features as arrays with types of pandas and polars equal those of NumPy."""

import numpy as np
import pytest
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression, Ridge

from ortlearn import OrtGradientOptimizer

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pytest.importorskip("pyarrow")
X = np.random.default_rng(0).standard_normal((80, 3))
FRAME = pd.DataFrame(X, columns=list("abc"))
TEXTS = np.array(["no", "yes"])[(X[:, 0] > 0).astype(int)]
CODES, VALUES, WEIGHTS = (X[:, 0] > 0).astype(np.int64), 2 * X[:, 0], np.abs(X[:, 1]) + 0.1
#: Labels of classifiers, and the same as an ordinary array.
LABELS = {
    "texts": (pd.Series(TEXTS).values, TEXTS),
    "texts of Python": (pd.array(TEXTS, dtype="string[python]"), TEXTS),
    "categories": (pd.Categorical(TEXTS), TEXTS),
    "Int64": (pd.array(CODES, dtype="Int64"), CODES.astype(float)),  # as in scikit-learn
    "series of Int64": (pd.Series(CODES, dtype="Int64"), CODES.astype(float)),
    "boolean": (pd.array(CODES == 1, dtype="boolean"), CODES.astype(float)),
    "integers of pyarrow": (pd.array(CODES, dtype="int64[pyarrow]"), CODES.astype(float)),
    # polars starts threads, which do not survive a fork: not at import
    "texts of polars": (lambda: pl.Series(TEXTS), TEXTS),
    "categories of polars": (lambda: pl.Series(TEXTS, dtype=pl.Categorical), TEXTS),
}
FLOATS = {"Float64": "Float64", "pyarrow": "double[pyarrow]"}
CLASSIFIERS = {
    "linear": LogisticRegression(),
    "forest": RandomForestClassifier(5, max_depth=3, random_state=0),
    "histograms": HistGradientBoostingClassifier(max_iter=5, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=5, random_state=0),
}
OPTIONS = {"max_iter": 2, "random_state": 0}
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def labels(name):
    given, plain = LABELS[name]
    return given() if callable(given) else given, plain


def same(found, expected):
    for name, array in expected.trained_coef_.items():
        np.testing.assert_array_equal(found.trained_coef_[name], array)
    if hasattr(expected, "classes_"):
        assert found.classes_.tolist() == expected.classes_.tolist()


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    "name, model",
    [
        *((name, "forest") for name in LABELS),
        *(("texts", model) for model in CLASSIFIERS if model != "forest"),
    ],
)
def test_warm_start_of_a_classifier(name, model):
    given, plain = labels(name)
    fitted = CLASSIFIERS[model].fit(FRAME, plain)
    for options in ({"warm_start": True}, {"early_stopping": True}):
        pairs = [OrtGradientOptimizer(fitted, **options, **OPTIONS).fit(FRAME, y) for y in (given, plain)]
        same(*pairs)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", LABELS)
def test_labels_of_every_method(optimizer, name):
    given, plain = labels(name)
    options = {**OPTIONS, "learning_rate": 0.1}

    def trained(method, y, **arguments):
        return getattr(optimizer(LogisticRegression(), **options), method)(FRAME, y, **arguments)

    calls = {
        "fit": lambda y: {"X_val": FRAME, "y_val": y},
        "partial_fit": lambda y: {"classes": y},
        "fit_stream": lambda y: {},
    }
    for method, arguments in calls.items():
        pairs = [trained(method, y, **arguments(y)) for y in (given, plain)]
        same(*pairs)
        assert pairs[0].score(FRAME, given) == pairs[1].score(FRAME, plain)
    halves = [(FRAME[:40], given[:40]), (FRAME[40:], given[40:])]
    same(optimizer(LogisticRegression(), **options).fit_stream(halves), trained("fit_stream", plain))


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize(
    "model",
    [
        Ridge(),
        RandomForestRegressor(5, max_depth=3, random_state=0),
        HistGradientBoostingRegressor(max_iter=5),
    ],
    ids=lambda model: type(model).__name__,
)
def test_values_weights_and_features(kind, model):
    fitted, found = model.fit(FRAME, VALUES), []
    given = [pd.array(values, dtype=FLOATS[kind]) for values in (VALUES, WEIGHTS)]
    for X_given, (y, weight) in ((FRAME.astype(FLOATS[kind]), given), (FRAME, (VALUES, WEIGHTS))):
        trainer = OrtGradientOptimizer(fitted, warm_start=True, **OPTIONS)
        held_out = {"X_val": X_given, "y_val": y, "sample_weight_val": weight}
        found.append(trainer.fit(X_given, y, weight, **held_out))
    same(*found)


def test_vector_of_features():
    model = IsotonicRegression().fit(X[:, 0], VALUES)
    given = pd.array(X[:, 0], dtype="Float64"), pd.array(VALUES, dtype="Float64")
    found, expected = (
        OrtGradientOptimizer(model, **OPTIONS).fit(*samples) for samples in (given, (X[:, 0], VALUES))
    )
    same(found, expected)


def test_missing_labels_of_pandas(optimizer):
    y = pd.array([None, *CODES[1:].tolist()], dtype="Int64")
    with pytest.raises(ValueError, match="Input y contains NaN|y has no label for sample 0"):
        optimizer(LogisticRegression(), **OPTIONS).fit(FRAME, y)
