"""Summaries of saved estimators, without reading their arrays and graphs."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..exceptions import SavedFileError
from .files import MANIFEST, SUFFIX, read_manifest

__all__ = ["by_progress", "is_saved", "read_summary"]


def read_summary(path: str | os.PathLike) -> dict[str, Any]:
    """Return a summary of a saved estimator, without reading its arrays and graphs.

    Parameters
    ----------
    path : str or os.PathLike
        File or folder.

    Returns
    -------
    dict
        ``estimator`` (class), ``epochs`` that were run, ``batches`` of the epoch in progress, whether the
        training is ``finished``, and the ``versions`` of the packages that it was written with.

    Raises
    ------
    SavedFileError
        If the file is not a saved estimator, has a later format, or is damaged or altered.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn import OrtGradientOptimizer, saving
    >>> trained = OrtGradientOptimizer(Ridge(), random_state=0).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saving.save(trained, folder + "/model.zip")
    ...     saving.read_summary(folder + "/model.zip")["estimator"]
    'OrtGradientOptimizer'
    """
    manifest = read_manifest(path)
    return {**manifest["summary"], "versions": manifest["versions"]}


def is_saved(path: str | os.PathLike) -> bool:
    """Return whether a path looks like a saved estimator: a zip file, or a folder with a manifest."""
    path = Path(path)
    return (path / MANIFEST).is_file() if path.is_dir() else path.suffix.lower() == SUFFIX and path.is_file()


def by_progress(folder: Path) -> list[Path]:
    """Return the saved estimators of a folder, in decreasing order of progress."""
    progress = {}
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        with suppress(OSError, SavedFileError):
            summary = read_summary(path)
            progress[path] = summary["epochs"], summary["batches"]
    return sorted(progress, key=lambda path: progress[path], reverse=True)
