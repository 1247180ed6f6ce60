"""Calls of ``fit`` that were killed are resumed, with bitwise the same weights, calibration and file."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPRegressor

from ortlearn import OrtGradientOptimizer, OrtIntervalRegressor, OrtSetClassifier
from ortlearn.callbacks import ModelCheckpoint
from tests.intervals.test_interval_regressor import X_NEW, Killer, X, Y

pytestmark = [pytest.mark.slow, pytest.mark.needs_callbacks]

REGRESSOR = MLPRegressor(hidden_layer_sizes=(4,), max_iter=2, random_state=0)
#: Kind, model, parameters, and epochs of all trainings before the process is killed.
CASES = {
    "network": (OrtIntervalRegressor, REGRESSOR, {}, 2),
    "ensemble": (OrtIntervalRegressor, REGRESSOR, {"method": "ensemble", "n_members": 3}, 7),
    "normalised": (OrtIntervalRegressor, Ridge(), {"method": "residual", "normalize": True}, 5),
    "sets": (OrtSetClassifier, LogisticRegression(), {"probabilities": "temperature"}, 2),
}


class KillProcess(Killer):
    """Callback that kills its process."""

    def on_fit_task_end(self, estimator, context):
        self.left -= context.task_name != "fit"
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def fitted(case, folder, kills=False, **how):
    kind, model, parameters, epochs = CASES[case]
    optimizer = OrtGradientOptimizer(model, learning_rate="Adam", max_iter=3, batch_size=50)
    optimizer.set_callbacks(*[KillProcess(epochs)][:kills], ModelCheckpoint(folder, every=1))
    labels = np.where(Y > 10, "b", "a") if kind is OrtSetClassifier else Y
    return kind(optimizer, random_state=0, **parameters).fit(X, labels, **how)


@pytest.mark.parametrize("case", CASES)
def test_killed_processes(case, tmp_path):
    command = [sys.executable, "-m", "tests.intervals.test_killed_fits", case, str(tmp_path / "parts")]
    assert subprocess.run(command, timeout=300).returncode == -signal.SIGKILL
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "parts").rglob("*.zip")}
    assert len(written) == CASES[case][-1] - 1  # the last epoch was killed before its file was complete
    resumed = fitted(case, tmp_path / "parts", resume_from=tmp_path / "parts")
    assert all(path.stat().st_mtime_ns == time for path, time in written.items())  # not trained again
    whole = fitted(case, tmp_path / "whole")
    assert resumed.get_trained_onnx() == whole.get_trained_onnx()
    for own, other in zip(resumed.estimators_, whole.estimators_, strict=True):
        assert own.train_losses_ == other.train_losses_
    name = "predict_set" if case == "sets" else "predict_interval"
    for own, other in zip(*(getattr(model, name)(X_NEW) for model in (resumed, whole)), strict=True):
        np.testing.assert_array_equal(own, other)


if __name__ == "__main__":
    fitted(*sys.argv[1:], kills=True)
