"""Convert numpydoc docstrings to Markdown."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass

__all__ = ["Docstring", "Parameter", "parse_docstring"]

SECTION = re.compile(r"^[A-Z][A-Za-z ]+\n-{3,}$", re.MULTILINE)
ROLE = re.compile(r":[a-z:]+:`~?(?:[\w.]*\.)?(\w+)`")


@dataclass(frozen=True)
class Parameter:
    """A parameter of a constructor, and its default as Python writes it."""

    name: str
    default: str = ""


@dataclass(frozen=True)
class Docstring:
    """Summary with the formula and further text of a docstring, and the parameters."""

    text: str
    parameters: tuple[Parameter, ...] = ()


def parse_docstring(kind: type) -> Docstring:
    """Read the docstring of a class, and the defaults of its constructor.

    Parameters
    ----------
    kind : type
        Class of a plugin.

    Returns
    -------
    Docstring
        Its parts; those that are not there are empty.
    """
    parameters = tuple(
        Parameter(name, "" if given.default is given.empty else repr(given.default))
        for name, given in inspect.signature(kind).parameters.items()
        if given.kind in (given.POSITIONAL_OR_KEYWORD, given.KEYWORD_ONLY)
    )
    return Docstring(_text(kind.__doc__), parameters)


def _text(doc: str | None) -> str:
    """Return the text before the first section."""
    return SECTION.split(ROLE.sub(r"``\1``", inspect.cleandoc(doc or "")))[0].strip()
