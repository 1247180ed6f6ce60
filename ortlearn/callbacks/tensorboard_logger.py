"""Write the history of a training to event files of TensorBoard."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .tasks import call_key, check_trainer, imported, is_round, numbers_of, run_name

__all__ = ["TensorBoardLogger"]


class TensorBoardLogger:
    """Write the history of every call of ``fit`` to event files, which ``tensorboard --logdir FOLDER`` shows.

    Losses, scores, rates and seconds of the epochs are scalars. A training inside a search or a pipeline has
    a separate folder, named as those of :class:`ModelCheckpoint`. tensorboardX writes the files.

    Parameters
    ----------
    folder : str or path-like
        Folder of the event files, which is created.

    Raises
    ------
    ImportError
        On the first training without tensorboardX: ``pip install 'ortlearn[tensorboard]'``.

    Examples
    --------
    >>> from ortlearn.callbacks import TensorBoardLogger
    >>> trainer.set_callbacks(TensorBoardLogger("runs/prices")).fit(X, y)  # doctest: +SKIP
    """

    def __init__(self, folder: str | os.PathLike) -> None:
        self.folder = folder
        self._writers: dict[Any, Any] = {}

    def setup(self, estimator: Any, context: Any) -> None:
        """Open the event file of a training."""
        check_trainer(self, estimator)
        writer = imported("tensorboardX", "tensorboard", self).SummaryWriter
        self._writers[call_key(context)] = writer(str(Path(self.folder, *run_name(context))))

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Do nothing."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Write the numbers of an epoch."""
        if is_round(context):
            record = estimator.history_[-1]
            for name, value in numbers_of(record).items():
                self._writers[call_key(context.parent)].add_scalar(name, value, record["epoch"])

    def teardown(self, estimator: Any, context: Any) -> None:
        """Close the event file."""
        writer = self._writers.pop(call_key(context), None)
        if writer is not None:
            writer.close()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_writers": {}}
