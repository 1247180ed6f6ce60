"""class_weight."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight

from ortlearn import OrtGradientOptimizer
from ortlearn.losses import add_loss_output
from ortlearn.penalties import L2Penalty
from ortlearn.targets.class_weights import class_weight_tables
from ortlearn.trainable.from_estimator import sklearn_to_onnx

WEIGHTS = {
    "dict": {"b": 5.0, "c": 0.25},
    "all": {"a": 1, "b": 2.5, "c": 7},
    "zero": {"a": 0.0},
    "balanced": "balanced",
}


@pytest.fixture(scope="module")
def letters(wine):
    """Return a problem of three imbalanced classes."""
    X, y = wine
    kept = np.flatnonzero((y < 2) | (np.arange(len(y)) % 4 == 0))
    return X[kept], np.array(["a", "b", "c"])[y[kept]]


@pytest.fixture(scope="module")
def two_letters(letters):
    X, y = letters
    return X[y != "c"][:80], y[y != "c"][:80]


def optimum(**options):
    """Return parameters that reach the optimum of logistic regression with penalty 0.05 w^2."""
    model = OrtGradientOptimizer(
        LogisticRegression(), learning_rate="LBFGS", learning_penalty=L2Penalty(0.05), max_iter=300, **options
    )
    return model.set_params(dtype="float64", random_state=0)


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("data", ["letters", "two_letters"])
def test_same_optimum_as_logistic_regression(name, data, request):
    X, y = request.getfixturevalue(data)
    spec = {"dict": {"b": 5.0}}.get(name, WEIGHTS[name]) if data == "two_letters" else WEIGHTS[name]
    total = compute_sample_weight(spec, y).sum()
    theirs = LogisticRegression(C=10 / total, class_weight=spec, tol=1e-10, max_iter=2000).fit(X, y)
    ours = optimum(class_weight=spec).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=2e-4)


def test_balanced_weights_equal_those_of_scikit_learn(optimizer, letters):
    X, y = letters
    options = {"max_iter": 3, "random_state": 0, "learning_rate": 0.1}
    ours = optimizer(LogisticRegression(), class_weight="balanced", **options).fit(X, y)
    by_sample = optimizer(LogisticRegression(), **options)
    by_sample.fit(X, y, sample_weight=compute_sample_weight("balanced", y))
    plain = optimizer(LogisticRegression(), **options).fit(X, y)
    np.testing.assert_allclose(ours.trained_coef_["coef"], by_sample.trained_coef_["coef"], rtol=1e-5)
    np.testing.assert_allclose(ours.train_losses_, by_sample.train_losses_, rtol=1e-5)
    assert np.abs(ours.trained_coef_["coef"] - plain.trained_coef_["coef"]).max() > 0.01


def test_class_weight_times_sample_weight(optimizer, letters):
    X, y = letters
    weights_of_samples = np.random.RandomState(0).uniform(0.5, 2, len(y))
    options = {"max_iter": 3, "random_state": 0}
    ours = optimizer(LogisticRegression(), class_weight=WEIGHTS["all"], **options)
    product = weights_of_samples * compute_sample_weight(WEIGHTS["all"], y)
    expected = optimizer(LogisticRegression(), **options).fit(X, y, sample_weight=product)
    np.testing.assert_allclose(
        ours.fit(X, y, sample_weight=weights_of_samples).predict_proba(X),
        expected.predict_proba(X),
        rtol=1e-5,
    )


def test_balanced_weights_with_repeated_samples(letters):
    X, y = letters
    counts = np.random.RandomState(0).randint(0, 4, len(y))
    weighted = optimum(class_weight="balanced").fit(X, y, sample_weight=counts)
    repeated = optimum(class_weight="balanced")
    repeated.fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-6)


def test_balanced_with_a_class_of_weight_zero(letters):
    y = letters[1]
    weights = (y != "c").astype(float)
    (ours,) = class_weight_tables("balanced", "classifier", y, sample_weight=weights)
    (without,) = class_weight_tables("balanced", "classifier", y[y != "c"])
    assert ours == {**without, "c": 1.0}


def test_several_columns_of_classes(optimizer, wine):
    X, y = wine
    Y = np.stack([y, y > 0], axis=1)
    options = {"max_iter": 3, "random_state": 0}
    for spec in ("balanced", [{0: 2.0}, {1: 3.0, 0: 1.0}]):
        source = RandomForestClassifier(2, max_depth=3, random_state=0).fit(X, Y)
        ours = optimizer(source, class_weight=spec, **options).fit(X, Y)
        expected = optimizer(source, **options).fit(X, Y, sample_weight=compute_sample_weight(spec, Y))
        for mine, theirs in zip(ours.predict_proba(X), expected.predict_proba(X), strict=True):
            np.testing.assert_allclose(mine, theirs, atol=1e-6)


@pytest.mark.parametrize("make", [np.asarray, csr_matrix, np.ndarray.tolist], ids=["array", "sparse", "list"])
def test_several_labels(make, optimizer, wine):
    X, y = wine
    labels = np.stack([y == 0, y > 1], axis=1).astype(int)
    weights_of_samples = compute_sample_weight("balanced", labels)
    options = {"max_iter": 2, "random_state": 0, "learning_rate": 0.1}
    ours = optimizer(MLPClassifier((4,)), class_weight="balanced", **options).fit(X, make(labels))
    expected = optimizer(MLPClassifier((4,)), **options).fit(X, labels, sample_weight=weights_of_samples)
    np.testing.assert_allclose(ours.predict_proba(X), expected.predict_proba(X), rtol=1e-5)


def test_initial_fit_uses_class_weight(optimizer, letters):
    X, y = letters
    wrapped = SGDClassifier(loss="log_loss", class_weight={"a": 3.0}, random_state=0)
    options = {"warm_start": True, "learning_rate": 1e-30, "max_iter": 1, "dtype": "float64"}
    ours = optimizer(wrapped, class_weight={"b": 100.0}, **options).fit(X, y)
    np.testing.assert_allclose(ours.trained_coef_["coef"], wrapped.fit(X, y).coef_.T, rtol=1e-9)


def test_validation_loss_is_weighted(optimizer, letters):
    X, y = letters
    rate = {"learning_rate": 1e-30, "max_iter": 1, "batch_size": 1000, "random_state": 0}
    model = optimizer(LogisticRegression(), class_weight="balanced", **rate)
    model.fit(X, y, X_val=X[:40], y_val=y[:40])
    of_classes = compute_class_weight("balanced", classes=np.array(list("abc")), y=y)
    weights = of_classes[np.searchsorted(["a", "b", "c"], y[:40])]
    expected = np.average(model.losses(X[:40], y[:40]), weights=weights)
    np.testing.assert_allclose(model.validation_losses_, [expected], rtol=1e-5)


def test_streams(optimizer, letters):
    X, y = letters
    weights = WEIGHTS["all"]
    options = {"random_state": 0, "shuffle": False}
    ours = optimizer(LogisticRegression(), class_weight=weights, **options)
    expected = optimizer(LogisticRegression(), **options)
    for batch in (y != "c", y != "a", y == "b"):  # batches without some classes
        ours.partial_fit(X[batch], y[batch], classes=["a", "b", "c"])
        batch_weights = compute_sample_weight(weights, y[batch]) if (y[batch] != "b").any() else None
        expected.partial_fit(X[batch], y[batch], classes=["a", "b", "c"], sample_weight=batch_weights)
    np.testing.assert_allclose(ours.predict_proba(X), expected.predict_proba(X), rtol=1e-5)
    ours.set_params(class_weight={"b": 0.0, "a": 1.0})
    with pytest.raises(ValueError, match="All weights are zero"):
        ours.partial_fit(X[y == "b"], y[y == "b"])
    ours.set_params(class_weight="balanced")
    with pytest.raises(ValueError, match="not supported for partial_fit.*compute_class_weight"):
        ours.partial_fit(X, y)


def test_onnx_classifier(optimizer, letters):
    X, y = letters
    numbers = np.searchsorted(["a", "b", "c"], y)
    source = sklearn_to_onnx(LogisticRegression().fit(X, numbers), 13)
    options = {"max_iter": 3, "random_state": 0}
    ours = optimizer(source, class_weight="balanced", **options).fit(X, numbers)
    weights_of_samples = compute_sample_weight("balanced", numbers)
    expected = optimizer(source, **options).fit(X, numbers, sample_weight=weights_of_samples)
    np.testing.assert_allclose(ours.predict_proba(X), expected.predict_proba(X), rtol=1e-5)


NO_CLASSIFIERS = {
    "regressor": (LinearRegression(), "this model is a regressor"),
    "outliers": (IsolationForest(n_estimators=3), "this model is an outlier detector"),
}


@pytest.mark.parametrize("name", NO_CLASSIFIERS)
def test_classifiers_only(name, optimizer, wine):
    X, y = wine
    source, message = NO_CLASSIFIERS[name]
    with pytest.raises(ValueError, match=f"class_weight applies to classifiers only, and {message}"):
        optimizer(source, class_weight={1: 2.0}).fit(X, np.where(y > 0, 1, -1))


WRONG = {
    "misspelled": ({"A": 2.0, "b": 1.0}, r"the unknown classes \['A'\]: its keys must be among"),
    "numbers_for_text": ({0: 1.0, 1: 2.0, 2: 3.0}, "has the unknown classes"),
    "negative": ({"a": -1.0}, "'a' must be a number >= 0, not -1.0"),
    "text": ({"a": "much"}, "must be a number"),
    "missing_value": ({"a": np.nan}, "must be a number"),
    "too_many": ([{"a": 1.0}, {"b": 1.0}], r"for 2 column\(s\) of y, which has 1"),
    "nothing_left": ({"a": 0.0, "b": 0.0, "c": 0.0}, "All weights are zero"),
    "other_name": ("even", "class_weight"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_class_weights(name, optimizer, letters, unchanged):
    X, y = letters
    spec, message = WRONG[name]
    fitted = optimizer(LogisticRegression(), max_iter=1).fit(X, y)

    def fails():
        with pytest.raises(ValueError, match=message):
            fitted.fit(X, y)

    fitted.set_params(class_weight=spec)
    unchanged(fitted, X, fails)


def test_dictionary_with_several_columns_is_rejected(optimizer, wine):
    X, y = wine
    model = optimizer(MultiOutputClassifier(LogisticRegression(max_iter=500)), class_weight={0: 2.0})
    with pytest.raises(ValueError, match=r"for 1 column\(s\) of y, which has 2: pass 'balanced' or a list"):
        model.fit(X, np.stack([y > 0, y > 1], axis=1).astype(int))


def test_weights_of_absent_classes(optimizer, two_letters):
    X, y = two_letters
    model = optimizer(LogisticRegression(), class_weight={"a": 1, "b": 2, "z": 3}, max_iter=1)
    assert model.fit(X, y).classes_.tolist() == ["a", "b"]


def test_graph_with_loss(optimizer, two_letters):
    X, y = two_letters
    numbers = (y == "b").astype(int)
    base = sklearn_to_onnx(LogisticRegression().fit(X, numbers), 13)
    options = {"output_index": "probabilities", "label_name": "truth"}
    labels = np.eye(2)[numbers]
    without = add_loss_output(base, "squared_error", **options)
    model = {"label_name": "truth", "learning_rate": 1e-3, "max_iter": 2, "random_state": 0}
    spec = [{0: 1.0, 1: 3.0}, {0: 1.0, 1: 1.0}]
    with pytest.raises(ValueError, match="add one with add_loss_output"):
        optimizer(without, class_weight=spec, **model).fit(X, labels)
    source = add_loss_output(base, "squared_error", weight_name="sample_weight", **options)
    ours = optimizer(source, class_weight=spec, **model).fit(X, labels)
    weights_of_samples = np.where(numbers == 0, 3.0, 1.0)
    expected = optimizer(source, **model).fit(X, labels, sample_weight=weights_of_samples)
    np.testing.assert_allclose(ours.trained_coef_["coef"], expected.trained_coef_["coef"], rtol=1e-6)
