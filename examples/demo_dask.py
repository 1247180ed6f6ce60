"""Train on parquet files with a local Dask cluster, and kill a worker during the training.

Parquet files are written to a folder, and a network is trained on them in rounds of one task
per file. A worker process is killed in the middle of a round. The weights are bit-identical to
those of a training without this fault.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from distributed import Client, LocalCluster
from rich.console import Console
from rich.table import Table
from sklearn.neural_network import MLPRegressor

from ortlearn.distributed import DaskOrtGradientOptimizer

#: Number of files, samples per file, and columns.
FILES, SAMPLES, COLUMNS = 8, 10_000, 10
console = Console()


def samples(n_samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return samples of Friedman's first function, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_samples, COLUMNS), dtype=np.float32)
    y = (
        10 * np.sin(np.pi * X[:, 0] * X[:, 1])
        + 20 * (X[:, 2] - 0.5) ** 2
        + 10 * X[:, 3]
        + 5 * X[:, 4]
    )
    return X, (y + rng.standard_normal(n_samples)).astype(np.float32)


def write_files(folder: Path) -> list[Path]:
    """Write the shards, a parquet file each."""
    paths = [folder / f"part-{number}.parquet" for number in range(FILES)]
    for number, path in enumerate(paths):
        X, y = samples(SAMPLES, number)
        columns = {f"x{place}": column for place, column in enumerate(X.T)}
        pq.write_table(pa.table({**columns, "label": y}), path)
    return paths


def train(client: Client, paths: list[Path]) -> tuple[DaskOrtGradientOptimizer, float]:
    """Return a trained network, and how long that took."""
    network = MLPRegressor(hidden_layer_sizes=(50, 20), random_state=0)
    model = DaskOrtGradientOptimizer(
        network,
        client=client,
        learning_rate="Adam",
        batch_size=50,
        max_iter=15,
        random_state=0,
        verbose=1,
    )
    begun = time.perf_counter()
    return model.fit(paths, y="label"), time.perf_counter() - begun


def kill_one(client: Client, pids: dict[str, int], killed: list[str]) -> None:
    """Kill a worker process as soon as it is in the middle of a round."""
    while not killed:
        for address, keys in client.processing().items():
            if any(str(key).startswith("train") for key in keys) and len(killed) == 0:
                time.sleep(0.5)  # a few rounds later
                os.kill(pids[address], signal.SIGKILL)
                killed.append(address)
        time.sleep(0.01)


def main() -> None:
    """Train twice, kill a worker the second time, and compare."""
    table = Table("training", "seconds", "rounds", "workers seen", "loss", "R2 on test samples")
    X_test, y_test = samples(5000, 1000)
    names = [f"x{place}" for place in range(COLUMNS)]
    frame = pa.table(dict(zip(names, X_test.T, strict=True))).to_pandas()
    with TemporaryDirectory() as folder:
        paths = write_files(Path(folder))
        console.print(f"Written: {FILES} files of {SAMPLES:,} samples and {COLUMNS} columns.")
        options = {
            "n_workers": 2,
            "threads_per_worker": 1,
            "dashboard_address": ":0",
            "silence_logs": 50,
        }
        with LocalCluster(**options) as cluster, Client(cluster) as client:
            pids = client.run(os.getpid)
            console.print(f"2 worker processes: {sorted(pids.values())}.")
            models, killed = [], []
            for name in ("uninterrupted", "a worker is killed"):
                if models:
                    arguments = (client, client.run(os.getpid), killed)
                    threading.Thread(target=kill_one, args=arguments, daemon=True).start()
                model, seconds = train(client, paths)
                models.append(model)
                seen = {
                    address for record in model.history_ for address in record["worker_rows"]
                }
                n_rounds = sum(record["rounds"] for record in model.history_)
                score = model.score(frame, y_test)
                numbers = f"{model.train_losses_[-1]:.4f}", f"{score:.4f}"
                table.add_row(name, f"{seconds:.1f}", f"{n_rounds}", f"{len(seen)}", *numbers)
            console.print(f"Killed: {killed[0]}. Its tasks were run again by the other worker.")
    console.print(table)
    first, second = (model.get_weights() for model in models)
    same = all(np.array_equal(first[name], second[name]) for name in first)
    console.print(
        "The weights are bit-identical." if same else "[red]The weights differ.[/red]"
    )
    if not same:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
