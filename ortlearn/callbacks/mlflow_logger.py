"""Log a training as a run of MLflow: parameters, the history, and the ONNX file."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from .tasks import call_key, imported, is_round, numbers_of, run_name
from .tracked_runs import RunLogger

__all__ = ["MLflowLogger"]

#: Seconds between writes, since each is a request to the server, or several files.
SECONDS = 1.0
#: Longest text of a parameter in MLflow.
LONGEST = 6_000


class MLflowLogger(RunLogger):
    """Log every call of ``fit``, and every series of calls of ``partial_fit``, as a run of MLflow.

    A run has the parameters of the estimator, the history of the epochs as metrics, and the trained ONNX file
    as the model ``runs:/RUN/model`` with a signature. The status of a run whose training failed is
    ``FAILED``, and ``KILLED`` after Ctrl-C or ``max_seconds``; both have no model.

    A call of ``partial_fit`` continues the run of the last call of this estimator, also of ``fit``, and
    replaces its model; the estimator stores the run, and so does its pickle. A call that restarts the
    training, as those of ``StreamMonitor(on_drift="restart")`` do, begins another run.

    Parameters
    ----------
    tracking_uri : str or path-like, default=None
        Server or folder; by default that of MLflow.
    experiment : str, default="ortlearn"
        Name of the experiment, which is created if it does not exist.
    log_model : bool, default=True
        Whether to log the trained ONNX file.
    tags : dict of str to str, default=None
        Tags of the runs.

    Raises
    ------
    ImportError
        On the first training without mlflow: ``pip install 'ortlearn[mlflow]'``.

    Examples
    --------
    >>> from ortlearn.callbacks import MLflowLogger
    >>> logger = MLflowLogger("sqlite:///runs.db", experiment="prices")
    >>> trainer.set_callbacks(logger).fit(X, y)  # doctest: +SKIP
    """

    def __init__(
        self,
        tracking_uri: Any = None,
        *,
        experiment: str = "ortlearn",
        log_model: bool = True,
        tags: dict[str, str] | None = None,
    ) -> None:
        self.tracking_uri = tracking_uri
        self.experiment = experiment
        self.log_model = log_model
        self.tags = tags
        #: Identifiers of the runs of this process, in the order of their beginnings.
        self.run_ids: list[str] = []
        super().__init__()

    @property
    def _key(self) -> tuple[str, ...]:
        return "mlflow", str(self.tracking_uri), self.experiment

    def _run(self, estimator: Any, context: Any, earlier: str | None) -> _Run:
        run = _Run(self, context, earlier)
        if run.id not in self.run_ids:
            self.run_ids.append(run.id)
        if not run.is_continued:
            run.log_parameters(estimator.get_params(deep=True))
        return run

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Log the record of an epoch, or the model at the end of the training."""
        super().on_fit_task_end(estimator, context)
        if not is_round(context):
            run = self._runs[call_key(context)]
            if self.log_model:
                run.log_model(estimator)
            run.end()

    def teardown(self, estimator: Any, context: Any) -> None:
        """End the run; a training that did not end was interrupted or has failed."""
        run = self._runs.pop(call_key(context), None)
        if run is not None:
            error = sys.exc_info()[1]
            kinds = type(error), type(getattr(error, "__cause__", None))
            run.end("KILLED" if any(issubclass(kind, KeyboardInterrupt) for kind in kinds) else "FAILED")

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "run_ids": []}


class _Run:
    """A run of MLflow and the metrics that were not sent yet."""

    def __init__(self, logger: MLflowLogger, context: Any, earlier: str | None = None) -> None:
        tracking = imported("mlflow.tracking", "mlflow", logger)
        uri = None if logger.tracking_uri is None else str(logger.tracking_uri)
        self._client = tracking.MlflowClient(tracking_uri=uri)
        known = self._client.get_experiment_by_name(logger.experiment)
        experiment = known.experiment_id if known else self._client.create_experiment(logger.experiment)
        self.id, self.is_continued = earlier or "", earlier is not None and self._reopened(earlier)
        if not self.is_continued:
            name, tags = "/".join(run_name(context)) or context.task_name, dict(logger.tags or {})
            self.id = self._client.create_run(experiment, run_name=name, tags=tags).info.run_id
        self._pending: list[Any] = []
        self._sent, self._ended = time.monotonic(), False

    def _reopened(self, run: str) -> bool:
        """Continue a run, and return whether it exists and was not deleted."""
        from mlflow.exceptions import MlflowException

        try:
            if self._client.get_run(run).info.lifecycle_stage != "active":
                return False
            self._client.update_run(run, status="RUNNING")
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            return False
        return True

    def log_parameters(self, parameters: dict[str, Any]) -> None:
        """Log the texts of parameters, in parts of at most 100, the limit of MLflow."""
        from mlflow.entities import Param

        texts = [Param(name, repr(value)[:LONGEST]) for name, value in sorted(parameters.items())]
        for start in range(0, len(texts), 100):
            self._client.log_batch(self.id, params=texts[start : start + 100])

    def add(self, record: dict[str, Any]) -> None:
        """Add the numbers of an epoch."""
        from mlflow.entities import Metric

        now, epoch = int(time.time() * 1000), record["epoch"]
        self._pending += [Metric(name, value, now, epoch) for name, value in numbers_of(record).items()]
        if time.monotonic() - self._sent >= SECONDS:
            self._send()

    def _send(self) -> None:
        """Send the pending metrics, in parts of at most 1,000, the limit of MLflow."""
        for start in range(0, len(self._pending), 1000):
            self._client.log_batch(self.id, metrics=self._pending[start : start + 1000])
        self._pending, self._sent = [], time.monotonic()

    def log_model(self, estimator: Any) -> None:
        """Log the trained ONNX file with its signature."""
        from mlflow import onnx as mlflow_onnx

        model = estimator.get_trained_onnx()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model")
            needed = mlflow_onnx.get_default_pip_requirements()  # otherwise another process infers them
            mlflow_onnx.save_model(model, str(path), signature=_signature(model), pip_requirements=needed)
            self._client.log_artifacts(self.id, str(path), "model")

    def end(self, status: str = "FINISHED") -> None:
        """Send the rest and end the run, unless it has ended."""
        if not self._ended:
            self._ended = True
            self._send()
            self._client.set_terminated(self.id, status)


def _signature(model: Any) -> Any:
    """Return the signature of an ONNX file: names, types and shapes of its inputs and outputs."""
    from mlflow.models import ModelSignature
    from mlflow.types import Schema, TensorSpec
    from onnx.helper import tensor_dtype_to_np_dtype

    def schema(values: Any) -> Any:
        specs: list[Any] = []
        for value in values:
            tensor = value.type.tensor_type
            shape = tuple(dim.dim_value if dim.HasField("dim_value") else -1 for dim in tensor.shape.dim)
            specs.append(TensorSpec(tensor_dtype_to_np_dtype(tensor.elem_type), shape, value.name))
        return Schema(specs)

    return ModelSignature(schema(model.graph.input), schema(model.graph.output))
