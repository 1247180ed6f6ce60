"""Loss of workers, tasks, driver and client: the final result equals an undisturbed training, bit for bit."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from ortlearn.distributed import DaskOrtGradientOptimizer
from ortlearn.exceptions import ClusterError, SavedFileError
from tests.distributed.conftest import cluster_of
from tests.distributed.faults import HELD, RELEASED, FaultyRate
from tests.distributed.shards import cut, same_bits

#: Trainings on a cluster, half a minute in all.
pytestmark = pytest.mark.slow

SIZES = [200, 150, 250]
#: Number of a task of the third round.
THIRD_ROUND = 2 * len(SIZES) + 2


def trained(client, regression, rate, X_val=None, **options):
    X, y = regression
    options = {"max_iter": 5, "batch_size": 32, "random_state": 0, **options}
    resume_from = options.pop("resume_from", None)
    model = options.pop("model", None) or DaskOrtGradientOptimizer(LinearRegression(), learning_rate=rate)
    model.set_params(client=client, learning_rate=rate, **options)
    return model.fit(cut(X, SIZES), cut(y, SIZES), resume_from=resume_from)


@pytest.fixture
def undisturbed(client, regression):
    return trained(client, regression, FaultyRate())


@pytest.fixture
def once_held():
    """Return a function that calls another in a thread once a task is held; release the task at the end."""

    def start(action):
        thread = threading.Thread(target=lambda: HELD.wait(60) and action(), daemon=True)
        thread.start()
        return thread

    HELD.clear()
    RELEASED.clear()
    yield start
    RELEASED.set()


def wait_for(condition):
    """Wait until a condition holds, after messages without reply."""
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.01)
    pytest.fail("the condition did not hold within a minute")


def is_gone(pid):
    """Return whether a process has ended; its replacement may not answer yet."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("fault, n_lost", [("kill", 1), ("kill all", 2)])
def test_lost_workers_do_not_change_the_result(undisturbed, regression, tmp_path, fault, n_lost):
    with cluster_of(2, processes=True, is_current=False) as client:
        pids = client.run(os.getpid)
        (tmp_path / "pids").write_text(" ".join(map(str, pids.values())))
        rate = FaultyRate(folder=str(tmp_path), number=THIRD_ROUND, fault=fault)
        found = trained(client, regression, rate)
        wait_for(lambda: sum(map(is_gone, pids.values())) == n_lost)
    assert (tmp_path / "calls").stat().st_size > THIRD_ROUND
    assert same_bits(found, undisturbed)


def test_slow_worker_does_not_change_the_result(client, undisturbed, regression, tmp_path):
    rate = FaultyRate(folder=str(tmp_path), number=THIRD_ROUND, fault="sleep")
    found = trained(client, regression, rate)
    assert same_bits(found, undisturbed)
    assert max(record["seconds"] for record in found.history_) >= 1


def test_failed_task_discards_the_round(client, undisturbed, regression, tmp_path):
    rate = FaultyRate(folder=str(tmp_path), number=THIRD_ROUND, fault="fail")
    model = DaskOrtGradientOptimizer(LinearRegression())
    with pytest.raises(ClusterError, match=r"Partition \d: RuntimeError: the disk is full. The round was"):
        trained(client, regression, rate, model=model)
    assert model.n_iter_ == 2 and model.train_losses_ == undisturbed.train_losses_[:2]
    assert np.isfinite(model.predict(regression[0])).all()
    wait_for(lambda: not any(client.processing().values()))
    with pytest.raises(SavedFileError, match="X=600 x 4 values .* instead of 200 x 4 values"):
        X, y = regression
        model.fit(cut(X, [600]), cut(y, [600]), resume_from=model)
    found = trained(client, regression, rate, model=model, resume_from=model)
    assert same_bits(found, undisturbed)


def test_failure_in_first_round_leaves_the_estimator_unchanged(client, regression, tmp_path):
    rate = FaultyRate(folder=str(tmp_path), number=1, fault="fail")
    model = DaskOrtGradientOptimizer(LinearRegression())
    with pytest.raises(ClusterError, match="the disk is full"):
        trained(client, regression, rate, model=model)
    assert not hasattr(model, "n_iter_")
    with pytest.raises(SavedFileError, match=r"no training to resume: .* \(on a cluster, the first round\)"):
        trained(client, regression, rate, model=model, resume_from=model)


def test_interrupt_cancels_the_round(client, undisturbed, regression, tmp_path, once_held):
    rate = FaultyRate(folder=str(tmp_path), number=THIRD_ROUND, fault="hold")
    model = DaskOrtGradientOptimizer(LinearRegression())
    main = threading.main_thread().ident
    thread = once_held(lambda: signal.pthread_kill(main, signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        trained(client, regression, rate, model=model)
    thread.join()
    RELEASED.set()
    assert model.n_iter_ == 2
    found = trained(client, regression, rate, model=model, resume_from=model)
    assert same_bits(found, undisturbed)


def test_client_closed_during_a_round(client, undisturbed, regression, tmp_path, once_held):
    rate = FaultyRate(folder=str(tmp_path), number=THIRD_ROUND, fault="hold")
    model = DaskOrtGradientOptimizer(LinearRegression())
    with cluster_of(1, processes=False, is_current=False) as other:
        thread = once_held(other.close)
        with pytest.raises(ClusterError, match="The Dask client was closed"):
            trained(other, regression, rate, model=model)
        thread.join()
        RELEASED.set()
    assert model.n_iter_ == 2
    found = trained(client, regression, rate, model=model, resume_from=model)
    assert same_bits(found, undisturbed)


DRIVER = """
import os, sys
import numpy as np
from distributed import Client
from sklearn.linear_model import LinearRegression
from ortlearn.callbacks import ModelCheckpoint
from ortlearn.distributed import DaskOrtGradientOptimizer
from tests.distributed.faults import FaultyRate
from tests.distributed.shards import cut

class Die:
    def setup(self, estimator, context): pass
    def teardown(self, estimator, context): pass
    def on_fit_task_begin(self, estimator, context, **options): pass
    def on_fit_task_end(self, estimator, context, **options):
        if estimator.n_iter_ == 3:
            os._exit(7)

data = np.load(sys.argv[2])
with Client(sys.argv[1]) as client:
    model = DaskOrtGradientOptimizer(
        LinearRegression(), learning_rate=FaultyRate(), client=client,
        max_iter=5, batch_size=32, random_state=0,
    )
    model.set_callbacks(ModelCheckpoint(sys.argv[3], every=1, keep=5), Die())
    model.fit(cut(data["X"], [200, 150, 250]), cut(data["y"], [200, 150, 250]))
"""


@pytest.mark.needs_callbacks
def test_training_resumes_from_checkpoint_of_killed_driver(client, undisturbed, regression, tmp_path):
    np.savez(tmp_path / "data.npz", X=regression[0], y=regression[1])
    with cluster_of(1, processes=False, is_current=False, protocol="tcp") as other:
        arguments = [other.scheduler.address, str(tmp_path / "data.npz"), str(tmp_path / "saved")]
        root = str(Path(__file__).parents[2])
        done = subprocess.run(
            [sys.executable, "-c", DRIVER, *arguments], cwd=root, capture_output=True, text=True, timeout=120
        )
    assert done.returncode == 7, done.stderr
    found = trained(client, regression, FaultyRate(), resume_from=tmp_path / "saved")
    assert same_bits(found, undisturbed)
