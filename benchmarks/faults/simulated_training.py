"""Simulated trainings and disk faults, and checks of the checkpoints after a fault."""

import builtins
import json
import os
import signal
from pathlib import Path

import onnx
from onnx import numpy_helper, parser

from ortlearn import callbacks
from ortlearn.callbacks.checkpoint_files import read_value
from ortlearn.graphs import files

MODEL = parser.parse_model(
    """<ir_version: 8, opset_import: ["": 18]>
    g (float[1] x) => (float[1] y) <float[1] w = {0}> { y = Add (x, w) }"""
)
#: System functions that writing a checkpoint calls; any call may fail.
CALLS = ("open", "fsync", "replace", "rename", "unlink", "mkdir", "write", "ftruncate", "chmod")


class ModelCheckpoint(callbacks.ModelCheckpoint):
    """Writes every epoch of simulated trainings."""

    def __init__(self, folder, every=1, **options):
        super().__init__(folder, every, **{"with_estimator": False, **options})

    def _state_of(self, fitted):
        return json.dumps(fitted.history_).encode()


class Task:
    """Simulated callback context."""

    def __init__(self, task_name, task_id=0, parent=None):
        self.task_name, self.task_id, self.parent, self.source_task_name = task_name, task_id, parent, None


class Trainer:
    """Estimator with one weight, which is also its loss."""

    validation_every, max_iter = 1, 10

    def __init__(self):
        self.history_ = []
        self._fitted = self

    def estimator(self):
        return self

    def get_trained_onnx(self):
        model = onnx.ModelProto()
        model.CopyFrom(MODEL)
        weight = float(self.history_[-1]["loss"])
        model.graph.initializer[0].float_data[:] = [weight]
        return model


class Run:
    """A simulated training, one epoch per call."""

    def __init__(self, checkpoint, task_name="fit", trainer=None):
        self.checkpoint, self.trainer = checkpoint, trainer or Trainer()
        self.task = Task(task_name)
        try:
            checkpoint.setup(self.trainer, self.task)
        except BaseException:
            checkpoint.teardown(self.trainer, self.task)
            raise

    def epoch(self, loss):
        epoch = len(self.trainer.history_) + 1
        self.trainer.history_.append({"epoch": epoch, "loss": loss, "validation_loss": None})
        epoch_task = Task("epoch", parent=self.task)
        self.checkpoint.on_fit_task_end(self.trainer, epoch_task)

    def end(self):
        self.checkpoint.teardown(self.trainer, self.task)


def train(checkpoint, losses, done=None):
    """Write an epoch for each loss; written ones are added to ``done``."""
    run = Run(checkpoint)
    done = [] if done is None else done
    try:
        for loss in losses:
            run.epoch(loss)
            done.append(loss)
    finally:
        run.end()


class Faults:
    """Let the call with this number fail, and with ``lasting`` all later calls that need disk space.

    ``strike`` is called with the name of the function and the path; it raises, or ends the process.
    """

    def __init__(self, monkeypatch, at, strike, lasting=False):
        self.left, self.strike, self.lasting, self.struck = at, strike, lasting, False
        for name in CALLS:
            monkeypatch.setattr(os, name, self._failing(name, getattr(os, name)))
        monkeypatch.setattr(files, "open", self._opened, raising=False)

    def count(self, name, path=None):
        self.left -= 1
        if self.left == 0 or (self.struck and self.lasting and name in ("open", "write", "fsync")):
            self.struck = True
            self.strike(name, path)

    def _failing(self, name, function):
        def call(*args, **kwargs):
            self.count(name, args[0] if isinstance(args[0], str | Path) else None)
            return function(*args, **kwargs)

        return call

    def _opened(self, *args, **kwargs):
        return HalfWritten(builtins.open(*args, **kwargs), self)


class HalfWritten:
    """A file whose write can fail after half of the bytes."""

    def __init__(self, file, faults):
        self._file, self._faults = file, faults

    def write(self, content):
        half = len(content) // 2
        self._file.write(content[:half])
        self._file.flush()
        self._faults.count("write")
        self._file.write(content[half:])
        return len(content)

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._file.close()


def kill(name, path):
    os.kill(os.getpid(), signal.SIGKILL)


def losses_in(folder):
    """Return the loss of every checkpoint; check that it loads and matches its saved estimator."""
    found = []
    for path in ModelCheckpoint(folder).paths():
        model = onnx.load(path)
        weight = float(numpy_helper.to_array(model.graph.initializer[0])[0])
        assert read_value(path, "loss") == weight
        state = path.with_suffix(".zip")
        if state.exists():
            assert json.loads(state.read_bytes())[-1]["loss"] == weight
        found.append(weight)
    return found
