"""Kill trainings at random moments: ``python -m tests.callbacks.killed_trainings FOLDER TRIES [KIND ...]``.

The trainings are forks of one process, which imports all modules once. A training that was killed is resumed
from its last checkpoint, and killed again, until it ends; its result must be bitwise that of an uninterrupted
training.
"""

import os
import random
import signal
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnxruntime  # noqa: F401  # once, before the forks
import skl2onnx  # noqa: F401
import skops.io  # noqa: F401
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPRegressor

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer, saving
from ortlearn.callbacks import ModelCheckpoint
from ortlearn.learning_rates import LearningRateAdam, LearningRateLBFGS, PlateauSchedule
from ortlearn.training import loop
from ortlearn.training.steps import batch_timer

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 5)).astype(np.float32)
y = np.sin(X @ rng.normal(size=5)).astype(np.float32)
MLP = MLPRegressor(hidden_layer_sizes=(4,), max_iter=2)
PLATEAU = LearningRateAdam(learning_rate=PlateauSchedule(patience=1))
#: Estimator, model and parameters of the trainings, of about the same length.
KINDS = {
    "batches": (OrtGradientOptimizer, MLP, {"learning_rate": PLATEAU, "max_iter": 12, "average": 900}),
    "two calls": (
        OrtGradientForwardBackwardOptimizer,
        MLP,
        {"learning_rate": "SGDNesterov", "max_iter": 8, "early_stopping": True, "n_iter_no_change": 4},
    ),
    "solver": (
        OrtGradientOptimizer,
        LogisticRegression(C=100),
        {"learning_rate": LearningRateLBFGS(gtol=1e-12), "max_iter": 60},
    ),
    "automatic": (OrtGradientOptimizer, Ridge().fit(X[:50], y[:50] - 3), {"warm_start": True}),
    "source": (OrtGradientOptimizer, MLP, {"learning_rate": PLATEAU, "max_iter": 3, "average": 200}),
    "source by two calls": (OrtGradientForwardBackwardOptimizer, MLP, {"max_iter": 3}),
    "partial_fit": (OrtGradientOptimizer, MLP, {"learning_rate": "Adam", "average": 50}),
}
#: Samples of a block of a source, and of a call of partial_fit.
SIZE = 40


def fit(name, folder, resumes=True):
    kind, model, options = KINDS[name]
    batch_timer.SECONDS, loop.PAUSE = 1e-3, 0.0  # split epochs, and write every part
    checkpoint = ModelCheckpoint(folder, every=1, keep=2, seconds=0, resume=resumes, overwrite=not resumes)
    checkpoint._note_write_time = lambda begun: None  # as if writing took no time
    trainer = kind(model, batch_size=4, random_state=3, **options)
    labels = (y > 0).astype(int) if name == "solver" else y
    if name.startswith("source"):
        trainer.set_callbacks(checkpoint).fit_stream(blocks, shuffle_buffer=64)
    elif name == "partial_fit":
        checkpoint.overwrite = True  # only the model of the first call may exist after a kill
        paths = {saving.read_summary(path)["epochs"]: path for path in folder.glob("*.zip")}
        trainer = saving.load(paths[max(paths)]) if paths else trainer
        trainer.set_callbacks(checkpoint)
        for samples in list(blocks())[getattr(trainer, "n_iter_", 0) :]:
            trainer.partial_fit(*samples)
    else:
        trainer.set_callbacks(checkpoint).fit(X, labels)
    write_result(trainer, Path(f"{folder}.npz"))


def blocks():
    """Yield all samples in blocks."""
    for start in range(0, len(X), SIZE):
        yield X[start : start + SIZE], y[start : start + SIZE]


def write_result(trainer, path):
    """Write the results of a training as arrays."""
    state = trainer._fitted.state
    arrays = {f"weight {name}": array for name, array in trainer.trained_coef_.items()}
    arrays |= {f"state {name}": array for name, array in state.states.items()}
    arrays |= {f"raw {name}": array for name, array in (state.updated or {}).items()}
    measured = ("epoch", "loss", "validation_loss", "validation_score", "rate")
    history = [
        [np.nan if record[key] is None else record[key] for key in measured] for record in state.history
    ]
    arrays["history"] = np.array(history)
    arrays["rest"] = np.array([state.best_epoch or -1, state.n_seen, state.start_kept])
    np.savez(path, **arrays)


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


def run(function, *args, seconds=None):
    """Return whether a child process ended without error before it was killed."""
    pid = in_a_child(function, *args)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    assert status in (0, signal.SIGKILL), "the training ended with an error"
    return status == 0


def check_complete(folder):
    """Return the number of files; check that all can be read, and that models and states agree."""
    paths = sorted(folder.glob("*.zip"))
    for path in paths:
        trained = saving.load(path)
        if path.stem != "last" and path.with_suffix(".onnx").exists():
            assert trained.n_iter_ == int(path.stem[-6:])
            assert onnx.load(path.with_suffix(".onnx")).graph.initializer == trained.onnx_.graph.initializer
    return len(paths)


def main(root, n_tries, names):
    warnings.simplefilter("ignore")
    n_killed = n_within = 0
    draw = random.Random(0)
    for name in names or KINDS:
        begun = time.monotonic()
        assert run(fit, name, root / name, False)
        length = time.monotonic() - begun
        expected = (root / f"{name}.npz").read_bytes()
        number = done = 0
        while done < n_tries:
            folder, before, number = root / f"{name}-{number}", n_killed, number + 1
            longest = 1.3 * length
            while not run(fit, name, folder, seconds=draw.uniform(0, longest)):
                n_killed += 1
                longest *= 1.25  # more time for a child that was killed before its first file
                if folder.exists() and check_complete(folder):
                    batches = [saving.read_summary(path)["batches"] for path in folder.glob("last.zip")]
                    n_within += any(batches)
            found = Path(f"{folder}.npz").read_bytes()
            assert found == expected, f"{name}: different result after resuming"
            done += n_killed > before
            length *= 1 if n_killed > before else 0.75  # less time, since it is faster than the first child
    print(f"{n_killed} trainings killed, {n_within} within an epoch, all resumed to the same bits")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
