"""Trainings as runs of MLflow in a local folder: parameters, metrics, the model, and failures."""

import os
import pickle
import signal
import subprocess
import sys

import numpy as np
import onnx
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from ortlearn import OrtGradientOptimizer
from ortlearn.callbacks import MLflowLogger, PageHinkley, StreamMonitor

pytest.importorskip("mlflow")
from mlflow.tracking import MlflowClient  # noqa: E402

pytestmark = [
    pytest.mark.needs_callbacks,
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),  # of the import of mlflow
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


@pytest.fixture
def uri(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    return (tmp_path / "runs").as_uri()


def test_run_has_parameters_history_and_model(uri, trainer, data):
    import mlflow

    logger = MLflowLogger(uri, experiment="wine", tags={"team": "cellar"})
    X, _ = data
    trainer.set_callbacks(logger).fit(*data)
    client = MlflowClient(tracking_uri=uri)
    run = client.get_run(logger.run_ids[0])
    assert run.info.status == "FINISHED" and run.data.tags["team"] == "cellar"
    assert run.data.params["learning_rate"] == "0.1" and run.data.params["max_iter"] == "4"
    for name in ("loss", "validation_score"):
        logged = client.get_metric_history(run.info.run_id, name)
        assert [(each.step, each.value) for each in sorted(logged, key=lambda each: each.step)] == [
            (record["epoch"], record[name]) for record in trainer.history_
        ]
    loaded = mlflow.pyfunc.load_model(client.download_artifacts(run.info.run_id, "model"))
    predicted = loaded.predict({"X": X.astype(np.float32)})
    assert np.array_equal(predicted["label"], trainer.predict(X))
    assert loaded.metadata.signature.inputs.input_names() == ["X"]


def test_each_training_of_a_search_is_a_run(uri, trainer, data):
    logger = MLflowLogger(uri, log_model=False)
    GridSearchCV(trainer.set_callbacks(logger), {"learning_rate": [0.1, 0.01]}, cv=2).fit(*data)
    client = MlflowClient(tracking_uri=uri)
    runs = client.search_runs([client.get_experiment_by_name("ortlearn").experiment_id])
    assert len(runs) == 5 and {run.data.params["learning_rate"] for run in runs} == {"0.1", "0.01"}


class Broken:
    """Callback that fails in the second epoch."""

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        if context.task_name == "epoch" and estimator.history_[-1]["epoch"] == 2:
            raise RuntimeError("broken")

    def teardown(self, estimator, context):
        pass


def test_failed_training_is_a_failed_run_with_its_history(uri, trainer, data):
    logger = MLflowLogger(uri)
    with pytest.raises(RuntimeError, match="broken"):
        trainer.set_callbacks(logger, Broken()).fit(*data)
    client = MlflowClient(tracking_uri=uri)
    assert client.get_run(logger.run_ids[0]).info.status == "FAILED"
    assert len(client.get_metric_history(logger.run_ids[0], "loss")) == 2


def test_training_out_of_time_is_a_killed_run_with_its_history(uri, trainer, data):
    logger = MLflowLogger(uri)
    with pytest.warns(ConvergenceWarning, match="max_seconds"):
        trainer.set_params(max_seconds=1e-9).set_callbacks(logger).fit(*data)
    client = MlflowClient(tracking_uri=uri)
    assert client.get_run(logger.run_ids[0]).info.status == "KILLED"
    assert len(client.get_metric_history(logger.run_ids[0], "loss")) == trainer.n_iter_


PROGRAM = """
import sys
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from ortlearn import OrtGradientOptimizer
from ortlearn.callbacks import MLflowLogger

class Ready:
    def setup(self, estimator, context): pass
    def on_fit_task_begin(self, estimator, context): pass
    def teardown(self, estimator, context): pass
    def on_fit_task_end(self, estimator, context):
        if context.task_name == "epoch" and estimator.history_[-1]["epoch"] == 3:
            print(logger.run_ids[0], flush=True)

logger = MLflowLogger(sys.argv[1])
trainer = OrtGradientOptimizer(LogisticRegression(), learning_rate="SGD", max_iter=10**7, random_state=0)
trainer.set_callbacks(logger, Ready()).fit(*load_wine(return_X_y=True))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_ctrl_c_is_a_killed_run_with_its_history(uri):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, uri]
    with subprocess.Popen(command, env=environment, stdout=-1, stderr=-1, text=True) as child:
        run_id = child.stdout.readline().strip()
        child.send_signal(signal.SIGINT)
        _, error = child.communicate(timeout=60)
    assert error.strip().endswith("KeyboardInterrupt") and child.returncode != 0
    client = MlflowClient(tracking_uri=uri)
    run = client.get_run(run_id)
    assert run.info.status == "KILLED" and run.info.end_time >= run.info.start_time
    assert len(client.get_metric_history(run_id, "loss")) >= 3
    assert not client.list_artifacts(run_id)


def steps_of(client, run):
    """Return the epochs of a run in order."""
    return [metric.step for metric in client.get_metric_history(run, "loss")]


def test_stream_that_drifts_and_stops(uri, data):
    """A stream is a run that is finished; after a restart, epochs begin at 1 again, in another run."""
    X, y = data
    epochs = {}
    for reaction in ("restart", "stop"):
        logger = MLflowLogger(uri, log_model=False)
        monitor = StreamMonitor(detector=PageHinkley(), on_drift=reaction)
        stream = OrtGradientOptimizer(LogisticRegression(), learning_rate=0.1, random_state=0)
        stream.set_callbacks(logger, monitor)
        for call in range(14):
            stream.partial_fit(X, (y + (call >= 10)) % 3, classes=[0, 1, 2])
            if monitor.stopped:
                break
        assert [record["call"] for record in monitor.records if record["drift"]][:1] == [11]
        client = MlflowClient(tracking_uri=uri)
        assert {client.get_run(run).info.status for run in logger.run_ids} == {"FINISHED"}
        epochs[reaction] = [steps_of(client, run) for run in logger.run_ids]
    assert epochs["stop"] == [[*range(1, 12)]]
    assert epochs["restart"][0] == [*range(1, 11)] and epochs["restart"][1][0] == 1
    assert sum(map(len, epochs["restart"])) == 14


def test_calls_of_partial_fit_continue_a_run(uri, trainer, data):
    """Also that of fit, after pickling, and after a call that failed; other estimators have their own."""
    X, y = data
    logger, other = MLflowLogger(uri, tags={"team": "cellar"}), MLflowLogger(uri, experiment="other")
    trainer.set_params(early_stopping=False).set_callbacks(logger, other).fit(X, y)
    (run,) = logger.run_ids
    trainer.partial_fit(X, y)
    with pytest.raises(ValueError, match="classes"):
        trainer.partial_fit(X, y + 1)
    stored = pickle.loads(pickle.dumps(trainer)).partial_fit(X[::2], y[::2])
    (later,) = (each for each in stored._skl_callbacks if each.experiment == "ortlearn")
    assert (logger.run_ids, later.run_ids, len(other.run_ids)) == ([run], [run], 1)
    client = MlflowClient(tracking_uri=uri)
    assert client.get_run(run).info.status == "FINISHED" and steps_of(client, run) == [1, 2, 3, 4, 5, 6]
    model = onnx.load(client.download_artifacts(run, "model/model.onnx"))
    assert model.SerializeToString() == stored.get_trained_onnx().SerializeToString()
    clone(trainer).set_callbacks(logger).partial_fit(X, y)
    assert [steps_of(client, each) for each in logger.run_ids[1:]] == [[1]]
    client.delete_run(run)
    trainer.partial_fit(X, y)
    assert len(logger.run_ids) == 3 and steps_of(client, logger.run_ids[2]) == [6]
    assert client.get_run(logger.run_ids[2]).data.params["learning_rate"] == "0.1"
