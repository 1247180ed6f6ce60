"""Benchmark cases: networks, data, initial weights and rates, the same for all contenders."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

__all__ = [
    "CASES",
    "LARGE",
    "TINY",
    "TO_LOSS",
    "Case",
    "initial_weights",
    "mean_loss",
    "scaling_cases",
    "write_data",
]

Weights = list[tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Case:
    """Network of dense layers with Relu in between, and its training.

    Attributes
    ----------
    name : str
        Short name.
    layers : tuple of int
        Width of every layer, features first.
    task : str
        ``"regression"`` (half the squared error) or ``"classification"`` (log loss; one output
        means two classes).
    n_samples, batch_size : int
        Samples of the data, and of a batch.
    rate, momentum : float
        Constant learning rate; momentum without Nesterov's step.
    """

    name: str
    layers: tuple[int, ...]
    task: str
    n_samples: int
    batch_size: int
    rate: float
    momentum: float = 0.9

    @property
    def title(self) -> str:
        """Title in the report."""
        kind = self.task if len(self.layers) > 2 else {"regression": "linear regression"}.get(self.task)
        shape = "-".join(map(str, self.layers))
        size = f"{self.n_samples:,} samples, batches of {self.batch_size}"
        return f"{shape} {kind or 'logistic regression'}, {size}"

    @property
    def n_batches(self) -> int:
        """Number of batches of an epoch."""
        return -(-self.n_samples // self.batch_size)


def _regression(name: str, layers: tuple[int, ...], n_samples: int, batch: int, rate: float, **more) -> Case:
    return Case(name, layers, "regression", n_samples, batch, rate, **more)


def _classification(
    name: str, layers: tuple[int, ...], n_samples: int, batch: int, rate: float, **more
) -> Case:
    return Case(name, layers, "classification", n_samples, batch, rate, **more)


#: Microseconds per batch are measured on these.
CASES = (
    _regression("linear", (10, 1), 4_000, 10, 1e-3, momentum=0.0),
    _regression("mlp-15", (100, 50, 10, 1), 1005, 15, 1e-3),
    _regression("mlp-200", (100, 50, 10, 1), 5_000, 200, 1e-3),
    _classification("classifier", (64, 128, 64, 10), 5_120, 256, 1e-2),
    _classification("large", (784, 512, 256, 10), 2_560, 128, 1e-2),
    _classification("logistic", (100, 1), 100_000, 256, 0.1, momentum=0.0),
)

#: Seconds to the loss of scikit-learn's estimator are measured on these.
TO_LOSS = (
    _regression("sgd-regressor", (100, 1), 100_000, 256, 0.02, momentum=0.0),
    _classification("sgd-classifier", (100, 1), 100_000, 256, 0.1, momentum=0.0),
    _regression("mlp-regressor", (100, 50, 10, 1), 1005, 15, 1e-3),
)

#: Memory is measured on these.
LARGE = (
    _classification("million", (100, 1), 1_000_000, 256, 0.1, momentum=0.0),
    _classification("large", (784, 512, 256, 10), 2_560, 128, 1e-2),
)

#: Small cases for quick runs: a short last batch, and all losses.
TINY = (
    _regression("linear", (10, 1), 52, 10, 1e-2, momentum=0.0),
    _regression("mlp", (10, 6, 4, 1), 52, 10, 1e-2),
    _classification("binary", (10, 6, 1), 52, 10, 1e-2),
    _classification("classes", (10, 6, 3), 52, 10, 1e-2),
    _classification("logistic", (10, 1), 52, 10, 1e-1, momentum=0.0),
)


def scaling_cases(quick: bool = False) -> dict[str, list[tuple[int, Case]]]:
    """Return cases that differ in one quantity: samples, features, batch size or depth.

    Parameters
    ----------
    quick : bool, default=False
        Whether small ones are enough.

    Returns
    -------
    dict of str to list of (int, Case)
        The value that changes, and the case.
    """
    n_samples, widths = 6_000, (50, 10)
    values = {
        "samples": (1_500, 6_000, 24_000, 96_000),
        "features": (30, 100, 300, 1_000),
        "batch size": (5, 15, 50, 150, 500),
        "depth": (1, 2, 4, 8),
    }
    if quick:
        n_samples, values = 60, {what: found[:2] for what, found in values.items()}
        values["samples"] = (60, 120)
    base = _regression("scaling", (100, *widths, 1), n_samples, 15, 1e-4)
    change = {
        "samples": lambda n: replace(base, n_samples=n),
        "features": lambda n: replace(base, layers=(n, *widths, 1)),
        "batch size": lambda n: replace(base, batch_size=n),
        "depth": lambda n: replace(base, layers=(100, *(50,) * n, 1)),
    }
    return {what: [(n, change[what](n)) for n in found] for what, found in values.items()}


def _regression_data(case: Case, rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    y = X @ rng.normal(size=(case.layers[0], case.layers[-1])).astype(np.float32)
    y += rng.normal(size=y.shape) * y.std(axis=0) / 2
    return ((y - y.mean(axis=0)) / y.std(axis=0)).astype(np.float32)


def _classification_data(case: Case, rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    n_outputs = case.layers[-1]
    scores = X @ rng.normal(size=(case.layers[0], max(n_outputs, 2))).astype(np.float32)
    scores = 2 * scores / scores.std() + rng.gumbel(size=scores.shape)
    return scores.argmax(axis=1)


def write_data(case: Case, folder: Path) -> Path:
    """Write the data of a case if they do not exist, and return the path.

    Half of the features are mixed with others, so that columns are correlated as real ones are.

    Parameters
    ----------
    case : Case
        Its number of samples, its widths and its task matter.
    folder : Path
        Where the files go.

    Returns
    -------
    Path
        Folder with ``X.npy`` (float32, standardised) and ``y.npy``.
    """
    key = f"{case.task}-{case.n_samples}-{case.layers[0]}-{case.layers[-1]}"
    target = folder / key
    if not target.exists():
        rng = np.random.default_rng(0)
        X = rng.standard_normal((case.n_samples, case.layers[0]), dtype=np.float32)
        half = case.layers[0] // 2
        X[:, :half] += X[:, half : 2 * half] / 2
        X -= X.mean(axis=0, dtype=np.float64).astype(np.float32)
        X /= X.std(axis=0, dtype=np.float64).astype(np.float32)
        make = _regression_data if case.task == "regression" else _classification_data
        y = make(case, rng, X)
        part = Path(tempfile.mkdtemp(dir=folder))
        np.save(part / "X.npy", X)
        np.save(part / "y.npy", y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y)
        part.rename(target)
    return target


def initial_weights(case: Case) -> Weights:
    """Return weights to start from: zeros for linear models, else uniform, scaled by the widths.

    Intercepts differ from layer to layer: converters may store equal tensors once.
    """
    rng = np.random.default_rng(1)
    weights = []
    for n_in, n_out in zip(case.layers[:-1], case.layers[1:], strict=True):
        bound = np.sqrt(6 / (n_in + n_out)) if len(case.layers) > 2 else 0.0
        coefs = rng.uniform(-1, 1, size=(n_in, n_out)) * bound
        intercept = rng.uniform(-1, 1, size=n_out) * bound / 10
        weights.append((coefs.astype(np.float32), intercept.astype(np.float32)))
    return weights


def mean_loss(case: Case, weights: Weights, X: np.ndarray, y: np.ndarray) -> float:
    """Return the mean loss of all samples in float64, computed equally for all contenders.

    Parameters
    ----------
    case : Case
        Its task matters.
    weights : list of (ndarray of shape (n_in, n_out), ndarray of shape (n_out,))
        Factors and intercepts of every layer.
    X, y : ndarray
        Data.

    Returns
    -------
    float
        Loss.
    """
    scores = X.astype(np.float64)
    for i, (coefs, intercept) in enumerate(weights):
        scores = np.maximum(scores, 0) if i else scores
        scores = scores @ np.asarray(coefs, dtype=np.float64) + intercept
    if case.task == "regression":
        return float(np.mean((scores - y.reshape(scores.shape)) ** 2) / 2)
    if scores.shape[1] == 1:
        scores = np.hstack([np.zeros_like(scores), scores])
    return float(np.mean(np.logaddexp.reduce(scores, axis=1) - scores[np.arange(len(y)), y]))
