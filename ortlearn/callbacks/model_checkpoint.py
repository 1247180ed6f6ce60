"""The trained model of every epoch, as files to go on from."""

from __future__ import annotations

import math
import os
import uuid
from numbers import Integral
from pathlib import Path
from typing import Any

from .tasks import check_trainer, is_round, run_name

__all__ = ["ModelCheckpoint"]

#: What a model can be the best by, and whether it is the better the higher.
MONITORED = {"validation_loss": False, "loss": False, "validation_score": True}


class ModelCheckpoint:
    """Write the trained ONNX model of an epoch to a file, and go on from it another day.

    The files are named ``epoch-000001.onnx`` and so on. A file is there as a whole or not at all, and stays
    when the training fails later. What was measured at that epoch is in the metadata of the model. In a
    pipeline or a search every training has a folder of its own, named by the tasks around it. Where nothing
    tells them apart, as in ``cross_validate`` and ensembles, the first training of an estimator writes to the
    folder itself, that of the next clone to ``fit-2`` inside it, and so on.

    Parameters
    ----------
    folder : str or os.PathLike
        Where; it is made if missing.
    every : int, default=1
        Epochs between two files.
    keep_best : int, default=None
        How many of the files to keep, the best ones by ``monitor``; None keeps all of them. Epochs at
        which ``monitor`` was not measured have no file then.
    monitor : {"validation_loss", "loss", "validation_score"}, default="validation_loss"
        What the best is best by: the lowest loss, or the highest score.
    with_estimator : bool, default=False
        Whether to write the estimator too, by joblib, as ``epoch-000001.joblib``: it has the state of the
        learning rate and the order of rows besides the weights, and its ``partial_fit`` goes on as if
        nothing had happened. Like every pickle it runs code when it is loaded.
    overwrite : bool, default=False
        Whether ``fit`` may remove the checkpoints of an earlier ``fit`` of the same estimator, or of another
        ModelCheckpoint; otherwise finding some is an error.

    Raises
    ------
    TypeError
        If ``folder`` is no path.
    ValueError
        If another parameter is invalid.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn import OrtGradientOptimizer
    >>> from ortlearn.callbacks import ModelCheckpoint
    >>> X, y = load_diabetes(return_X_y=True)
    >>> folder = tempfile.TemporaryDirectory()
    >>> checkpoint = ModelCheckpoint(folder.name, every=2)
    >>> options = {"learning_rate": "Adam", "random_state": 0}
    >>> trainer = OrtGradientOptimizer(Ridge(), max_iter=5, **options).set_callbacks(checkpoint).fit(X, y)
    >>> [path.name for path in checkpoint.paths()]
    ['epoch-000002.onnx', 'epoch-000004.onnx']
    >>> later = OrtGradientOptimizer(checkpoint.paths()[-1], warm_start=True, max_iter=3, **options)
    >>> later.fit(X, y).train_losses_[-1] < trainer.train_losses_[0]
    True
    >>> folder.cleanup()
    """

    def __init__(
        self,
        folder: str | os.PathLike,
        every: int = 1,
        keep_best: int | None = None,
        monitor: str = "validation_loss",
        with_estimator: bool = False,
        overwrite: bool = False,
    ):
        if not isinstance(folder, str | os.PathLike):
            raise TypeError(f"folder must be a path, as a str or a pathlib.Path, not {folder!r}.")
        _check_positive("every", every)
        if keep_best is not None:
            _check_positive("keep_best", keep_best)
        if monitor not in MONITORED:
            raise ValueError(f"monitor must be one of {sorted(MONITORED)}, not {monitor!r}.")
        self.folder = Path(folder)
        self.every = every
        self.keep_best = keep_best
        self.monitor = monitor
        self.with_estimator = with_estimator
        self.overwrite = overwrite
        self._writer = uuid.uuid4().hex  # tells its files from those of others, also in other processes
        self._known: dict[Path, dict[Path, float]] = {}
        self._earlier: dict[Path, list[Path]] = {}

    def setup(self, estimator: Any, context: Any) -> None:
        """Make the folder of a training.

        Parameters
        ----------
        estimator : OrtGradientOptimizer or OrtGradientForwardBackwardOptimizer
            What is trained.
        context : sklearn.callback.CallbackContext
            Its task.

        Raises
        ------
        TypeError
            If the estimator is another one.
        OSError
            If the folder cannot be made, locked or written to.
        ValueError
            If another training is writing there, or there are checkpoints of an earlier ``fit`` and
            ``overwrite`` is False.
        """
        from . import run_folders

        check_trainer(self, estimator)
        folder = self.folder.joinpath(*run_name(context))
        again = hasattr(estimator, "onnx_")
        lock = run_folders.reopen if again else run_folders.claim
        folder = lock(estimator, context, self.folder, folder, self._writer)
        if again and context.task_name == "partial_fit":
            return
        earlier, has_states = run_folders.earlier_checkpoints(folder)
        if (earlier or has_states) and not self.overwrite:
            raise ValueError(
                f"{folder} has {len(earlier) or 'estimators as'} checkpoints of an earlier fit: pass another "
                "folder to ModelCheckpoint, or overwrite=True to remove them."
            )
        self._known[folder], self._earlier[folder] = {}, earlier

    def teardown(self, estimator: Any, context: Any) -> None:
        """Take note that it is over; what is written stays.

        Parameters
        ----------
        estimator, context : object
            As in ``setup``.
        """
        from . import run_folders

        run_folders.release(context, self._writer)

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Do nothing.

        Parameters
        ----------
        estimator, context : object
            As in ``setup``.
        """

    def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any = None) -> None:
        """Write the model of an epoch, if it is its turn.

        Parameters
        ----------
        estimator, context : object
            As in ``setup``; the task is that of the epoch.
        fitted_estimator : estimator
            The estimator as this epoch leaves it.

        Raises
        ------
        OSError
            If it cannot be written; the checkpoints that are there stay.
        """
        from . import run_folders

        if not is_round(context):
            return
        record, folder = estimator.history_[-1], run_folders.held_folder(context.parent, self._writer)
        if self.keep_best is not None and record[self.monitor] is None:
            self._check_measured(estimator)
        elif record["epoch"] % self.every == 0 and self._is_wanted(folder, record):
            self._write(folder, record, fitted_estimator)

    def _check_measured(self, estimator: Any) -> None:
        """Raise an error if there was a time for it, and nothing can be the best."""
        due = estimator.validation_every
        due = max(1, round(due * estimator.max_iter)) if isinstance(due, float) else due
        values = [record[self.monitor] for record in estimator.history_]
        if len(values) >= due and values.count(None) == len(values):
            raise ValueError(
                f"keep_best={self.keep_best} keeps the best by {self.monitor}, which is not measured: "
                "pass X_val and y_val to fit, set early_stopping=True, or ModelCheckpoint(monitor='loss')."
            )

    def _is_wanted(self, folder: Path, record: dict[str, Any]) -> bool:
        """Return whether an epoch is among the best ones so far."""
        if self.keep_best is None:
            return True
        cost = self._cost(record[self.monitor])
        kept = self._costs(folder)
        return cost < math.inf and (len(kept) < self.keep_best or cost < max(kept.values()))

    def _write(self, folder: Path, record: dict[str, Any], fitted: Any) -> None:
        from . import checkpoint_files

        path = folder / f"epoch-{record['epoch']:06d}.onnx"
        checkpoint_files.make_way(path, self.overwrite)
        state = fitted if self.with_estimator else None
        checkpoint_files.write_checkpoint(path, fitted.get_trained_onnx(), record, self._writer, state)
        for old in self._earlier.pop(folder, ()):  # not before there is something in their place
            if old != path:
                checkpoint_files.remove_checkpoint(old)
        if self.keep_best is None:
            return
        kept = self._costs(folder)
        kept[path] = self._cost(record[self.monitor])
        for worse in sorted(kept, key=lambda one: kept[one])[self.keep_best :]:
            checkpoint_files.remove_checkpoint(worse)
            del kept[worse]

    def _cost(self, value: float | None) -> float:
        """Return what is the lower the better; what was not measured is never kept."""
        if value is None or math.isnan(value):
            return math.inf
        return -value if MONITORED[self.monitor] else value

    def _costs(self, folder: Path) -> dict[Path, float]:
        """Return the checkpoints in the folder of a run, and what each is ranked by."""
        from . import checkpoint_files

        if folder not in self._known:
            paths = checkpoint_files.checkpoint_paths(folder, nested=False)
            self._known[folder] = {
                path: self._cost(checkpoint_files.read_value(path, self.monitor))
                for path in filter(checkpoint_files.is_checkpoint, paths)
            }
        return self._known[folder]

    def paths(self) -> list[Path]:
        """Return the ONNX files in the folder, the epochs of a run in order.

        Returns
        -------
        list of pathlib.Path
            Those of other processes and of earlier days too.
        """
        from . import checkpoint_files

        return checkpoint_files.checkpoint_paths(self.folder)

    def best_path(self) -> Path:
        """Return the ONNX file that is best by ``monitor``.

        Returns
        -------
        pathlib.Path
            The first of them, if several are equal.

        Raises
        ------
        ValueError
            If there is no checkpoint at which it was measured.
        """
        from . import checkpoint_files

        costs = {path: self._cost(checkpoint_files.read_value(path, self.monitor)) for path in self.paths()}
        best = min(costs, key=lambda path: costs[path], default=None)
        if best is None:
            raise ValueError(f"There is no checkpoint in {self.folder}: fit first, or pass another folder.")
        if costs[best] == math.inf:
            raise ValueError(
                f"None of the {len(costs)} checkpoints in {self.folder} has a {self.monitor}: fit with what "
                "it needs, such as X_val and y_val, or set another monitor."
            )
        return best


def _check_positive(name: str, value: Any) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a whole number from 1 on, not {value!r}.")
