"""Helpers of the tests of resumed trainings."""

import os

from ortlearn.callbacks import ModelCheckpoint


def training_state(trained):
    """Return the bytes of all trained arrays, and the other state of a training."""
    state = trained._fitted.state
    history = [{key: value for key, value in record.items() if key != "seconds"} for record in state.history]
    arrays = {**trained.trained_coef_, **state.states, **(state.updated or {})}
    rest = history, state.best_epoch, state.n_seen, state.start_kept, state.seed
    return {key: array.tobytes() for key, array in arrays.items()}, rest


class EveryState(ModelCheckpoint):
    """Write every state to a separate file."""

    def __init__(self, folder):
        super().__init__(folder, every=9, seconds=0)
        self.written = []

    def _write_last(self, folder, estimator):
        super()._write_last(folder, estimator)
        self.written.append(folder / f"state-{len(self.written)}.zip")
        os.replace(folder / "last.zip", self.written[-1])

    def _note_write_time(self, begun):
        pass  # every file is due
