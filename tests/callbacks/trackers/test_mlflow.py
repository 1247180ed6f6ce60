"""Trainings as runs of MLflow in a local folder: parameters, metrics, the model, and failures."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from ortlearn.callbacks import MLflowLogger

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
