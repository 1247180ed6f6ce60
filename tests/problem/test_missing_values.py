"""Missing values in X."""

import numpy as np
import pandas as pd
import pytest
from skl2onnx import to_onnx
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    StandardScaler,
)

from tests.estimators.mixed_frames import small_step


def test_imputed_values(optimizer, numbers):
    X, y = numbers[0].copy(), numbers[1]
    X[::6, 0] = np.nan
    fitted = make_pipeline(SimpleImputer(), Ridge()).fit(X, y)
    for form in (X, X.tolist(), pd.DataFrame(X)):
        model = small_step(optimizer, fitted).fit(form, y)
        np.testing.assert_allclose(model.predict(form), fitted.predict(X), rtol=1e-4, atol=1e-5)
    assert optimizer(fitted).__sklearn_tags__().input_tags.allow_nan
    assert not optimizer(Ridge()).__sklearn_tags__().input_tags.allow_nan


def test_missing_values_are_rejected_without_imputer(optimizer, numbers, unchanged):
    X, y = numbers
    holes = X.copy()
    holes[3, 1] = np.nan
    for model in (Ridge(), make_pipeline(StandardScaler(), Ridge())):
        trained = optimizer(model.fit(X, y), max_iter=1, random_state=0).fit(X, y)

        def fails(trained=trained):
            for method in (trained.predict, lambda X: trained.fit(X, y), lambda X: trained.partial_fit(X, y)):
                with pytest.raises(ValueError, match="contains NaN"):
                    method(holes)

        unchanged(trained, X, fails)
    with pytest.raises(ValueError, match="contains NaN"):
        optimizer(make_pipeline(StandardScaler(), Ridge())).fit(holes, y)


def test_missing_values_in_columns_without_imputer(optimizer, numbers):
    X, y = numbers[0].copy(), numbers[1]
    X[::6, 2] = np.nan
    filled = ColumnTransformer([("fill", SimpleImputer(), [2])], remainder="passthrough")
    model = optimizer(make_pipeline(filled, Ridge()), max_iter=2, random_state=0).fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    X[5, 1] = np.nan
    with pytest.raises(ValueError, match=r"contains NaN in columns \[1\]"):
        model.predict(X)
    names = pd.DataFrame(X, columns=["a", "b", "c"])
    model = optimizer(
        make_pipeline(
            make_column_transformer((SimpleImputer(), ["c"]), ("passthrough", ["a", "b"])), Ridge()
        ),
        max_iter=2,
        random_state=0,
    ).fit(names.fillna({"b": 0}), y)
    with pytest.raises(ValueError, match="contains NaN in column 'b'"):
        model.predict(names)


def test_trees_with_missing_values(both, numbers):
    X, y = numbers[0].copy(), numbers[1]
    X[::6, 0] = np.nan
    fitted = HistGradientBoostingRegressor(max_iter=5).fit(X, y)
    model = small_step(both[0], fitted).fit(X, y)
    np.testing.assert_allclose(model.predict(X), fitted.predict(X), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", [HistGradientBoostingRegressor, HistGradientBoostingClassifier])
def test_trees_with_categories(kind, both, people):
    """Missing and unknown categories are routed as in scikit-learn."""
    X, y = people[0][["age", "city", "fare", "kind"]], people[1]
    X = X.astype({"city": "category"})
    y = y if kind is HistGradientBoostingRegressor else np.where(y > 3, "much", "little")
    fitted = kind(max_iter=10, categorical_features=["city", "kind"], min_samples_leaf=5).fit(X, y)
    model = small_step(both[0], fitted).fit(X, y)
    assert sorted(value.name for value in model.onnx_.graph.input) == ["age", "city", "fare", "kind"]
    method = "predict" if kind is HistGradientBoostingRegressor else "predict_proba"
    for samples in (X, X.astype({"city": object}).assign(city="Quito"), X.assign(kind=None, fare=np.nan)):
        expected = getattr(fitted, method)(samples)
        np.testing.assert_allclose(getattr(model, method)(samples), expected, rtol=1e-4, atol=1e-5)
    trained = both[0](fitted, warm_start=True, max_iter=5, learning_rate=0.05, random_state=0).fit(X, y)
    assert trained.train_losses_[-1] < trained.train_losses_[0]


@pytest.mark.parametrize("trees", [False, True])
def test_files_that_take_missing_values(optimizer, numbers, run_onnx, trees):
    X, y = numbers
    X = X.astype(np.float32)
    X[::5, 0] = np.nan
    filled = ColumnTransformer([("fill", SimpleImputer(), [0])], remainder="passthrough")
    model = RandomForestRegressor(3, max_depth=3, random_state=0) if trees else make_pipeline(filled, Ridge())
    file = to_onnx(model.fit(X, y), X[:1], target_opset=18)
    trained = small_step(optimizer, file).fit(X, y)
    np.testing.assert_allclose(
        trained.predict(X), run_onnx(file, X)["variable"].ravel(), rtol=1e-4, atol=1e-4
    )
    np.testing.assert_allclose(
        trained.predict(X), run_onnx(trained.get_trained_onnx(), X)["variable"].ravel(), rtol=1e-5, atol=1e-5
    )
    X[3, 1] = np.nan
    if trees:
        assert np.isfinite(trained.predict(X)).all()
        return
    for call in (trained.predict, lambda X: trained.fit(X, y)):
        with pytest.raises(ValueError, match=r"NaN in columns \[1\]"):
            call(X)
