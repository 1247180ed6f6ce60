"""Log a training as a run of MLflow: parameters, the history, and the ONNX file."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from .tasks import call_key, check_trainer, imported, is_round, numbers_of, run_name

__all__ = ["MLflowLogger"]

#: Seconds between writes, since each is a request to the server, or several files.
SECONDS = 1.0
#: Longest text of a parameter in MLflow.
LONGEST = 6_000


class MLflowLogger:
    """Log every call of ``fit`` as a run of MLflow.

    A run has the parameters of the estimator, the history of the epochs as metrics, and the trained ONNX file
    as the model ``runs:/RUN/model`` with a signature. Each call of ``partial_fit`` is a separate run. The
    status of a run whose training failed is ``FAILED``, and ``KILLED`` after Ctrl-C or ``max_seconds``; both
    have no model.

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
        self._runs: dict[Any, _Run] = {}

    def setup(self, estimator: Any, context: Any) -> None:
        """Begin a run, and log the parameters."""
        check_trainer(self, estimator)
        run = _Run(self, "/".join(run_name(context)) or context.task_name)
        self._runs[call_key(context)] = run
        self.run_ids.append(run.id)
        run.log_parameters(estimator.get_params(deep=True))

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Do nothing."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Log the record of an epoch, or the model at the end of the training."""
        if is_round(context):
            self._runs[call_key(context.parent)].add(estimator.history_[-1])
            return
        run = self._runs[call_key(context)]
        if self.log_model:
            run.log_model(estimator)
        run.end("FINISHED")

    def teardown(self, estimator: Any, context: Any) -> None:
        """End the run; a training that did not end was interrupted or has failed."""
        run = self._runs.pop(call_key(context), None)
        if run is not None:
            error = sys.exc_info()[1]
            kinds = type(error), type(getattr(error, "__cause__", None))
            run.end("KILLED" if any(issubclass(kind, KeyboardInterrupt) for kind in kinds) else "FAILED")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_runs": {}, "run_ids": []}


class _Run:
    """A run of MLflow and the metrics that were not sent yet."""

    def __init__(self, logger: MLflowLogger, name: str) -> None:
        tracking = imported("mlflow.tracking", "mlflow", logger)
        uri = None if logger.tracking_uri is None else str(logger.tracking_uri)
        self._client = tracking.MlflowClient(tracking_uri=uri)
        known = self._client.get_experiment_by_name(logger.experiment)
        experiment = known.experiment_id if known else self._client.create_experiment(logger.experiment)
        run = self._client.create_run(experiment, run_name=name, tags=dict(logger.tags or {}))
        self.id = run.info.run_id
        self._pending: list[Any] = []
        self._sent, self._ended = time.monotonic(), False

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
            mlflow_onnx.save_model(model, str(path), signature=_signature(model))
            self._client.log_artifacts(self.id, str(path), "model")

    def end(self, status: str) -> None:
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
        specs = []
        for value in values:
            tensor = value.type.tensor_type
            shape = tuple(dim.dim_value if dim.HasField("dim_value") else -1 for dim in tensor.shape.dim)
            specs.append(TensorSpec(tensor_dtype_to_np_dtype(tensor.elem_type), shape, value.name))
        return Schema(specs)

    return ModelSignature(schema(model.graph.input), schema(model.graph.output))
