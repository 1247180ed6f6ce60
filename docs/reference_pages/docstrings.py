"""Convert numpydoc docstrings to Markdown."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass

__all__ = ["Docstring", "Parameter", "parse_docstring"]

SECTION = re.compile(r"^(?P<title>[A-Z][A-Za-z ]+)\n-{3,}$", re.MULTILINE)
ROLE = re.compile(r":[a-z:]+:`~?(?:[\w.]*\.)?(\w+)`")


@dataclass(frozen=True)
class Parameter:
    """A parameter of a constructor: its default as Python writes it, and what the docstring says of it."""

    name: str
    default: str = ""
    text: str = ""


@dataclass(frozen=True)
class Docstring:
    """Summary with the formula, further text, parameters and references of a docstring."""

    text: str
    parameters: tuple[Parameter, ...] = ()
    references: str = ""


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
    sections = _sections(kind.__doc__)
    described = _definitions(sections.get("Parameters", ""))
    parameters = tuple(
        Parameter(name, "" if given.default is given.empty else repr(given.default), described.get(name, ""))
        for name, given in inspect.signature(kind).parameters.items()
        if given.kind in (given.POSITIONAL_OR_KEYWORD, given.KEYWORD_ONLY)
    )
    return Docstring(sections[""], parameters, sections.get("References", ""))


def _sections(doc: str | None) -> dict[str, str]:
    """Return the sections by their titles, the text before them under the empty title."""
    text = ROLE.sub(r"``\1``", inspect.cleandoc(doc or ""))
    marks = list(SECTION.finditer(text))
    starts = [0, *(mark.end() for mark in marks)]
    ends = [*(mark.start() for mark in marks), len(text)]
    titles = ["", *(mark["title"] for mark in marks)]
    return {t: text[start:end].strip() for t, start, end in zip(titles, starts, ends, strict=True)}


def _definitions(section: str) -> dict[str, str]:
    """Return what a section says of each name: lines that are not indented name what follows."""
    found: dict[str, str] = {}
    names: list[str] = []
    for line in section.splitlines():
        if line and not line[0].isspace():
            names = [name.strip() for name in line.partition(" : ")[0].split(",")]
            continue
        for name in names:
            found[name] = f"{found.get(name, '')} {line.strip()}".strip()
    return found
