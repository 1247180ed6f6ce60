"""A page that trains a network in the visitor's browser, and the files that it needs."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from ortlearn import OrtGradientOptimizer
from ortlearn.learning_rates import LearningRateAdam
from ortlearn.saving import export_training

__all__ = ["copy_runtime", "write"]

RUNTIMES = Path(__file__).parents[2] / "runtimes"
#: What the page needs of onnxruntime-web, where its npm package is installed.
ORT = RUNTIMES / "web" / "node_modules" / "onnxruntime-web" / "dist"
ORT_FILES = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")


def write(folder: Path) -> bool:
    """Write the page into a folder, and return whether it has ONNX Runtime beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("index.html", "demo.mjs"):
        shutil.copy(Path(__file__).with_name(name), folder)
    for name in ("trainer.mjs", "files.mjs", "samples.mjs"):
        shutil.copy(RUNTIMES / "core" / name, folder)
    shutil.copy(RUNTIMES / "web" / "index.mjs", folder)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(64, 2)).astype(np.float32)
    network = MLPClassifier(hidden_layer_sizes=(16, 16), activation="tanh", max_iter=1)
    rate = LearningRateAdam(eta0=0.01, learning_rate="constant")
    trainer = OrtGradientOptimizer(network, learning_rate=rate, batch_size=16, max_iter=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        trainer.fit(X, np.where(X[:, 0] > 0, "blue", "orange"))
    export_training(trainer, folder / "package")
    return copy_runtime(folder)


def copy_runtime(folder: Path) -> bool:
    """Copy ONNX Runtime beside a page, and return whether its npm package is installed."""
    if not ORT.exists():
        return False
    (folder / "ort").mkdir(exist_ok=True)
    for name in ORT_FILES:
        shutil.copy(ORT / name, folder / "ort")
    return True
