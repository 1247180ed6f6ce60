"""Parts of messages, and the check for optional packages."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable

__all__ = ["check_installed", "one_line", "shown"]

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
