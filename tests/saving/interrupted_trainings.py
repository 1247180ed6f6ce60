"""Trainings that Ctrl-C interrupts, and the errors of a resumption."""

import signal

import numpy as np
import pytest

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import SavedFileError

KINDS = {"one_graph": OrtGradientOptimizer, "two_calls": OrtGradientForwardBackwardOptimizer}
rng = np.random.default_rng(0)
X = rng.normal(size=(90, 3)).astype(np.float32)
Y = X @ np.array([1.0, -2.0, 0.5], np.float32)
WEIGHTS = rng.uniform(0.5, 2, size=90)
X_VAL, Y_VAL = X[:20] + 1, Y[:20]
OPTIONS = {"learning_rate": "Adam", "max_iter": 4, "random_state": 0, "batch_size": 16}
VALIDATION = {"X_val": X_VAL, "y_val": Y_VAL, "sample_weight_val": WEIGHTS[:20]}


class Stop:
    """Interrupt a training after some epochs, as Ctrl-C does."""

    def __init__(self, n_epochs=2):
        self.n_epochs = n_epochs

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, **others):
        pass

    def on_fit_task_end(self, estimator, context, **others):
        if context.task_name == "epoch" and len(estimator.history_) == self.n_epochs:
            signal.raise_signal(signal.SIGINT)


def interrupted(trainer, *arguments, method="fit", **options):
    """Return a trainer after an interrupt."""
    trainer.set_callbacks(Stop())
    with pytest.raises(KeyboardInterrupt):
        getattr(trainer, method)(*arguments, **options)
    return trainer.set_callbacks()


def message_of(trainer, *arguments, **options):
    with pytest.raises(SavedFileError) as caught:
        trainer.fit(*arguments, **options)
    return str(caught.value).partition(". Pass the original")[0].removeprefix("This is not the training to ")


def changed_at(array, row):
    array = array.copy()
    array[row] += np.float32(0.25)
    return array
