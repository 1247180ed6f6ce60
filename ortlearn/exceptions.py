"""Errors and warnings of ortlearn.

Every message says what is wrong and what to do next. Classes that stand for bad
arguments are also ``ValueError``, as scikit-learn's are.
"""

from __future__ import annotations

import inspect
import warnings
from typing import Any
from weakref import WeakKeyDictionary

__all__ = [
    "OrtlearnError",
    "PackageError",
    "CalibrationWarning",
    "ClusterError",
    "ConversionError",
    "ConvergenceError",
    "DeviceError",
    "ExecutionError",
    "FallbackWarning",
    "FewUpdatesWarning",
    "FidelityWarning",
    "GradientError",
    "GradientWarning",
    "MissingRuntimeError",
    "NoTrainableWeightError",
    "ObjectiveWarning",
    "OmittedWarning",
    "PluginError",
    "PrecisionWarning",
    "ProviderWarning",
    "ResumedWarning",
    "SavedFileError",
    "SourceError",
    "StartKeptWarning",
    "UnfittedStartWarning",
    "UnknownPluginError",
    "WriteBackError",
    "limit_address",
    "warn_user",
]

#: Page of the limits in the repository; on the website it is limits.html.
LIMITS = "docs/limits.md"
#: Packages whose lines are not those of the user.
OWN_CALLERS = ("ortlearn", "sklearn", "joblib")
#: Modules that fit many copies of an estimator.
REPEATING = ("sklearn.model_selection", "sklearn.feature_selection")
#: Categories of warnings issued in searches, by the outermost object, or the estimator that a function takes.
_ISSUED: WeakKeyDictionary[Any, set[type[Warning]]] = WeakKeyDictionary()


class OrtlearnError(Exception):
    """Base class of every error raised on purpose by ortlearn."""


class MissingRuntimeError(OrtlearnError, ImportError):
    """The onnxruntime package is not installed, or the installed build lacks a feature."""


class DeviceError(OrtlearnError, ValueError):
    """Unknown device, or a device that the installed onnxruntime cannot use."""


class ConversionError(OrtlearnError, ValueError):
    """A model that cannot be turned into an ONNX graph to train.

    Attributes
    ----------
    part : str
        Name of the class of the estimator that cannot be converted, the innermost one; empty if unknown.
    """

    part = ""


class ExecutionError(OrtlearnError, ValueError):
    """A graph that onnxruntime, onnx or protobuf cannot read or run; the message names the node."""


class NoTrainableWeightError(ConversionError):
    """A graph without any weight to train.

    Parameters
    ----------
    message : str
        What was looked for, and what became of each weight.
    facts : sequence, default=()
        The same as rows of :func:`ortlearn.conversion.explain`.

    Attributes
    ----------
    facts : tuple
        These rows.
    """

    def __init__(self, message: str, facts: Any = ()) -> None:
        super().__init__(message)
        self.facts = tuple(facts)

    def __reduce__(self) -> Any:
        return type(self), (self.args[0], self.facts)


class SavedFileError(OrtlearnError, ValueError):
    """A file that is not a saved estimator, is damaged or altered, or contains unsafe objects."""


class PackageError(OrtlearnError, ValueError):
    """A training that cannot be exported as a training package."""


class WriteBackError(OrtlearnError, ValueError):
    """Trained weights that the attributes of the scikit-learn model cannot hold."""


class GradientError(OrtlearnError, ValueError):
    """A graph that cannot be differentiated; the message names operator and node."""


class GradientWarning(UserWarning):
    """A gradient differs from the finite differences of its function by a factor."""


class FallbackWarning(UserWarning):
    """A step of a pipeline has no ONNX form: it stays in scikit-learn, and the ONNX model begins after it."""


class FewUpdatesWarning(UserWarning):
    """Each shard of a distributed training makes few of the updates that one machine would make."""


class ProviderWarning(UserWarning):
    """The CPU runs a graph that the execution provider of ``device`` cannot run, or computes wrongly."""


class FidelityWarning(UserWarning):
    """The ONNX model and the scikit-learn estimator that it was converted from compute different values."""


class CalibrationWarning(UserWarning):
    """Calibration samples do not allow a promise about coverage."""


class ObjectiveWarning(UserWarning):
    """Training ignores a part of the objective of the model."""


class OmittedWarning(UserWarning):
    """A part of an estimator cannot be saved without pickle, and is omitted."""


class ResumedWarning(UserWarning):
    """A training is resumed with other versions or from an incomplete file, or starts again."""


class UnfittedStartWarning(UserWarning):
    """A warm start from a model that is not fitted."""


class StartKeptWarning(UserWarning):
    """Training did not improve a model, and its former weights are kept."""


class PrecisionWarning(FidelityWarning):
    """Numbers need more digits than float32 has, such as dates in seconds."""


class PluginError(OrtlearnError, ValueError):
    """A plugin that cannot be used: it is broken, or two plugins have one name."""


class SourceError(OrtlearnError, OSError, ValueError):
    """Samples of a source that cannot be read or used; the message names file and row group, or the batch."""


class ClusterError(OrtlearnError, RuntimeError):
    """A cluster that is not there or was lost, or a task on it that failed; the message names the shard."""


class UnknownPluginError(PluginError):
    """A name of a plugin that no installed package declares; the message lists the known names."""


class ConvergenceError(OrtlearnError, ArithmeticError):
    """The training loss became non-finite.

    Parameters
    ----------
    message : str
        What happened and what to do.
    losses : sequence of float, default=()
        Last losses seen, oldest first.
    rate : float or None, default=None
        Learning rate at that moment.

    Attributes
    ----------
    losses : tuple of float
        Last losses seen, oldest first.
    rate : float or None
        Learning rate at that moment.

    Examples
    --------
    >>> from ortlearn.exceptions import ConvergenceError
    >>> ConvergenceError("diverged", losses=[1.0, float("inf")], rate=10.0).rate
    10.0
    """

    def __init__(self, message: str, losses: Any = (), rate: float | None = None) -> None:
        super().__init__(message)
        self.losses = tuple(float(loss) for loss in losses)
        self.rate = rate

    def __reduce__(self) -> Any:
        return type(self), (self.args[0], self.losses, self.rate)


def limit_address(anchor: str) -> str:
    """Return the end of an error about a limit: the address of its entry on the page, if any."""
    return f" See {LIMITS}#{anchor}" if anchor else ""


def warn_user(message: str, category: type[Warning], once: bool = False) -> None:
    """Warn at the line that called ortlearn, be it through a pipeline or a search of scikit-learn.

    With ``once``, a search or a cross-validation, which trains many copies, warns of a category only once.
    """
    level, frame, owner = 1, inspect.currentframe(), None
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in OWN_CALLERS:
        if once and frame.f_globals["__name__"].startswith(REPEATING):
            owner = frame.f_locals.get("self", frame.f_locals.get("estimator"))
        level, frame = level + 1, frame.f_back
    known = _ISSUED.setdefault(owner, set()) if hasattr(owner, "get_params") else set()
    if category not in known:
        warnings.warn(message, category, stacklevel=level)  # an error if the user asks for it
        known.add(category)
