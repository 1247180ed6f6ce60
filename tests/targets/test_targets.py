"""Shapes and types of labels and of predictions."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression


@pytest.mark.parametrize("shape", [(442,), (442, 1)])
@pytest.mark.parametrize("fitted", [False, True])
def test_one_output(shape, fitted, optimizer, diabetes_units):
    X, y = diabetes_units
    estimator = LinearRegression()
    if fitted:
        estimator.fit(X, y)
    model = optimizer(estimator, learning_rate=0.01, max_iter=5, random_state=0).fit(X, y.reshape(shape))
    flat = optimizer(estimator, learning_rate=0.01, max_iter=5, random_state=0).fit(X, y)
    assert model.predict(X).shape == shape
    assert model.losses(X, y.reshape(shape)).shape == (442,)
    np.testing.assert_array_equal(model.predict(X).ravel(), flat.predict(X))


def test_several_outputs(optimizer, two_outputs):
    X, y = two_outputs
    model = optimizer(LinearRegression(), learning_rate=0.01, max_iter=10, random_state=0).fit(X, y)
    assert model.predict(X).shape == y.shape
    half_squares = ((model.predict(X) - y) ** 2).sum(axis=1) / 2
    np.testing.assert_allclose(model.losses(X, y), half_squares, rtol=1e-4, atol=1e-6)


def test_another_number_of_outputs_is_rejected(optimizer, two_outputs):
    X, y = two_outputs
    model = optimizer(LinearRegression().fit(X, y), max_iter=1)
    for wrong in (y[:, 0], np.hstack([y, y])):
        with pytest.raises(ValueError, match=r"y has \d outputs?, the model has 2"):
            model.fit(X, wrong)


@pytest.mark.parametrize("dtype", [bool, np.int32, np.uint8, float])
def test_types_of_two_classes(dtype, optimizer, cancer):
    X, y = cancer
    model = optimizer(LogisticRegression(), learning_rate=0.05, max_iter=5, random_state=0)
    assert model.fit(X, y.astype(dtype)).score(X, y.astype(dtype)) > 0.95
    assert model.predict(X).dtype == model.classes_.dtype == dtype


def test_frames(optimizer, diabetes_units):
    X, y = diabetes_units
    frame = pd.DataFrame(X, columns=[f"feature{i}" for i in range(10)])
    target = pd.Series(y, index=np.arange(len(y))[::-1])
    model = optimizer(LinearRegression(), learning_rate=0.01, max_iter=3, random_state=0).fit(frame, target)
    plain = optimizer(LinearRegression(), learning_rate=0.01, max_iter=3, random_state=0).fit(X, y)
    assert model.feature_names_in_.tolist() == list(frame.columns)
    np.testing.assert_array_equal(model.predict(frame), plain.predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={"feature0": "other"}))
    with pytest.raises(ValueError, match="feature names should match"):
        model.partial_fit(frame[frame.columns[::-1]], target)
    model.fit(X, y)  # feature names are removed
    assert not hasattr(model, "feature_names_in_")
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
