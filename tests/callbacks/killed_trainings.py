"""Kill trainings at random moments: ``python -m tests.callbacks.killed_trainings FOLDER TRIES``.

One process forks, so that nothing is imported anew for every training. Each folder is used several times:
a training finds what a killed one left.
"""

import os
import random
import signal
import sys
import time
import warnings
from pathlib import Path

import joblib
import numpy as np
import onnx
import onnxruntime  # noqa: F401  # once, before the forks
import skl2onnx  # noqa: F401
from sklearn.linear_model import Ridge

from ortlearn import OrtGradientOptimizer
from ortlearn.callbacks import ModelCheckpoint

N_EPOCHS, N_FOLDERS = 30, 5
rng = np.random.default_rng(0)
X = rng.normal(size=(64, 5)).astype(np.float32)
y = (X @ rng.normal(size=5)).astype(np.float32)


class Reporting(ModelCheckpoint):
    """Writes a byte to a pipe at the beginning of every epoch's write."""

    pipe: int

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        if context.task_name == "epoch":
            os.write(self.pipe, b"x")
        super().on_fit_task_end(estimator, context, fitted_estimator=fitted_estimator)


def fit(folder, pipe=None):
    checkpoint = Reporting(folder, with_estimator=True, overwrite=True)
    checkpoint.pipe = os.open(os.devnull, os.O_WRONLY) if pipe is None else pipe
    options = {"max_iter": N_EPOCHS, "learning_rate": "Adam", "batch_size": 16, "random_state": 0}
    options["learning_penalty"] = None  # that of the model would follow the rows of partial_fit
    trainer = OrtGradientOptimizer(Ridge(), **options).set_callbacks(checkpoint).fit(X, y)
    if pipe is not None:
        signal.pause()  # until it is killed
    return trainer


def in_a_child(function, *args):
    pid = os.fork()
    if not pid:
        status = 1
        try:
            function(*args)
            status = 0
        finally:
            os._exit(status)
    return pid


def check_ends_well(function, *args):
    assert os.waitpid(in_a_child(function, *args), 0)[1] == 0


def kill_one(folder, draw):
    reading, writing = os.pipe()
    pid = in_a_child(fit, folder, writing)
    os.close(writing)
    for _ in range(draw.randint(2, N_EPOCHS // 2)):
        assert os.read(reading, 1), "the training ended with an error"
    time.sleep(draw.uniform(0, 0.005))
    os.kill(pid, signal.SIGKILL)
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL
    os.close(reading)


def check_whole(paths):
    """Return the estimators; models are whole, and the estimator beside each is of the same epoch."""
    states = [path.with_suffix(".joblib") for path in paths if path.with_suffix(".joblib").exists()]
    for path in paths:
        onnx.checker.check_model(onnx.load(path))
    for state in states:
        trained = joblib.load(state)
        assert trained.n_iter_ == int(state.stem[-6:])
        assert onnx.load(state.with_suffix(".onnx")).graph.initializer == trained.onnx_.graph.initializer
    assert len(states) >= len(paths) - 1
    return states


def resume(state, reference):
    trained, expected = joblib.load(state), joblib.load(reference)
    while trained.n_iter_ < N_EPOCHS:
        trained.partial_fit(X, y)
    for name, array in trained.trained_coef_.items():
        np.testing.assert_array_equal(array, expected[name])


def main(root, n_tries):
    warnings.simplefilter("error", UserWarning)
    reference = root / "coefficients"
    check_ends_well(lambda: joblib.dump(fit(root / "whole").trained_coef_, reference))
    n_resumed = 0
    for seed in range(n_tries):
        folder, draw = root / f"run-{seed % N_FOLDERS}", random.Random(seed)
        kill_one(folder, draw)
        paths = ModelCheckpoint(folder).paths()
        assert paths, "no checkpoint is left"
        states = check_whole(paths)
        if seed % 4 == 0:
            check_ends_well(resume, states[-1], reference)
            n_resumed += 1
    for folder in root.glob("run-*"):
        check_ends_well(fit, folder)
        names = {f"epoch-{i:06d}{suffix}" for i in range(1, N_EPOCHS + 1) for suffix in (".joblib", ".onnx")}
        assert {path.name for path in folder.iterdir()} == names
    print(f"{n_tries} trainings killed, {n_resumed} resumed to the same weights")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
