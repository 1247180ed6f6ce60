"""Estimators that cannot be trained are rejected before the initial fit."""

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ortlearn.exceptions import ConversionError
from ortlearn.trainable.conversion import to_trainable
from ortlearn.trainable.explanation import explain

X, y = np.random.RandomState(0).normal(size=(30, 2)), np.arange(30) % 2


@pytest.mark.parametrize(
    "model",
    [Ridge(), LogisticRegression(), make_pipeline(StandardScaler(), Ridge())],
    ids=lambda m: str(m)[:8],
)
def test_missing_labels(model, optimizer):
    with pytest.raises(ValueError, match=r"requires y to be passed, but the target y is None"):
        optimizer(model).fit(X)
    with pytest.raises(ValueError, match=r"requires y to be passed, but the target y is None"):
        optimizer(model).partial_fit(X)
    with pytest.raises(ValueError, match=r"requires y to be passed"):
        explain(model, X)


def test_models_without_labels(optimizer):
    assert optimizer(KMeans(2, n_init=1), max_iter=1, random_state=0).fit(X).predict(X).shape == (30,)


@pytest.mark.parametrize("last", ["passthrough", None])
def test_pipeline_must_end_with_a_model(last, optimizer):
    model = make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), last))
    for call in (
        optimizer(model).fit,
        lambda X, y: explain(model, X, y),
        lambda X, y: to_trainable(model, X=X),
    ):
        with pytest.raises(ConversionError, match=f"pipeline ends with {last!r}, which is not a model"):
            call(X, y)


def test_nested_optimizers(optimizer):
    inner = optimizer(LogisticRegression(), max_iter=1, random_state=0)
    search = GridSearchCV(inner, {"max_iter": [1]}, cv=2).fit(X, y)
    for model in (inner, make_pipeline(StandardScaler(), inner), inner.fit(X, y), search):
        with pytest.raises(ConversionError, match="is not a model but trains one: pass .* onnx_"):
            optimizer(model).fit(X, y)
    assert optimizer(inner.onnx_, max_iter=1).fit(X, y).score(X, y) >= 0


def test_explanation_of_an_optimizer(optimizer):
    trainer = optimizer(LogisticRegression(), max_iter=1, random_state=0)
    before = explain(trainer, X, y)
    assert [row.attribute for row in before.rows if row.trainable] == ["coef_", "intercept_"]
    after = explain(trainer.fit(X, y))
    assert [row.weights for row in after.rows if row.trainable] == [("coef",), ("intercept",)]


def test_empty_frame(optimizer):
    frame = pd.DataFrame({"text": ["a", "b"] * 4, "number": np.arange(8.0)})
    model = make_pipeline(make_column_transformer((OneHotEncoder(), ["text"])), Ridge())
    with pytest.raises(ValueError, match="0 sample.s. .* required by OrtGradient[A-Za-z]*Optimizer.$"):
        optimizer(model).fit(frame[:0], [])


def test_model_without_definition_or_converter(optimizer):
    with pytest.raises(ConversionError, match="skl2onnx has no converter for it") as caught:
        optimizer(KernelRidge(kernel=lambda a, b: float(a @ b))).fit(X, y)
    assert str(caught.value).count("ortlearn.models") == 1
