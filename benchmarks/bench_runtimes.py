"""Time of an epoch in Node and in a browser, relative to Python: ``python -m benchmarks.bench_runtimes``.

All runtimes train the same package on one thread: a network 100-50-10-1 on 10,000 samples. Requires Node,
Chromium, and the npm packages that ``make test-runtimes`` installs.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.neural_network import MLPRegressor

from ortlearn import OrtGradientOptimizer
from ortlearn.saving import export_training
from ortlearn.saving.tensors import unpack_tensors

RUNTIMES = Path(__file__).parents[1] / "runtimes"
NODE = """
import { readFile } from "node:fs/promises";
import { epochTime } from "ortlearn-core/time";
import { load, ort } from "./index.mjs";
const bytes = new Uint8Array(await readFile(`${process.argv[1]}/record.safetensors`));
console.log(await epochTime(ort, await load(process.argv[1], { intraOpNumThreads: 1 }), bytes));
"""
ROUNDS = 5


def bare_python(folder):
    """Return the milliseconds of an epoch in Python with numpy and onnxruntime only."""
    spec = importlib.util.spec_from_file_location("t", RUNTIMES / "python_bare" / "ortlearn_trainer.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.OPTIONS.intra_op_num_threads = 1
    trainer = module.Trainer(folder)
    record, _ = unpack_tensors((folder / "record.safetensors").read_bytes())
    columns = {name[7:]: array for name, array in record.items() if name.startswith("column ")}
    times = []
    for _ in range(20):
        begun = time.perf_counter()
        trainer.train_epoch(columns, record["order 0"])
        times.append(1000 * (time.perf_counter() - begun))
    return float(np.median(times))


def node(folder):
    """Return the milliseconds of an epoch in Node."""
    command = ["node", "--input-type=module", "-e", NODE, str(folder)]
    return float(subprocess.check_output(command, cwd=RUNTIMES / "node", text=True))


def browser(folder):
    """Return the milliseconds of an epoch in a headless browser."""
    from tests.runtimes.browser import posted_by, served

    with served(core=RUNTIMES / "core", web=RUNTIMES / "web", packages=folder.parent) as address:
        text = posted_by(address, f"/web/test/time.html?package={folder.name}", folder.parent)
    return float(json.loads(text)["milliseconds"])


def main():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10_000, 100)).astype(np.float32)
    network = MLPRegressor(hidden_layer_sizes=(50, 10), max_iter=1)
    trainer = OrtGradientOptimizer(network, learning_rate="Adam", batch_size=64, max_iter=1, random_state=0)
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name) / "package"
        export_training(trainer.fit(X, X[:, 0]), folder, example=(X, X[:, 0]))
        sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
        print({n: f"{size / 1000:.0f} KB" for n, size in sizes.items() if n != "record.safetensors"})
        found = [[run(folder) for run in (bare_python, node, browser)] for _ in range(ROUNDS)]
    for label, column in zip(("python", "node", "browser"), np.transpose(found), strict=True):
        ratio = np.median(column / np.array(found)[:, 0])
        print(f"{label:8} {np.median(column):8.1f} ms an epoch, {ratio:.2f} of Python's")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
