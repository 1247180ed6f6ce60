"""The text of an error or a warning, in one line."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from pathlib import Path

from ..exceptions import NoTrainableWeightError, OrtlearnError

__all__ = ["check_installed", "error_message", "one_line", "shown"]

#: Errors of arguments, files or numbers; other errors are shown with their type.
EXPECTED = (OrtlearnError, ValueError, OSError, ImportError, ArithmeticError, MemoryError)
#: Largest number of names in a message.
SHOWN = 12


def one_line(text: object) -> str:
    """Return a text with line breaks replaced by spaces."""
    return " ".join(str(text).split())


def shown(names: Iterable) -> str:
    """Return names as a list, shortened if there are many."""
    known = list(names)
    more = f" and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
    return f"{known[:SHOWN]}{more}"


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


def check_installed(package: str, extra: str, purpose: str) -> None:
    """Raise an ImportError that names the extra to install, if a package is missing.

    ``purpose`` begins the sentence, such as ``"csv files"``.
    """
    try:
        found = importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        found = False
    if not found:
        raise ImportError(f"{purpose} need {package}: pip install 'ortlearn[{extra}]'.")
