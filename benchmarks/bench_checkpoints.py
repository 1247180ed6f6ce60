"""Cost of checkpoints: ``python -m benchmarks.bench_checkpoints``.

Trains a network alternately with and without a ``ModelCheckpoint`` with default parameters, measures
processor times, and compares the time to write a file with the interval between two files.
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import argparse
import statistics
import tempfile
import time
import warnings

import numpy as np
from sklearn.neural_network import MLPRegressor

from ortlearn import OrtGradientOptimizer
from ortlearn.callbacks import ModelCheckpoint

__all__ = ["main", "measure"]


def data(n_samples: int, n_features: int = 50) -> tuple[np.ndarray, np.ndarray]:
    """Return samples of a smooth function."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_samples, n_features)).astype(np.float32)
    return X, np.sin(X @ rng.normal(size=n_features).astype(np.float32) / 4)


def fit(
    samples: tuple[np.ndarray, np.ndarray], max_iter: int, width: int, *callbacks: ModelCheckpoint
) -> float:
    """Return the processor time of a training in seconds."""
    model = MLPRegressor(hidden_layer_sizes=(width,), max_iter=1)
    options = {"learning_rate": "Adam", "batch_size": 64, "random_state": 0, "max_iter": max_iter}
    trainer = OrtGradientOptimizer(model, **options).set_callbacks(*callbacks)
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer.fit(*samples)
    return time.process_time() - begun


def measure(n_samples: int, max_iter: int, width: int, repeats: int) -> dict[str, float]:
    """Return medians over pairs of trainings, and the share of time that writing files takes."""
    samples, ratios, plain, shares = data(n_samples), [], [], []
    fit(samples, 1, width)
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            without = fit(samples, max_iter, width)
            checkpoint = ModelCheckpoint(folder)
            ratios.append(fit(samples, max_iter, width, checkpoint) / without - 1)
            plain.append(without)
            shares.append(checkpoint._took)
    file = statistics.median(shares)
    return {
        "seconds": statistics.median(plain),
        "added": statistics.median(ratios),
        "file_seconds": file,
        "share_of_time": file / max(60.0, 50 * file),
    }


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=50_000)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--width", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args(arguments)
    found = measure(options.samples, options.epochs, options.width, options.repeats)
    print(
        f"{options.epochs} epochs of {options.samples} samples take {found['seconds']:.2f} s; with a "
        f"ModelCheckpoint {100 * found['added']:+.2f} %, one file (model and state) included."
    )
    print(
        f"A file takes {1000 * found['file_seconds']:.0f} ms: one a minute is "
        f"{100 * found['share_of_time']:.3f} % of the time."
    )


if __name__ == "__main__":
    main()
