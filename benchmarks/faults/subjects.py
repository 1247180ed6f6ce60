"""Small trainings for all faults, and comparisons of their results."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnxruntime  # noqa: F401  # once, before the forks
import skl2onnx  # noqa: F401
import skops.io  # noqa: F401
from sklearn.neural_network import MLPRegressor
from sklearn.preprocessing import scale

from benchmarks.faults.fault import Lost
from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer

__all__ = [
    "KINDS",
    "X",
    "Y",
    "blocks",
    "check_same",
    "check_unchanged",
    "fit",
    "snapshot",
    "trainer",
    "weights",
]

_rng = np.random.default_rng(0)
X = _rng.normal(size=(200, 5)).astype(np.float32)
Y = scale(np.sin(X @ _rng.normal(size=5))).astype(np.float32)
KINDS = (OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer)


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    # Already fitted, since scikit-learn's training of a network catches interrupts.
    _MODEL = MLPRegressor(hidden_layer_sizes=(4,), max_iter=2, random_state=0).fit(X, Y)


def trainer(kind: Any = OrtGradientOptimizer, **options: Any) -> Any:
    """Return an unfitted estimator of a small network."""
    given = {"learning_rate": "Adam", "learning_penalty": None, "keep_better": False}
    given |= {"max_iter": 5, "batch_size": 20, "random_state": 0}
    return kind(_MODEL, **given | options)


def blocks() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield all samples in blocks."""
    for start in range(0, len(X), 50):
        yield X[start : start + 50], Y[start : start + 50]


def fit(estimator: Any, streams: bool, **arguments: Any) -> Any:
    """Return an estimator trained on all samples, in memory or from a source of three chunks."""
    if streams:
        return estimator.fit_stream(blocks, shuffle_buffer=80, **arguments)
    return estimator.fit(X, Y, **arguments)


def weights(trained: Any) -> dict[str, bytes]:
    """Return the bits of the trained weights."""
    return {name: array.tobytes() for name, array in trained.trained_coef_.items()}


def check_same(found: Any, expected: Any) -> None:
    """Raise an AssertionError if weights or losses of two trainings differ by a bit."""
    assert weights(found) == weights(expected), "different weights"
    assert found.train_losses_ == expected.train_losses_, "different losses"


def snapshot(estimator: Any) -> dict[str, Any]:
    """Return the state of an estimator that a fault must not change."""
    found = {"parameters": repr(estimator.get_params()), "attributes": sorted(vars(estimator))}
    if hasattr(estimator, "trained_coef_"):
        found |= {"weights": weights(estimator), "predictions": estimator.predict(X).tobytes()}
        found["losses"] = list(estimator.train_losses_)
    return found


def check_unchanged(estimator: Any, before: dict[str, Any]) -> None:
    """Raise Lost if the state of an estimator has changed."""
    for name, value in snapshot(estimator).items():
        if before.get(name) != value:
            raise Lost(f"{name} of the estimator changed")
