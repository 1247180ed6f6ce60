"""Checkpoints of a training: its ONNX model, and the state to resume it."""

from __future__ import annotations

import math
import os
import time
import uuid
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from ..exceptions import warn_user
from .ranking import Ranking, check_monitor
from .tasks import check_trainer, is_round, run_name

__all__ = ["ModelCheckpoint"]

#: File with the state of the training between the files of two epochs.
LAST = "last.zip"
#: Minimum time between two files, as a multiple of the time to write one; not applied with ``every``.
SHARE = 50


class ModelCheckpoint:
    """Write checkpoints of a training, and resume it from the last one.

    An epoch has two files: ``epoch-000001.onnx``, the trained model with the measured values in its metadata,
    and ``epoch-000001.zip``, the estimator as :func:`ortlearn.saving.save` writes it, from which ``fit(...,
    resume_from=folder)`` resumes the training with bitwise the same result. ``last.zip`` has the state
    between these files, also within long epochs. Files are complete or missing, and are kept if the training
    fails or is killed. In a pipeline or a search, every training has its own folder, named by the enclosing
    tasks. If these names are equal, as in ``cross_validate`` and ensembles, the first training of an
    estimator writes to the folder itself, that of the next clone to ``fit-2`` inside it, and so on.

    Parameters
    ----------
    folder : str or os.PathLike
        Folder of the checkpoints, created if missing.
    every : int, default=None
        Number of epochs between two files of epochs; 1 if ``save_best`` is given. By default, an epoch is
        written if ``seconds`` have passed since the last file, and the last epoch, which takes less than 2 %
        of the time.
    keep_best : int, default=None
        Former name of ``save_best``.

        .. deprecated:: 0.2
            Use ``save_best``.
    monitor : {"validation_loss", "loss", "validation_score"}, default="validation_loss"
        Criterion of the best epochs: the lowest loss, or the highest score.
    with_estimator : bool, default=True
        Whether to write zip files next to the models, which are required to resume a training.
    overwrite : bool, default=False
        Whether ``fit`` may remove the checkpoints of an earlier ``fit`` of the same estimator, or of another
        ModelCheckpoint; otherwise existing checkpoints are an error.
    seconds : float or None, default=60
        Time after which ``last.zip`` is written again, between epochs and within them; longer if writing
        takes more than 2 % of the time. With None it is not written.
    keep : int, default=None
        Number of files of the last epochs to keep; by default all if ``every`` is given, and otherwise one.
    save_best : int or bool, default=None
        Number of files of the best epochs by ``monitor`` to keep. Without ``keep``, only these have files,
        and epochs without a value of ``monitor`` have none.
    resume : bool, default=False
        Whether ``fit`` resumes the training whose checkpoints are in the folder, if there are any, such as
        after a search was killed. Checkpoints of other parameters, seeds or data are an error.

    Raises
    ------
    TypeError
        If ``folder`` is not a path.
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
    >>> again = OrtGradientOptimizer(Ridge(), max_iter=5, **options).fit(X, y, resume_from=folder.name)
    >>> again.train_losses_ == trainer.train_losses_
    True
    >>> folder.cleanup()
    """

    def __init__(
        self,
        folder: str | os.PathLike,
        every: int | None = None,
        keep_best: int | None = None,
        monitor: str = "validation_loss",
        with_estimator: bool = True,
        overwrite: bool = False,
        *,
        seconds: float | None = 60.0,
        keep: int | None = None,
        save_best: int | bool | None = None,
        resume: bool = False,
    ):
        if not isinstance(folder, str | os.PathLike):
            raise TypeError(f"folder must be a path, as a str or a pathlib.Path, not {folder!r}.")
        if keep_best is not None:
            warn_user(
                "keep_best of ModelCheckpoint was renamed to save_best in version 0.2 and will be removed in "
                "version 0.4. Use save_best.",
                FutureWarning,
            )
            _check_positive("keep_best", keep_best)
            save_best = keep_best if save_best is None else save_best
        save_best = int(save_best) or None if isinstance(save_best, bool) else save_best
        for name, value in (("every", every), ("keep", keep), ("save_best", save_best)):
            if value is not None:
                _check_positive(name, value)
        check_monitor(monitor)
        if seconds is not None and not (isinstance(seconds, Real) and seconds >= 0):
            raise ValueError(f"seconds must be None or a number of 0 or more, not {seconds!r}.")
        if every is None and save_best is not None:
            every = 1
        if every is None and keep is None:
            keep = 1
        self.folder = Path(folder)
        self.every = every
        self.monitor = monitor
        self.with_estimator = with_estimator
        self.overwrite = overwrite
        self.seconds = seconds
        self.keep = keep
        self.save_best = save_best
        self.resume = resume
        self._writer = uuid.uuid4().hex  # identifies its files, also in other processes
        self._ranking = Ranking(monitor, keep, save_best)
        self._earlier: dict[Path, list[Path]] = {}
        self._resumed: dict[Path, bool] = {}
        self._by_skops: dict[int, Any] = {}
        self._written = -math.inf
        self._took = 0.0

    def setup(self, estimator: Any, context: Any) -> None:
        """Create the folder of a training."""
        from . import run_folders

        check_trainer(self, estimator)
        is_fitted = hasattr(estimator, "onnx_")
        lock = run_folders.reopen if is_fitted else run_folders.claim
        folder = lock(estimator, context, self.folder, self.folder.joinpath(*run_name(context)), self._writer)
        if self._written == -math.inf or context.task_name == "fit":
            self._written = time.monotonic()
        is_fit, is_resumed = context.task_name != "partial_fit", getattr(estimator, "_is_resumed", False)
        if is_resumed:
            run_folders.RESUMED[self._writer].add(folder)
        self._resumed[folder] = is_fit and (self.resume or is_resumed)
        if self._resumed[folder] or (is_fitted and not is_fit):
            return
        earlier, has_states = run_folders.earlier_checkpoints(folder)
        if (earlier or has_states) and not self.overwrite:
            raise ValueError(
                f"{folder} already has {len(earlier) or 'estimators as'} checkpoints of an earlier fit. "
                "Pass another folder to ModelCheckpoint, resume=True to resume that training, or "
                "overwrite=True to remove them."
            )
        self._earlier[folder] = earlier
        self._ranking.forget(folder)

    def path_to_resume(self, context: Any) -> Path | None:
        """Return the folder of a training to resume."""
        from . import run_folders

        return run_folders.folder_to_resume(context, self._writer) if self.resume else None

    def teardown(self, estimator: Any, context: Any) -> None:
        """Release the folder of a training; its files are kept."""
        from . import run_folders

        self._by_skops.clear()
        run_folders.release(context, self._writer)

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Do nothing."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Write the model of an epoch, if it is due."""
        from . import run_folders

        if not is_round(context):
            return
        record, folder = estimator.history_[-1], run_folders.held_folder(context.parent, self._writer)
        is_due = self._is_due() if self.every is None else record["epoch"] % self.every == 0
        if self._ranking.cannot_rank(record):
            self._ranking.check_measured(estimator)
        elif is_due and self._ranking.wants(folder, record):
            self._write(folder, record, estimator)
            return
        if self._is_due():
            self._write_last(folder, estimator)

    def on_training_pause(self, estimator: Any, context: Any) -> None:
        """Write the state of a training within an epoch, if it is due and not a call of ``partial_fit``."""
        from . import run_folders

        if context.task_name != "partial_fit" and self._is_due():
            self._write_last(run_folders.held_folder(context, self._writer), estimator)

    def on_training_over(self, estimator: Any, context: Any) -> None:
        """Write the last epoch, if files are written by time, and update the state."""
        from . import run_folders

        if context.task_name == "partial_fit" or not estimator.history_:
            return
        folder, record = run_folders.held_folder(context, self._writer), estimator.history_[-1]
        path = _epoch_path(folder, record)
        if self.every is None and not path.exists() and self._ranking.wants(folder, record):
            self._write(folder, record, estimator)
        if path.exists():
            (folder / LAST).unlink(missing_ok=True)
        elif self.resume or (folder / LAST).exists():
            self._write_last(folder, estimator)

    def _is_due(self) -> bool:
        """Return whether to write a file now, such that writing takes less than 2 % of the time."""
        if self.seconds is None:
            return False
        return time.monotonic() - self._written >= max(self.seconds, SHARE * self._took)

    def _state_of(self, fitted: Any) -> bytes:
        """Return the content of the zip file of an estimator."""
        from ..saving.public import packed_estimator

        return packed_estimator(fitted, self._by_skops)

    def _write(self, folder: Path, record: dict[str, Any], estimator: Any) -> None:
        from . import checkpoint_files

        begun, path = time.monotonic(), _epoch_path(folder, record)
        fitted = estimator._fitted.estimator()
        checkpoint_files.prepare_path(path, self.overwrite or self._resumed.get(folder, False))
        state = self._state_of(fitted) if self.with_estimator else None
        checkpoint_files.write_checkpoint(path, fitted.get_trained_onnx(), record, self._writer, state)
        earlier = self._earlier.pop(folder, None)
        if earlier is not None:  # only after their replacement is written
            (folder / LAST).unlink(missing_ok=True)
        for old in earlier or ():
            if old != path:
                checkpoint_files.remove_checkpoint(old)
        self._ranking.add(path, record)
        self._note_write_time(begun)

    def _write_last(self, folder: Path, estimator: Any) -> None:
        from ..graphs.files import write_atomically

        if not self.with_estimator:
            return
        begun, state = time.monotonic(), self._state_of(estimator._fitted.estimator())
        write_atomically(folder / LAST, lambda file: file.write(state))
        self._note_write_time(begun)

    def _note_write_time(self, begun: float) -> None:
        """Record the time that writing a file took."""
        self._written = time.monotonic()
        self._took = self._written - begun

    def paths(self) -> list[Path]:
        """Return the ONNX files in the folder, the epochs of a run in order.

        Returns
        -------
        list of pathlib.Path
            Files, including those of other processes and earlier trainings.
        """
        from . import checkpoint_files

        return checkpoint_files.checkpoint_paths(self.folder)

    def best_path(self) -> Path:
        """Return the ONNX file that is best by ``monitor``.

        Returns
        -------
        pathlib.Path
            The first one, if several are equal.

        Raises
        ------
        ValueError
            If no checkpoint has a value of ``monitor``.
        """
        from . import checkpoint_files

        return self._ranking.best(checkpoint_files.checkpoint_paths(self.folder), self.folder)


def _epoch_path(folder: Path, record: dict[str, Any]) -> Path:
    return folder / f"epoch-{record['epoch']:06d}.onnx"


def _check_positive(name: str, value: Any) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an integer of 1 or more, not {value!r}.")
