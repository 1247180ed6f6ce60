"""``save`` and ``load``: the public functions for saved estimators."""

from __future__ import annotations

import os
import pkgutil
from collections.abc import Sequence
from typing import Any

from ..exceptions import OmittedWarning, SavedFileError, warn_user
from .files import Content, packed, read, write

__all__ = ["load", "packed_estimator", "save"]

#: Modules that convert estimators of a class to contents and back.
KINDS = {
    "OrtGradientOptimizer": "ortlearn.estimators.saved",
    "OrtGradientForwardBackwardOptimizer": "ortlearn.estimators.saved",
    "OrtIntervalRegressor": "ortlearn.intervals.saved",
    "OrtSetClassifier": "ortlearn.intervals.saved",
}


def save(estimator: Any, path: str | os.PathLike) -> None:
    """Write an estimator to a zip file or a folder.

    The file contains the trained ONNX model, the weights and the state of the learning rate, parameters,
    history and random state, and for an unfinished training the state to resume it by
    ``fit(resume_from=path)``. The scikit-learn model is written by skops, if it is installed. An existing
    file is replaced once the new one is complete.

    Parameters
    ----------
    estimator : OrtGradientOptimizer or OrtGradientForwardBackwardOptimizer
        Fitted or interrupted estimator; one that trains on a cluster is saved as the estimator for one
        machine.
    path : str or os.PathLike
        A zip file if it ends with ``.zip``, a folder otherwise.

    Raises
    ------
    NotFittedError
        If the estimator is not fitted.
    SavedFileError
        If the path is a folder with other files, or steps in front of the graph need skops, which is not
        installed or cannot write them.
    OSError
        If the file cannot be written.

    Warns
    -----
    OmittedWarning
        If a part that cannot be written without pickle, such as a Python loss, is omitted.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn import OrtGradientOptimizer
    >>> from ortlearn.saving import load, save
    >>> trained = OrtGradientOptimizer(Ridge(), random_state=0).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(trained, folder + "/model.zip")
    ...     later = load(folder + "/model.zip")
    >>> (later.predict([[3.0]]) == trained.predict([[3.0]])).all()
    np.True_
    """
    if hasattr(estimator, "to_local"):  # a connection to a cluster is not saved
        estimator = estimator.to_local()
    kind = type(estimator).__name__
    if kind not in KINDS:
        raise TypeError(f"save takes {' or '.join(KINDS)}, not {kind}.")
    content = _module(kind).content_of(estimator)
    warn_of_omissions(content, "It is saved without")
    write(path, content)


def packed_estimator(estimator: Any, written: dict | None = None) -> bytes:
    """Return the bytes of the zip file of an estimator, without a warning of omitted parts."""
    kind = next(cls.__name__ for cls in type(estimator).__mro__ if cls.__name__ in KINDS)
    return packed(_module(kind).content_of(estimator, written))


def load(path: str | os.PathLike, trusted: Sequence[str] = ()) -> Any:
    """Read an estimator from a zip file or a folder; no code of the file is run.

    Parameters
    ----------
    path : str or os.PathLike
        File or folder that :func:`save` or ``ModelCheckpoint`` has written.
    trusted : sequence of str, default=()
        Types that the scikit-learn model may contain besides those that skops trusts. Loading can run their
        code: name only types that you know to be safe.

    Returns
    -------
    OrtGradientOptimizer or OrtGradientForwardBackwardOptimizer
        Estimator, whose predictions are bitwise the same, and whose training can be continued.

    Raises
    ------
    SavedFileError
        If the file is not a saved estimator, has a later format, is damaged or altered, or needs an object of
        types that are not trusted.
    OSError
        If it cannot be read.

    Warns
    -----
    OmittedWarning
        If the scikit-learn model is not read, since skops is not installed or types in it are not trusted.
        The estimator then predicts and trains by its graph, and ``to_sklearn`` is an error.
    """
    content = read(path)
    kind = content.manifest["summary"]["estimator"]
    if kind not in KINDS:
        raise SavedFileError(f"{path} has an estimator of the unknown class {kind!r}.")
    warn_of_omissions(content, "It was saved without")
    try:
        return _module(kind).estimator_of(content, trusted)
    except SavedFileError as error:
        raise SavedFileError(f"{path} cannot be loaded. {error}") from error


def warn_of_omissions(content: Content, prefix: str) -> None:
    """Warn about parts that a file omits."""
    if content.manifest["omitted"]:
        warn_user(f"{prefix} {'; '.join(dict.fromkeys(content.manifest['omitted']))}.", OmittedWarning)


def _module(kind: str) -> Any:
    return pkgutil.resolve_name(KINDS[kind])
