"""Memory of a training in addition to its data: the table of docs/howto/out_of_core.md.

``python -m benchmarks.bench_fit_memory`` trains a LogisticRegression with 100 features on several kinds of
data, each in a separate process. Linux only: it reads the private memory of the process, without pages of
mapped files, from /proc/self/status every two milliseconds.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn import OrtGradientOptimizer

__all__ = ["KINDS", "Peak", "private_memory"]

N_FEATURES, CHUNK = 100, 50_000
OPTIONS: dict[str, Any] = {"learning_rate": 0.1, "batch_size": 256, "max_iter": 2, "random_state": 0}
#: Kinds of data and training, by their name in the table.
KINDS = {
    "float32 array in memory": "array",
    "float32 memory map": "map",
    "float64 memory map": "map double",
    "float32 memory map, StandardScaler in front, fitted before": "map scaler fitted",
    "the same, precompute=False": "map scaler fitted each",
    "the same, scaler fitted by fit": "map scaler",
    "float32 memory map, chunks of 50,000 samples by partial_fit": "map chunks",
    "CSR matrix, a tenth of the samples, ten times the columns, 1 % not zero": "sparse",
}


def private_memory() -> float:
    """Return the private memory of this process in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon"))


class Peak:
    """Context manager that measures the peak of the private memory; ``added`` is the increase in MiB."""

    def __enter__(self) -> Peak:
        self._base, self._top, self._over = private_memory(), 0.0, False
        self._watch = threading.Thread(target=self._look)
        self._watch.start()
        return self

    def _look(self) -> None:
        while not self._over:
            self._top = max(self._top, private_memory())
            time.sleep(0.002)

    def __exit__(self, *error: object) -> None:
        self._over = True
        self._watch.join()
        self.added = max(0.0, self._top - self._base)


def write_samples(path: Path, n_samples: int, dtype: str) -> None:
    """Write random samples to a file, in parts of 10,000 samples."""
    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=(n_samples, N_FEATURES))
    for start in range(0, n_samples, 10_000):
        part = X[start : start + 10_000]
        part[:] = rng.standard_normal(part.shape)
    X.flush()


def measure(kind: str, n_samples: int, folder: str) -> None:
    """Train in this process and print the memory that it adds."""
    warnings.simplefilter("ignore")
    small = np.random.default_rng(1).standard_normal((256, N_FEATURES), dtype=np.float32)
    OrtGradientOptimizer(LogisticRegression(), **OPTIONS).fit(small, small[:, 0] > 0)  # imports everything
    if kind == "sparse":
        n_samples, n_columns = n_samples // 10, 10 * N_FEATURES
        X = scipy.sparse.random(n_samples, n_columns, 0.01, "csr", dtype=np.float32, random_state=0)
        y = np.asarray(X.sum(axis=1)).ravel() > 5
    else:
        path = Path(folder) / ("double.npy" if "double" in kind else "single.npy")
        if not path.exists():
            write_samples(path, n_samples, "float64" if "double" in kind else "float32")
        X = np.load(path, mmap_mode=None if kind == "array" else "r")
        y = X[:, 0] > X[:, 1]
    model = (
        make_pipeline(StandardScaler(), LogisticRegression()) if "scaler" in kind else LogisticRegression()
    )
    if "fitted" in kind:
        model.fit(small, small[:, 0] > 0)
    trainer = OrtGradientOptimizer(model, precompute="each" not in kind, **OPTIONS)
    with Peak() as peak:
        if "chunks" not in kind:
            trainer.fit(X, y)
        for start in range(0, 2 * n_samples if "chunks" in kind else 0, CHUNK):
            chunk = slice(start % n_samples, start % n_samples + CHUNK)
            trainer.partial_fit(np.array(X[chunk]), y[chunk], classes=[False, True])
    print(f"{peak.added:.0f} MiB")


def main(n_samples: int) -> None:
    """Measure each case in a separate process, and print the table."""
    print(f"| {n_samples} samples | added |\n|---|---:|")
    with TemporaryDirectory() as folder:
        for name, kind in KINDS.items():
            command = [sys.executable, "-m", "benchmarks.bench_fit_memory", "--samples", str(n_samples)]
            command += ["--one", kind, folder]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            print(f"| {name} | {done.stdout.strip()} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=500_000)
    parser.add_argument("--one", nargs=2, metavar=("KIND", "FOLDER"), help="print the memory of one kind")
    asked = parser.parse_args()
    if asked.one:
        measure(asked.one[0], asked.samples, asked.one[1])
    else:
        main(asked.samples)
