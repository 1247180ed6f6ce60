"""A page that recognises drawn digits with an int8 network, and the files that it needs."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path

from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from docs.browser_training import copy_runtime
from ortlearn.compress import quantize

__all__ = ["write"]

#: Samples of the page, which the network does not learn.
N_SHOWN = 200


def write(folder: Path) -> bool:
    """Write the page into a folder, and return whether it has ONNX Runtime beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("index.html", "page.mjs", "digits.mjs"):
        shutil.copy(Path(__file__).with_name(name), folder)
    digits = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(*digits, test_size=N_SHOWN, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network = MLPClassifier((64,), max_iter=60, random_state=0).fit(X, y)
    quantize(network, X, y, held_out=(X_test, y_test)).save(folder / "digits.onnx")
    shown = {"images": X_test.astype(int).tolist(), "labels": y_test.tolist()}
    (folder / "samples.json").write_text(json.dumps(shown), encoding="utf-8")
    return copy_runtime(folder)
