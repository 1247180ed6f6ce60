"""The driver: callbacks, progress, checkpoints and memory."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from ortlearn import OrtGradientOptimizer
from ortlearn.callbacks import ModelCheckpoint
from ortlearn.distributed import DaskOrtGradientOptimizer
from ortlearn.exceptions import SavedFileError
from ortlearn.saving import load, save
from tests.distributed.shards import cut, same_bits

#: Trainings on a cluster take half a minute in all.
pytestmark = pytest.mark.slow

OPTIONS = {"max_iter": 4, "batch_size": 32, "random_state": 0, "learning_rate": 0.01}
SIZES = [200, 150, 250]


class Recorder:
    """Callback that records the epochs, and stops after ``last`` of them."""

    def __init__(self, last=100):
        self.last = last
        self.epochs = []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, **options):
        pass

    def on_fit_task_end(self, estimator, context, **options):
        if context.task_name == "epoch":
            record = estimator.history_[-1]
            self.epochs.append((record["epoch"], sum(record["worker_rows"].values())))
            return len(self.epochs) >= self.last
        return False


@pytest.mark.needs_callbacks
def test_callbacks_receive_every_epoch_and_can_stop_the_training(client, regression):
    X, y = regression
    recorder = Recorder(last=2)
    model = DaskOrtGradientOptimizer(LinearRegression(), client=client, **OPTIONS)
    model.set_callbacks(recorder).fit(cut(X, SIZES), cut(y, SIZES))
    assert model.n_iter_ == 2 and model._skl_callbacks[0].epochs == [(1, 600), (2, 600)]


@pytest.mark.needs_callbacks
@pytest.mark.parametrize("sync_every", [1, 2, "3 batches"])
def test_checkpoint_loads_as_local_estimator_and_resumes(client, regression, tmp_path, sync_every):
    X, y = regression
    options = {**OPTIONS, "sync_every": sync_every, "learning_rate": "Adam"}
    shards = cut(X, SIZES), cut(y, SIZES)
    expected = DaskOrtGradientOptimizer(LinearRegression(), client=client, **options).fit(*shards)
    for last in (1, 3):
        folder = tmp_path / str(last)
        model = DaskOrtGradientOptimizer(LinearRegression(), client=client, **options)
        checkpoint = ModelCheckpoint(folder, every=1, keep=10)
        model.set_callbacks(checkpoint, Recorder(last=last)).fit(*shards)
        files = sorted(folder.rglob("epoch-*.zip"))
        assert type(load(files[0])) is OrtGradientOptimizer
        found = DaskOrtGradientOptimizer(LinearRegression(), client=client, **options)
        assert same_bits(found.fit(*shards, resume_from=files[-1]), expected)


@pytest.mark.needs_callbacks
def test_resuming_requires_the_same_shards(client, regression, tmp_path):
    X, y = regression

    def model(**options):
        return DaskOrtGradientOptimizer(LinearRegression(), client=client, **{**OPTIONS, **options})

    def data(**changes):
        arrays = {"X": X, "y": y, "X_val": X + 1, "y_val": y}
        for name in changes:
            arrays[name] = arrays[name].copy()
            arrays[name][-1] += 1
        return {name: cut(array, SIZES) for name, array in arrays.items()}

    expected = model().set_callbacks(ModelCheckpoint(tmp_path, every=1, keep=9)).fit(**data())
    path = sorted(tmp_path.glob("*.zip"))[0]
    assert same_bits(model().fit(**data(), resume_from=path), expected)
    for name in ("X", "y", "X_val", "y_val"):
        with pytest.raises(SavedFileError, match=f"[ ,]{name}=.* instead of"):
            model().fit(**data(**{name: 1}), resume_from=path)
    for changes, text in (({"random_state": 7}, "random_state=7"), ({"sync_every": 2}, "sync_every=2")):
        with pytest.raises(SavedFileError, match=f"{text} instead of"):
            model(**changes).fit(**data(), resume_from=path)
    with pytest.raises(SavedFileError, match=r"no training to resume: .* \(on a cluster, the first round\)"):
        model().fit(**data(), resume_from=model())


def test_saved_estimator_loads_without_cluster(client, regression, tmp_path):
    X, y = regression
    model = DaskOrtGradientOptimizer(LinearRegression(), client=client, **OPTIONS)
    model.fit(cut(X, SIZES), cut(y, SIZES))
    save(model, tmp_path / "model.zip")
    loaded = load(tmp_path / "model.zip")
    assert type(loaded) is OrtGradientOptimizer
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert loaded.history_[0]["worker_rows"] == model.history_[0]["worker_rows"]


def test_progress_is_shown_on_the_driver(client, regression, capsys):
    pytest.importorskip("rich", reason="the progress bar is drawn by rich")
    X, y = regression
    model = DaskOrtGradientOptimizer(LinearRegression(), client=client, verbose=1, **OPTIONS)
    model.fit(cut(X, SIZES), cut(y, SIZES))
    assert "4/4" in capsys.readouterr().out


MEMORY = """
import json, resource, sys
import dask, dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from sklearn.linear_model import LinearRegression
from ortlearn.distributed import DaskOrtGradientOptimizer

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

@dask.delayed
def load(seed, n_samples):
    X = np.random.default_rng(seed).standard_normal((n_samples, 100), dtype=np.float32)
    return X, X[:, 0] - X[:, 1]

if __name__ == "__main__":
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        model = DaskOrtGradientOptimizer(
            LinearRegression(), learning_rate=0.01, batch_size=500, max_iter=1, random_state=0, client=client
        )
        model.fit([load(0, 1000), load(1, 1000)])
        before = peak()
        shards = [load(seed, 125_000) for seed in range(4)]
        model.fit(shards)
        X = da.concatenate([da.from_delayed(pair[0], (125_000, 100), np.float32) for pair in shards])
        mean = float(model.predict(X).mean().compute())
        print(json.dumps({"grown": peak() - before, "data": 4 * 125_000 * 400, "mean": mean}))
"""


@pytest.mark.slow
def test_driver_memory_is_independent_of_the_number_of_samples(tmp_path):
    """Training on and prediction of 200 MB grow the driver by less than a tenth of that."""
    script = tmp_path / "driver.py"
    script.write_text(MEMORY)
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, str(script)], cwd=root, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert abs(found["mean"]) < 0.1
    assert found["grown"] < 0.1 * found["data"], f"{found['grown'] / found['data']:.2f} of the data"
