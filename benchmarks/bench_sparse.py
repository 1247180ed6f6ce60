"""Compare training on sparse samples with SGDClassifier: the table of docs/howto/out_of_core.md.

``python -m benchmarks.bench_sparse`` trains logistic regressions with an l2 penalty, one thread, batches of
256, on the same CSR matrix. Times of an epoch are medians of five alternating rounds. Memory is measured in a
separate process, on Linux: the ratio of matrix plus peak increase to the matrix.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression, SGDClassifier

from ortlearn import OrtGradientOptimizer
from ortlearn.learning_rates import LearningRateAdam, LearningRateSGD
from ortlearn.penalties import L2Penalty

from .bench_fit_memory import Peak

__all__ = ["CASES", "one_hot_samples", "text_samples"]

BATCH, ROUNDS, EPOCHS = 256, 5, 3
ALPHA, ETA = 1e-4, 0.1
MIB = 2**20


def text_samples(n_samples: int = 10_000, n_columns: int = 20_000) -> csr_matrix:
    """Return samples of about 60 entries with log-normal lengths, as of texts; columns follow Zipf's law."""
    rng = np.random.default_rng(0)
    lengths = np.maximum(5, rng.lognormal(np.log(70), 0.5, n_samples)).astype(np.int32)
    share = np.cumsum(1.0 / np.arange(1, n_columns + 1))
    columns = np.searchsorted(share, rng.uniform(0, share[-1], lengths.sum())).astype(np.int32)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    values = rng.uniform(0, 0.3, len(columns)).astype(np.float32)
    samples = csr_matrix(
        (values, rng.permutation(n_columns).astype(np.int32)[columns], starts), (n_samples, n_columns)
    )
    samples.sum_duplicates()
    return samples


def one_hot_samples(n_samples: int = 1_000_000, n_columns: int = 5, n_categories: int = 5_000) -> csr_matrix:
    """Return one-hot encoded columns of categories."""
    rng = np.random.default_rng(0)
    found = rng.integers(0, n_categories, (n_samples, n_columns), dtype=np.int32)
    found += np.arange(n_columns, dtype=np.int32) * n_categories
    starts = np.arange(0, found.size + 1, n_columns, dtype=np.int32)
    values = np.ones(found.size, dtype=np.float32)
    return csr_matrix((values, found.ravel(), starts), (n_samples, n_columns * n_categories))


def labels_of(samples: csr_matrix, n_classes: int) -> np.ndarray:
    """Return classes that depend on the samples."""
    scores = samples @ np.random.default_rng(1).standard_normal(samples.shape[1])
    return np.digitize(scores, np.quantile(scores, np.arange(1, n_classes) / n_classes))


#: Function that returns samples, number of classes, and update, by the name in the table.
CASES: dict[str, tuple[Callable[..., csr_matrix], int, str]] = {
    "text, 10,000 x 20,000": (text_samples, 2, "SGD"),
    "text, Adam": (text_samples, 2, "Adam"),
    "text, 20 classes": (text_samples, 20, "SGD"),
    "one-hot, 1,000,000 x 5 of 5,000": (one_hot_samples, 2, "SGD"),
    "one-hot, Adam": (one_hot_samples, 2, "Adam"),
}


def trainer(update: str, max_iter: int) -> OrtGradientOptimizer:
    """Return our estimator."""
    kinds: dict[str, Any] = {
        "SGD": LearningRateSGD(eta0=ETA, learning_rate="constant"),
        "Adam": LearningRateAdam(eta0=0.01),
    }
    return OrtGradientOptimizer(
        LogisticRegression(),
        learning_rate=kinds[update],
        learning_penalty=L2Penalty(ALPHA / 2),
        batch_size=BATCH,
        max_iter=max_iter,
        random_state=0,
    )


def rival() -> SGDClassifier:
    """Return scikit-learn's estimator, which updates after each sample."""
    return SGDClassifier(
        loss="log_loss", alpha=ALPHA, learning_rate="constant", eta0=ETA, max_iter=1, tol=None
    )


def seconds(call: Callable[[], Any]) -> float:
    """Return the seconds of a call."""
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def measure_time(case: str, rounds: int = ROUNDS) -> str:
    """Return the cells of a case: milliseconds of an epoch of each contender, and ratios."""
    make, n_classes, update = CASES[case]
    samples = make()
    labels = labels_of(samples, n_classes)

    def by_batches() -> None:
        model, classes = rival(), np.arange(n_classes)
        for start in range(0, samples.shape[0], BATCH):
            part = slice(start, start + BATCH)
            model.partial_fit(samples[part], labels[part], classes=classes)

    own, batches, whole = [], [], []
    trainer(update, 1).fit(samples, labels)  # compiles the graph
    for _ in range(rounds):
        batches.append(seconds(by_batches))
        whole.append(seconds(lambda: rival().fit(samples, labels)))
        history = trainer(update, EPOCHS).fit(samples, labels).history_
        own.append(float(np.median([epoch["seconds"] for epoch in history])))
    mine, chunked, fitted = (float(np.median(times)) for times in (own, batches, whole))
    times = " | ".join(f"{1e3 * value:.0f}" for value in (mine, chunked, fitted))
    return f"{times} | {mine / chunked:.2f} | {mine / fitted:.2f}"


def measure_memory(case: str) -> str:
    """Return the cells of a case: size of the matrix, peak increase of memory, and ratio."""
    make, n_classes, update = CASES[case]
    few = make(2_000)
    trainer(update, 1).fit(few, labels_of(few, n_classes))  # imports everything
    samples = make()
    labels = labels_of(samples, n_classes)
    size = (samples.data.nbytes + samples.indices.nbytes + samples.indptr.nbytes) / MIB
    model = trainer(update, 2)
    with Peak() as peak:
        model.fit(samples, labels)
    return f"{size:.1f} | {peak.added:.1f} | {1 + peak.added / size:.2f}"


def main() -> None:
    """Measure each case in separate processes, and print the table."""
    print(
        "| case | epoch, ms | `partial_fit` of 256 samples, ms | `fit`, ms | over `partial_fit` | "
        "over `fit` | CSR, MiB | added, MiB | both over CSR |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    )
    for case in CASES:
        cells = []
        for kind in ("time", "memory"):
            command = [sys.executable, "-m", "benchmarks.bench_sparse", "--one", kind, case]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            cells.append(done.stdout.strip())
        print(f"| {case} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=2, metavar=("KIND", "CASE"), help="print time or memory of one case")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    if asked.one:
        print({"time": measure_time, "memory": measure_memory}[asked.one[0]](asked.one[1]))
    else:
        main()
