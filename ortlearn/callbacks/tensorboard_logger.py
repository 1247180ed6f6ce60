"""Write the history of a training to event files of TensorBoard."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from .tasks import call_key, imported, numbers_of, run_name
from .tracked_runs import RunLogger

__all__ = ["TensorBoardLogger"]

#: Seconds between writes.
SECONDS = 2
#: Numbers of the event files of this process: those of tensorboardX of the same second have the same name.
NUMBERS = count(1)


class TensorBoardLogger(RunLogger):
    """Write the history of trainings to event files, which ``tensorboard --logdir FOLDER`` shows.

    Losses, scores, rates and seconds of the epochs are scalars. A training inside a search or a pipeline has
    a separate folder, named as those of :class:`ModelCheckpoint`, and one that finds event files in its
    folder has ``fit-2``, ``fit-3`` and so on inside it. tensorboardX writes the files.

    A call of ``partial_fit`` continues the folder of the last call of this estimator, also of ``fit``, also
    after pickling; one that restarts the training has another folder. Its event file is complete after two
    seconds, ``close`` or the end of the process.

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
        #: Writers of calls of ``partial_fit``, by folder.
        self._kept: dict[str, Any] = {}
        super().__init__()

    @property
    def _key(self) -> tuple[str, ...]:
        return "tensorboard", str(self.folder)

    def _run(self, estimator: Any, context: Any, earlier: str | None) -> _Run:
        opened, folder = imported("tensorboardX", "tensorboard", self).SummaryWriter, earlier
        if folder is None:
            base = Path(self.folder, *run_name(context))
            folders = (base / f"fit-{number}" if number > 1 else base for number in count(1))
            folder = str(next(folder for folder in folders if not any(folder.glob("*tfevents*"))))
        writer = self._kept.pop(folder, None)
        if writer is None:
            suffix = f".{os.getpid()}.{next(NUMBERS)}"
            writer = opened(folder, flush_secs=SECONDS, filename_suffix=suffix)
        return _Run(folder, earlier is not None, writer)

    def teardown(self, estimator: Any, context: Any) -> None:
        """Close the event file, unless another call may continue it."""
        run = self._runs.pop(call_key(context), None)
        if run is not None and context.task_name == "partial_fit":
            self._kept[run.id] = run.writer
        elif run is not None:
            run.end()

    def close(self) -> None:
        """Complete the event files of calls of ``partial_fit``; later calls begin other files."""
        while self._kept:
            self._kept.popitem()[1].close()

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_kept": {}}


@dataclass(frozen=True)
class _Run:
    """A folder of event files."""

    id: str
    is_continued: bool
    writer: Any

    def add(self, record: dict[str, Any]) -> None:
        """Write the numbers of an epoch."""
        for name, value in numbers_of(record).items():
            self.writer.add_scalar(name, value, record["epoch"])

    def end(self) -> None:
        """Close the event file."""
        self.writer.close()
