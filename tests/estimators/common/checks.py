"""Checks of estimators for any loss and learning rate."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError

from .cases import LEARNING_RATES, LOSSES, Case

__all__ = ["CHECKS"]

ONE_CLASS = "1 class|one class"


@lru_cache(maxsize=4)  # the checks of one case follow each other
def trained(case: Case) -> Any:
    """Return a cached fitted estimator, which checks must not train."""
    return case.estimator().fit(case.X, case.y)


def same_weights(first: Any, second: Any) -> None:
    """Assert that weights and losses of two estimators are equal, bit for bit."""
    assert first.train_losses_ == second.train_losses_
    assert first.trained_coef_.keys() == second.trained_coef_.keys()
    for name, array in first.trained_coef_.items():
        assert array.tobytes() == second.trained_coef_[name].tobytes(), name


def is_finite(model: Any, X: Any) -> None:
    """Assert that losses and predictions are finite."""
    assert np.isfinite(model.train_losses_).all()
    predicted = model.predict(X)
    assert len(predicted) == len(X)
    assert np.isfinite(predicted).all()


def check_parameters(case: Case) -> None:
    """Parameters of plugins are nested parameters of the estimator, and are cloned."""
    model = case.estimator(learning_loss=LOSSES[case.loss](), learning_rate=LEARNING_RATES[case.rate]())
    params = model.get_params(deep=True)
    for name in ("estimator", "learning_loss", "learning_rate"):
        for nested, value in getattr(model, name).get_params(deep=False).items():
            assert params[f"{name}__{nested}"] is value
    marker = object()
    nested = [name for name in params if "__" in name]
    changed = clone(model).set_params(**dict.fromkeys(nested, marker))
    assert all(changed.get_params()[name] is marker for name in nested)
    assert repr(model.get_params()) == repr(params)
    copied = clone(model.fit(case.X, case.y))
    assert repr(copied.get_params()) == repr(params)
    assert copied.learning_loss is not model.learning_loss
    assert copied.learning_rate is not model.learning_rate
    with pytest.raises(NotFittedError):
        copied.predict(case.X)
    same_weights(copied.fit(case.X, case.y), model)


def check_pickle(case: Case) -> None:
    """A pickled estimator predicts the same and continues the training equally."""
    model = case.estimator().fit(case.X, case.y)
    loaded = pickle.loads(pickle.dumps(model))
    same_weights(loaded, model)
    assert_array_equal(loaded.predict(case.X), model.predict(case.X))
    assert_array_equal(loaded.losses(case.X, case.y), model.losses(case.X, case.y))
    assert loaded.score(case.X, case.y) == model.score(case.X, case.y)
    if case.supports_partial_fit:
        same_weights(loaded.partial_fit(case.X, case.y), model.partial_fit(case.X, case.y))
    same_weights(loaded.fit(case.X, case.y), model.fit(case.X, case.y))


def check_determinism(case: Case) -> None:
    """Results are determined by the seed, bit for bit."""
    before = np.random.get_state()[1].copy()
    model = case.estimator().fit(case.X, case.y)
    assert_array_equal(np.random.get_state()[1], before)
    same_weights(case.estimator().fit(case.X, case.y), model)
    same_weights(case.estimator(random_state=np.random.RandomState(0)).fit(case.X, case.y), model)
    same_weights(trained(case), model)
    other = case.estimator(random_state=1).fit(case.X, case.y)
    assert other.train_losses_ != model.train_losses_


def check_labels_of_one_column(case: Case) -> None:
    """Labels of shape (n, 1) train like labels of shape (n,)."""
    flat = trained(case)
    assert flat.predict(case.X).shape == case.y.shape
    column = case.y.reshape(-1, 1)
    if case.is_classifier:
        with pytest.warns(DataConversionWarning, match="column-vector y was passed"):
            model = case.estimator().fit(case.X, column)
        assert model.predict(case.X).shape == case.y.shape
    else:
        model = case.estimator().fit(case.X, column)
        assert model.predict(case.X).shape == column.shape
    same_weights(model, flat)
    same_weights(case.estimator().fit(case.X, case.y.tolist()), flat)
    same_weights(case.estimator().fit(case.X, pd.Series(case.y, name="label")), flat)


def check_labels_of_several_columns(case: Case) -> None:
    """Several columns of values, or of labels 0 and 1, are supported."""
    if not case.supports_several_outputs:
        with pytest.raises(ValueError):
            case.estimator("multilabel").fit(case.X, case.several)
        return
    task = "regression" if case.task == "regression" else "multilabel"
    model = case.estimator(task).fit(case.X, case.several)
    is_finite(model, case.X)
    assert model.predict(case.X).shape == case.several.shape
    assert model.losses(case.X, case.several).shape == (len(case.X),)
    if task == "multilabel":
        assert set(np.unique(model.predict(case.X))) <= {0, 1}
    before = dict(model.__dict__)
    with pytest.raises(ValueError, match="y has"):
        model.losses(case.X, case.several[:, :1])
    assert model.__dict__.keys() == before.keys()


def check_types_of_X(case: Case) -> None:
    """Equal values of different types give the same weights."""
    model = trained(case)
    is_finite(model, case.X)
    forms: list[Any] = [
        case.X.astype(np.int64),
        case.X.astype(np.float32),
        np.asfortranarray(case.X),
        case.X.astype(object),
        case.X.tolist(),
    ]
    for form in forms:
        same_weights(case.estimator().fit(form, case.y), model)
        assert_array_equal(model.predict(form), model.predict(case.X))
    dtype = model.predict(case.X).dtype
    assert dtype == (case.y.dtype if case.is_classifier else np.float64)
    in_double = case.estimator(dtype="float64").fit(case.X, case.y)
    assert all(array.dtype == np.float64 for array in in_double.trained_coef_.values())
    is_finite(in_double, case.X)


FRAMES: dict[str, Callable[[np.ndarray, list[str]], Any]] = {
    "pandas": lambda X, names: pd.DataFrame(X, columns=names),
    "polars": lambda X, names: pl.DataFrame(X, schema=names),
}


def check_frames(case: Case) -> None:
    """Frames train like arrays; other names or another order of columns are errors."""
    names = ["size", "age", "weight"]
    plain = trained(case)
    for make in FRAMES.values():
        frame = make(case.X, names)
        model = case.estimator().fit(frame, case.y)
        same_weights(model, plain)
        assert model.feature_names_in_.tolist() == names
        assert_array_equal(model.predict(frame), plain.predict(case.X))
        for wrong in (make(case.X[:, ::-1], names[::-1]), make(case.X, ["size", "age", "height"])):
            for method in (lambda X, m=model: m.predict(X), lambda X, m=model: m.losses(X, case.y)):
                with pytest.raises(ValueError, match="feature names should match"):
                    method(wrong)
            if case.supports_partial_fit:
                with pytest.raises(ValueError, match="feature names should match"):
                    model.partial_fit(wrong, case.y)
        with pytest.warns(UserWarning, match="X does not have valid feature names"):
            model.predict(case.X)
        with pytest.warns(UserWarning, match="X has feature names, but"):
            plain.predict(frame)
    same_weights(model.fit(case.X, case.y), plain)
    assert not hasattr(model, "feature_names_in_")


def check_sparse(case: Case) -> None:
    """Sparse data trains like dense data."""
    dense = trained(case)
    for form in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array, sparse.dok_matrix):
        samples = form(case.X)
        model = case.estimator().fit(samples, case.y)
        for name, array in dense.trained_coef_.items():
            assert_allclose(model.trained_coef_[name], array, rtol=1e-5, atol=1e-6)
        assert_allclose(dense.losses(samples, case.y), dense.losses(case.X, case.y), rtol=1e-6)
        assert_array_equal(dense.predict(samples), dense.predict(case.X))
    if case.supports_partial_fit:
        model.partial_fit(samples, case.y)
        is_finite(model, case.X)


def check_few_rows(case: Case) -> None:
    """One sample is enough to predict and, if possible, to train; no samples are an error."""
    model = case.estimator().fit(case.X, case.y)
    assert_allclose(model.losses(case.X[3:4], case.y[3:4]), model.losses(case.X, case.y)[3:4], rtol=1e-5)
    one, whole = model.predict(case.X[3:4]), model.predict(case.X)[3:4]
    assert one.shape == (1,)
    assert_allclose(one, whole, rtol=1e-5)
    if case.is_classifier:
        with pytest.raises(ValueError, match=ONE_CLASS):
            case.estimator().fit(case.X[:1], case.y[:1])
    else:
        is_finite(case.estimator().fit(case.X[:1], case.y[:1]), case.X)
    if case.supports_partial_fit:
        is_finite(model.partial_fit(case.X[:1], case.y[:1]), case.X)
    for method in (model.predict, lambda X: case.estimator().fit(X, case.y[:0])):
        with pytest.raises(ValueError, match="0 sample"):
            method(case.X[:0])


def check_one_feature(case: Case) -> None:
    """One feature is enough, in two dimensions."""
    model = case.estimator().fit(case.X[:, :1], case.y)
    is_finite(model, case.X[:, :1])
    assert model.n_features_in_ == 1
    with pytest.raises(ValueError, match="1 feature"):
        model.predict(case.X)
    with pytest.raises(ValueError, match="Expected 2D array"):
        case.estimator().fit(case.X[:, 0], case.y)


def check_constant_labels(case: Case) -> None:
    """Constant values are learned; a single class is an error that does not change the estimator."""
    constant = np.full(len(case.X), case.y[0])
    if not case.is_classifier:
        is_finite(case.estimator().fit(case.X, constant), case.X)
        return
    model = case.estimator()
    before = dict(model.__dict__)
    with pytest.raises(ValueError, match=ONE_CLASS):
        model.fit(case.X, constant)
    assert model.__dict__ == before
    model.fit(case.X, case.y)
    weights = {name: array.copy() for name, array in model.trained_coef_.items()}
    with pytest.raises(ValueError, match=ONE_CLASS):
        model.fit(case.X, constant)
    assert all((model.trained_coef_[name] == array).all() for name, array in weights.items())


def check_names_of_classes(case: Case) -> None:
    """Two or more classes may have any names; regression rejects text."""
    if not case.is_classifier:
        with pytest.raises(ValueError, match="must contain numbers|must be real|[Uu]nknown label"):
            case.estimator().fit(case.X, np.array(["a", "b"] * 7)[: len(case.X)])
        return
    for n_classes, names in ((2, ["no", "yes"]), (3, ["ash", "birch", "cedar"])):
        numbers = np.arange(len(case.X)) % n_classes
        model = case.estimator().fit(case.X, numbers)
        for dtype in (str, object):
            labels = np.array(names, dtype=dtype)[numbers]
            named = case.estimator().fit(case.X, labels)
            same_weights(named, model)
            assert named.classes_.tolist() == names
            assert_array_equal(named.predict(case.X), np.array(names, dtype=object)[model.predict(case.X)])
            assert named.score(case.X, labels) == model.score(case.X, numbers)
            assert_array_equal(named.losses(case.X, labels), model.losses(case.X, numbers))


CHECKS: dict[str, Callable[[Case], None]] = {
    name.removeprefix("check_"): function
    for name, function in list(globals().items())
    if name.startswith("check_")
}
