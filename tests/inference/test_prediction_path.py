"""Numeric samples skip scikit-learn's validation, with the same results and errors."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression

from ortlearn.estimators import OrtGradientOptimizer
from ortlearn.inference.fast_validation import validated_matrix
from ortlearn.problem.input_validation import read_samples
from tests.calls import calls_of


@pytest.fixture(scope="module")
def X():
    return np.random.RandomState(0).normal(size=(40, 3)).astype(np.float32)


@pytest.fixture(scope="module", params=["float32", "float64"])
def fitted(request, X):
    """Return a fitted regressor or classifier."""
    options = {"max_iter": 3, "random_state": 0, "dtype": request.param}
    return (
        OrtGradientOptimizer(LinearRegression(), **options).fit(X, X[:, 0]),
        OrtGradientOptimizer(LogisticRegression(), **options).fit(X, np.where(X[:, 1] > 0, "up", "down")),
    )


@pytest.fixture
def validated():
    """Return a list with one element per full validation of X."""
    with calls_of(read_samples) as calls:
        yield calls


def outputs(model, samples):
    """Return the outputs of all methods."""
    results = {"predict": model.predict(samples)}
    if hasattr(model, "classes_"):
        results["proba"] = model.predict_proba(samples)
        results["scores"] = model.decision_function(samples)
    return results


def assert_same_as_full_validation(model, X, is_quick):
    """Check that the quick validation returns what the full one does, or None."""
    fitted = model._fitted
    found = validated_matrix(fitted.problem.trainable, X, fitted.features)
    assert (found is not None) == is_quick
    if is_quick:
        expected = read_samples(fitted.problem, X, fitted.features)
        np.testing.assert_array_equal(found, expected, strict=True)


FORMS = {
    "float32": lambda X: X.astype(np.float32),
    "float64": lambda X: X.astype(np.float64),
    "float16": lambda X: X.astype(np.float16),
    "int": lambda X: (3 * X).astype(np.int64),
    "bool": lambda X: X > 0,
    "Fortran": np.asfortranarray,
    "every other sample": lambda X: np.repeat(X, 2, axis=0)[::2],
    "columns of more": lambda X: np.hstack([X, X])[:, 1:4],
    "read only": lambda X: np.frombuffer(X.tobytes(), dtype=X.dtype).reshape(X.shape),
    "list": lambda X: X.tolist(),
    "one sample": lambda X: X[:1],
    "swapped bytes": lambda X: X.astype(X.dtype.newbyteorder()),
    "subclass": lambda X: X.view(np.recarray),
}


@pytest.mark.parametrize("form", list(FORMS))
def test_quick_validation_equals_the_full_one(form, fitted, X):
    for model in fitted:
        assert_same_as_full_validation(model, FORMS[form](X), form != "subclass")


def test_losses_skip_validation(fitted, validated, X):
    fitted[0].losses(X.astype(fitted[0].dtype), X[:, 0])
    assert not validated


def test_only_numeric_samples_skip_validation(fitted, validated, X):
    model = fitted[0]
    ready = np.ascontiguousarray(X, dtype=model.dtype)
    other = np.float64 if model.dtype == "float32" else np.float32
    for given in (
        ready,
        ready[3:7],
        ready.astype(other),
        np.asfortranarray(ready),
        ready[::2],
        ready.tolist(),
    ):
        model.predict(given)
    assert not validated
    for given in (ready.astype(object), list(ready), ready.astype(str).tolist()):
        try:
            model.predict(given)
        except ValueError:
            pass
    assert len(validated) == 3


def test_masks_in_lists_are_not_ignored(fitted, X):
    for samples in (
        [np.ma.masked_array(row, mask=row > 0) for row in X],
        [list(np.ma.masked_array(X[0], mask=True))],
    ):
        with pytest.raises(ValueError, match="mask|NaN"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted[0].predict(samples)


def test_samples_of_different_lengths(fitted):
    with pytest.raises(ValueError, match="inhomogeneous"):
        fitted[0].predict([[1.0, 2.0, 3.0], [1.0]])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [(0, 0), (39, 2)])
def test_non_finite_values_are_rejected(bad, place, fitted, X):
    for model in fitted:
        samples = X.astype(model.dtype)
        samples[place] = bad
        for call in (model.predict, getattr(model, "predict_proba", model.predict)):
            with pytest.raises(ValueError, match="NaN|infinity"):
                call(samples)


def test_cancelling_infinities_are_rejected(fitted, X):
    model = fitted[0]
    samples = X.astype(model.dtype)
    samples[0, 0], samples[1, 0] = np.inf, -np.inf
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match="infinity"):
        model.predict(samples)  # the sum in scikit-learn warns


def test_finite_values_with_overflowing_sum(fitted, validated, X):
    model = fitted[0]
    samples = X.astype(model.dtype)
    samples[:, 0] = np.finfo(model.dtype).max / 8
    got = model.predict(samples)
    assert validated and got.shape == (40,)
    coef = np.concatenate([a.ravel() for n, a in model.trained_coef_.items() if "coef" in n])
    expected = samples.astype(np.float64) @ coef
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_other_numbers_of_features(fitted, X):
    for model in fitted:
        for columns in (2, 4):
            samples = np.zeros((5, columns), dtype=model.dtype)
            with pytest.raises(ValueError, match=f"X has {columns} features, but .* is expecting 3 features"):
                model.predict(samples)


def test_other_dimensions(fitted):
    for model in fitted:
        with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
            model.predict(np.zeros(3, dtype=model.dtype))
        with pytest.raises(ValueError, match="dim"):
            model.predict(np.zeros((2, 3, 1), dtype=model.dtype))


def test_no_samples(fitted):
    for model in fitted:
        with pytest.raises(ValueError, match="0 sample"):
            model.predict(np.zeros((0, 3), dtype=model.dtype))


def test_unfitted(X):
    with pytest.raises(NotFittedError):
        OrtGradientOptimizer(LinearRegression()).predict(X)
    with pytest.raises(NotFittedError):
        OrtGradientOptimizer(LogisticRegression()).predict_proba(X)


def test_feature_names_are_checked(validated, X):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = OrtGradientOptimizer(LinearRegression(), max_iter=2, random_state=0).fit(frame, X[:, 0])
    validated.clear()
    expected = model.predict(frame)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        np.testing.assert_array_equal(model.predict(X), expected)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["b", "a", "c"]])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"c": "d"}))
    assert len(validated) == 3  # all except the frame it was fitted on


@pytest.mark.parametrize("kind", ["float64", "int32", "bool", "Float32", "object", "float32[pyarrow]"])
def test_frames_are_read_as_by_full_validation(kind, X):
    if "pyarrow" in kind:
        pytest.importorskip("pyarrow")
    frame = pd.DataFrame(np.round(3 * X), columns=["a", "b", "c"])
    model = OrtGradientOptimizer(LogisticRegression(), max_iter=2, random_state=0).fit(frame, X[:, 1] > 0)
    assert_same_as_full_validation(model, frame.astype({"b": kind}), kind in ("float64", "int32"))


def test_missing_values_of_a_frame_are_rejected(X):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = OrtGradientOptimizer(LinearRegression(), max_iter=2, random_state=0).fit(frame, X[:, 0])
    frame.iloc[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.predict(frame)


def test_frame_after_an_array(X):
    model = OrtGradientOptimizer(LinearRegression(), max_iter=2, random_state=0).fit(X, X[:, 0])
    with pytest.warns(UserWarning, match="has feature names, but"):
        samples = model.predict(pd.DataFrame(X, columns=["a", "b", "c"]))
    np.testing.assert_array_equal(samples, model.predict(X))


def test_samples_are_not_changed(fitted, X):
    for model in fitted:
        samples = X.astype(model.dtype)
        before = samples.copy()
        outputs(model, samples)
        np.testing.assert_array_equal(samples, before)


def test_predictions_are_not_overwritten(fitted, X):
    for model in fitted:
        samples = X.astype(model.dtype)
        first = model.predict(samples)
        kept = first.copy()
        model.predict(samples[::-1].copy())
        np.testing.assert_array_equal(first, kept)


def test_predictions_after_another_fit(X):
    model = OrtGradientOptimizer(LinearRegression(), max_iter=5, random_state=0, learning_rate=0.1)
    first = model.fit(X, X[:, 0]).predict(X)
    second = model.fit(X, -X[:, 0]).predict(X)
    assert np.corrcoef(first, second)[0, 1] < 0
    narrow = np.ascontiguousarray(X[:, :2])
    assert model.fit(narrow, X[:, 0]).predict(narrow).shape == (40,)
    with pytest.raises(ValueError, match="features"):
        model.predict(X)
