"""The text of an error, in one line."""

from __future__ import annotations

from pathlib import Path

from ..evaluation.messages import one_line
from ..exceptions import NoTrainableWeightError, OrtlearnError

__all__ = ["error_message"]

#: Errors of arguments, files or numbers; other errors are shown with their type.
EXPECTED = (OrtlearnError, ValueError, OSError, ImportError, ArithmeticError, MemoryError)


def error_message(error: BaseException) -> str:
    """Return the message of an error, in one line."""
    text = one_line(error) or type(error).__name__
    if isinstance(error, NoTrainableWeightError):
        return f"{one_line(str(error).partition(chr(10))[0])} `ortlearn explain` lists the weights."
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{Path(error.filename)}: {error.strerror}"
    if isinstance(error, OSError) and error.strerror:
        return one_line(error.strerror)
    if isinstance(error, KeyError):
        return f"{text} is missing (--debug shows the traceback)"
    if not isinstance(error, EXPECTED):
        return f"{type(error).__name__}: {text} (--debug shows the traceback)"
    return text
