"""The onnxruntime module, imported when it is first needed."""

from __future__ import annotations

from types import ModuleType

from ..exceptions import MissingRuntimeError

__all__ = ["is_before", "runtime", "runtime_failures"]


def runtime() -> ModuleType:
    """Return the module onnxruntime, imported when it is first needed."""
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingRuntimeError(
            "onnxruntime is not installed. Install one of the extras: pip install 'ortlearn[onnxruntime]' "
            "to train and predict on the CPU, or 'ortlearn[gpu]' on a GPU."
        ) from error
    return onnxruntime


def runtime_failures() -> tuple[type[Exception], ...]:
    """Return the error classes of onnxruntime for graphs that a provider cannot compile or run."""
    errors = runtime().capi.onnxruntime_pybind11_state
    names = ("Fail", "EPFail", "InvalidArgument", "InvalidGraph", "NotImplemented", "RuntimeException")
    return (RuntimeError, *(getattr(errors, name) for name in names))


def is_before(*version: int) -> bool:
    """Return whether the installed onnxruntime is older than a version, such as ``is_before(1, 20)``."""
    parts = runtime().__version__.split(".")
    return tuple(int(part) for part in parts[: len(version)]) < version
