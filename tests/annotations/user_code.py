"""A sample of user code, which mypy and pyright check against the annotations of the package (py.typed)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from sklearn.linear_model import LogisticRegression, Ridge

from ortlearn import (
    OrtGradientForwardBackwardOptimizer,
    OrtGradientOptimizer,
    OrtIntervalRegressor,
    OrtSetClassifier,
    onnx_files,
)
from ortlearn.conversion import explain, sklearn_to_onnx
from ortlearn.differentiation import onnx_derivative
from ortlearn.exceptions import ConversionError, OrtlearnError
from ortlearn.functions import DifferentiableFunction, differentiable
from ortlearn.intervals import coverage_score
from ortlearn.learning_rates import LearningRateAdam
from ortlearn.losses import HuberLoss
from ortlearn.penalties import L2Penalty
from ortlearn.saving import load, save

X: np.ndarray = np.random.default_rng(0).normal(size=(20, 3))
y: np.ndarray = X @ np.array([1.0, 2.0, 3.0])


def train() -> OrtGradientOptimizer:
    """Train a model with plugins and their parameters."""
    trainer = OrtGradientOptimizer(
        Ridge(),
        learning_loss=HuberLoss(),
        learning_penalty=L2Penalty(),
        learning_rate=LearningRateAdam(),
        max_iter=3,
        random_state=0,
    )
    return trainer.fit(X, y)


def use(trained: OrtGradientOptimizer, folder: Path) -> float:
    """Predict with a trained model, export it and read it back."""
    score: float = trained.score(X, y)
    predicted: np.ndarray = trained.predict(X)
    model: onnx.ModelProto = trained.get_trained_onnx()
    losses: list[float] = list(trained.train_losses_)
    save(trained, folder / "trained.zip")
    again = load(folder / "trained.zip")
    assert len(losses) and np.array_equal(again.predict(X), predicted)
    gradient: onnx.ModelProto = onnx_derivative(model, feeds="random")
    opened: onnx.ModelProto = onnx_files.open(model, trainable=True)
    assert gradient.graph.node and opened.graph.node
    return score


def train_a_file() -> OrtGradientForwardBackwardOptimizer | None:
    """Train an ONNX file, and treat an error."""
    file = sklearn_to_onnx(Ridge().fit(X, y), X.shape[1])
    print(explain(Ridge().fit(X, y), X))
    try:
        return OrtGradientForwardBackwardOptimizer(file, random_state=0).fit(X, y)
    except ConversionError as error:
        reason: OrtlearnError = error
        print(reason)
        return None


def predict_intervals_and_sets() -> float:
    """Calibrate a regressor and a classifier, and differentiate a fitted model."""
    model = OrtIntervalRegressor(Ridge(), method="residual", coverage=0.5, random_state=0).fit(X, y)
    center, ends = model.predict_interval(X, coverage=[0.5])
    file: onnx.ModelProto = model.get_trained_onnx()
    classifier: OrtSetClassifier = OrtSetClassifier(LogisticRegression(), coverage=0.5, random_state=0)
    labels, sets = classifier.fit(X, y > 0).predict_set(X)
    function: DifferentiableFunction = differentiable(Ridge().fit(X, y))
    gradient: np.ndarray = function.gradient(X)
    assert center.shape == labels.shape == (len(X),) and gradient.shape == X.shape and file.graph.output
    assert sets.dtype == bool
    return coverage_score(y, ends)
