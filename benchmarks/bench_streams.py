"""Compare training from parquet files with training in memory.

``python -m benchmarks.bench_streams`` writes parquet files, and trains models alternately with
``fit_stream`` on the files and with ``fit`` on the same samples in memory, each in a separate process.
``--rows 20000000`` needs 4 GB on disk, and in memory for ``fit``. ``--sorted`` writes samples sorted by
label, and measures the effect of ``shuffle_buffer`` on the score: the numbers of docs/howto/out_of_core.md.
``--generated 1000000 100000000`` trains on samples that a function generates, without files: memory and time
of each number of samples.
Linux only: memory is read from /proc.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import json
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.measures.programs import Sheet

__all__ = ["compare_sides", "generate", "samples_of_group", "sheets", "train"]

N_FEATURES, BATCH, EPOCHS = 50, 256, 2
#: Samples of a row group, and of a file.
GROUP, FILE = 100_000, 2_000_000
MODELS = ("logistic regression", "network 50-50-10-1")
SIDES = ("stream", "memory")


def samples_of_group(number: int, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Return features of a row group, and labels that depend on them in part nonlinearly."""
    rng = np.random.default_rng([0, number])
    X = rng.standard_normal((n_samples, N_FEATURES), dtype=np.float32)
    scores = X[:, :10].sum(axis=1) + np.sin(3 * X[:, 10]) + X[:, 11] * X[:, 12]
    return X, (scores + rng.standard_normal(n_samples) > 0).astype(np.int8)


def generate(
    folder: Path, n_samples: int, by_label: bool = False, group: int = GROUP, file: int = FILE
) -> None:
    """Write parquet files of ``file`` samples in row groups of ``group``, with one of these in memory.

    ``by_label`` sorts the samples by label.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"x{number}" for number in range(N_FEATURES)]
    schema = pa.schema([*((name, pa.float32()) for name in names), ("label", pa.int8())])
    sizes = np.diff([*range(0, n_samples, group), n_samples]).tolist()
    writer, written = None, 0
    for wanted in (0, 1) if by_label else (None,):
        for number, size in enumerate(sizes):
            X, y = samples_of_group(number, size)
            if wanted is not None:
                X, y = X[y == wanted], y[y == wanted]
            if writer is None or written >= file:
                if writer is not None:
                    writer.close()
                path = folder / f"part-{len(list(folder.iterdir())):03}.parquet"
                writer, written = pq.ParquetWriter(path, schema, use_dictionary=False), 0
            columns = [*(np.ascontiguousarray(column) for column in X.T), y]
            writer.write_table(pa.Table.from_arrays(list(map(pa.array, columns)), schema=schema), group)
            written += len(y)
    if writer is not None:
        writer.close()


def _memory(key: str) -> float:
    """Return an entry of /proc/self/status in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(key))


def train(
    folder: Path, model: str, side: str, options: dict[str, Any], bare: float = 0.0
) -> dict[str, float]:
    """Return samples per second of the fastest pass, peak memory above a bare interpreter, and score."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    from ortlearn import OrtGradientOptimizer

    warnings.simplefilter("ignore")
    estimator = LogisticRegression() if model == MODELS[0] else MLPClassifier((50, 10))
    given = {"learning_rate": 0.05, "batch_size": BATCH, "max_iter": EPOCHS, "random_state": 0}
    trainer = OrtGradientOptimizer(estimator, **given)
    imported, begun = _memory("VmRSS"), time.perf_counter()
    if side == "stream":
        trainer.fit_stream(folder, y="label", **options)
        n_samples = _count(folder)
    elif side == "generator":
        n_samples = options["samples"]
        trainer.fit_stream(partial(generated, n_samples))
    else:
        trainer.fit(*_in_memory(folder))
        n_samples = _count(folder)
    seconds = time.perf_counter() - begun
    top = _memory("VmHWM")
    X_test, y_test = samples_of_group(10**6, 50_000)
    return {
        "rows": n_samples / min(record["seconds"] for record in trainer.history_),
        "whole": n_samples * EPOCHS / seconds,
        "memory": top - bare,
        "memory of fit": top - imported,
        "score": float((trainer.predict(X_test) == y_test).mean()),
    }


def generated(n_samples: int, group: int = GROUP) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield samples in blocks: those of the first row group, each time with another offset."""
    X, y = samples_of_group(0, group)
    offsets = np.random.default_rng(1).standard_normal(-(-n_samples // group), dtype=np.float32) / 100
    for number, offset in enumerate(offsets):
        size = min(group, n_samples - number * group)
        yield X[:size] + offset, y[:size]


def _count(folder: Path) -> int:
    import pyarrow.dataset as datasets

    return datasets.dataset(folder).count_rows()


def _in_memory(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return all samples as arrays."""
    import pyarrow.dataset as datasets

    n_samples, start = _count(folder), 0
    X, y = np.empty((n_samples, N_FEATURES), np.float32), np.empty(n_samples, np.int8)
    for path in sorted(folder.iterdir()):
        for batch in datasets.dataset(path).to_batches(use_threads=False):
            stop = start + batch.num_rows
            for place in range(N_FEATURES):
                X[start:stop, place] = batch.column(place).to_numpy()
            y[start:stop] = batch.column(N_FEATURES).to_numpy()
            start = stop
    return X, y


def _asked(folder: Path, model: str, side: str, options: dict[str, Any]) -> dict[str, float]:
    """Return the measurements of a new process."""
    question = json.dumps([str(folder), model, side, options])
    command = [sys.executable, "-m", "benchmarks.bench_streams", "--answer", question]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _bare_interpreter() -> float:
    code = "print(next(l.split()[1] for l in open('/proc/self/status') if l.startswith('VmRSS')))"
    return int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout) / 1024


def sheets(quick: bool) -> list[Sheet]:
    """Return the table of 4,000,000 samples; if ``quick``, of the first model on few samples."""
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        generate(folder, 20_000 if quick else 4_000_000)
        return [compare_sides(folder, 1 if quick else 3, MODELS[:1] if quick else MODELS)]


def compare_sides(folder: Path, rounds: int, models: Sequence[str]) -> Sheet:
    """Return samples per second from files and in memory; medians of alternating rounds."""
    rows, figures = [], {}
    for model in models:
        found: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
        for _ in range(rounds):
            for side in SIDES:
                found[side].append(_asked(folder, model, side, {}))
        stream, memory = (statistics.median(answer["rows"] for answer in found[side]) for side in SIDES)
        most = max(answer["memory"] for answer in found["stream"])
        figures |= {f"{model}: seconds from parquet / in memory": memory / stream}
        figures |= {f"{model}: MiB above the interpreter": most}
        rows.append([model, f"{stream:,.0f}", f"{memory:,.0f}", f"{stream / memory:.0%}", f"{most:.0f} MiB"])
    header = ["model", "from parquet, samples/s", "in memory, samples/s", "parquet / memory", "added memory"]
    text = f"Passes over {_count(folder):,} samples of {N_FEATURES} float32 columns, in batches of {BATCH}."
    return Sheet(text, header, rows, figures)


def compare_buffers(folder: Path, model: str) -> None:
    """Print the test accuracy after training on samples sorted by label."""
    n_samples = _count(folder)
    print(f"| shuffle_buffer | accuracy of {model} |")
    print("|---:|---:|")
    for buffer in (BATCH, 10_000, GROUP, 2 * GROUP, 4 * GROUP, n_samples):
        print(f"| {buffer:,} | {_asked(folder, model, 'stream', {'shuffle_buffer': buffer})['score']:.4f} |")


def compare_sizes(sizes: Sequence[int], model: str) -> None:
    """Print seconds and memory of trainings on generated samples, each in a new process."""
    print(f"| samples of {model} | seconds of a pass | seconds of the fit | MiB above the interpreter |")
    print("|---:|---:|---:|---:|")
    for size in sizes:
        found = _asked(Path(), model, "generator", {"samples": size})
        times = [size / found["rows"], size * EPOCHS / found["whole"]]
        print(f"| {size:,} | {times[0]:.1f} | {times[1]:.1f} | {found['memory']:.0f} |", flush=True)


def main() -> None:
    """Write the files, measure, and remove the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sorted", action="store_true")
    parser.add_argument("--model", choices=MODELS, action="append")
    parser.add_argument("--folder", type=Path, help="folder of the files, which are kept and used again")
    parser.add_argument("--generated", type=int, nargs="+", help="numbers of samples of a generator")
    parser.add_argument("--answer", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.answer:
        path, *question = json.loads(asked.answer)
        print(json.dumps(train(Path(path), *question, _bare_interpreter())))
        return
    if asked.generated:
        for model in asked.model or MODELS[:1]:
            compare_sizes(asked.generated, model)
        return
    with TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        if not any(folder.iterdir()):
            generate(folder, asked.rows, asked.sorted)
        if asked.sorted:
            for model in asked.model or MODELS:
                compare_buffers(folder, model)
        else:
            print(compare_sides(folder, asked.rounds, asked.model or MODELS).markdown())


if __name__ == "__main__":
    main()
