"""Pages of the documentation, read as text: headings, links, pictures, tables of contents."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path

__all__ = ["DOCS", "GENERATED", "ROOT", "Page", "Table", "code_in", "each", "pages"]

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
#: What is made while the site is built.
GENERATED = ("gallery/", "reference/api/")

_FENCE = re.compile(r"^(?P<mark>`{3,}|:{3,})(?P<kind>[^\n]*)\n(?P<body>.*?)^(?P=mark)[ ]*$", re.M | re.S)
_CODE = re.compile(r"(`+)(?P<text>.+?)\1", re.S)
_LINK = re.compile(r"(?P<picture>!?)\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]\((?P<target>[^()\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.M)
_CARD = re.compile(r"^:link: *(\S+)\n:link-type: doc$", re.M)
_TABLE = re.compile(r"^\|.*\n\|[-:| ]+\|\n(?:\|.*\n?)*", re.M)
_TARGET = re.compile(r"^\(([\w-]+)\)=$", re.M)


class Page:
    """A Markdown file.

    Parameters
    ----------
    path : pathlib.Path
        File.
    """

    def __init__(self, path: Path):
        self.path = path

    @property
    def name(self) -> str:
        """Path from the root of the repository."""
        return self.path.relative_to(ROOT).as_posix()

    @cached_property
    def text(self) -> str:
        """The whole page."""
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def prose(self) -> str:
        """The page without blocks of code; what grids and notes hold is prose."""
        return _FENCE.sub(lambda m: m["body"] if m["mark"].startswith(":") else "", self.text)

    @cached_property
    def without_code(self) -> str:
        """The prose with a word for each piece of code within a line."""
        return _CODE.sub("code", self.prose)

    def code(self) -> list[str]:
        """Return the code within lines."""
        return code_in(self.prose)

    def tables(self) -> list[Table]:
        """Return the tables."""
        return [Table(match[0].splitlines()) for match in _TABLE.finditer(self.prose)]

    def links(self) -> list[tuple[str, str]]:
        """Return text and target of each link."""
        return [(m["text"], m["target"]) for m in _LINK.finditer(self.without_code) if not m["picture"]]

    def pictures(self) -> list[tuple[str, str]]:
        """Return alternative text and file of each picture."""
        return [(m["text"], m["target"]) for m in _LINK.finditer(self.without_code) if m["picture"]]

    def anchors(self) -> set[str]:
        """Return what links may name after ``#``, as GitHub and myst make it of headings."""
        seen: dict[str, int] = {}
        found = set(_TARGET.findall(self.prose))
        for title in _HEADING.findall(self.prose):
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "").lower()
            slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
            count = seen[slug] = seen.get(slug, -1) + 1
            found.add(f"{slug}-{count}" if count else slug)
        return found

    def contents(self) -> Iterator[str]:
        """Yield the pages of the tables of contents of this one, as paths without ending from docs/."""
        for match in _FENCE.finditer(self.text):
            if match["kind"].strip() != "{toctree}":
                continue
            for line in match["body"].splitlines():
                entry = line.strip()
                if not entry or entry.startswith(":"):
                    continue
                here = self.path.parent
                if "*" in entry:
                    paths = [path for path in here.glob(f"{entry}.md") if path != self.path]
                    yield from (path.relative_to(DOCS).with_suffix("").as_posix() for path in paths)
                else:
                    yield (here / entry).relative_to(DOCS).as_posix()

    def cards(self) -> list[str]:
        """Return the pages that grid cards lead to."""
        return _CARD.findall(self.text)


def pages() -> list[Page]:
    """Return the pages of the documentation, the README and what is beside it."""
    hidden = ("_", ".")
    found = [
        path
        for path in sorted(DOCS.rglob("*.md"))
        if not path.relative_to(DOCS).as_posix().startswith(GENERATED)
        and not any(part.startswith(hidden) for part in path.relative_to(DOCS).parts)
    ]
    return [Page(path) for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *found)]


class Table:
    """A table of a page.

    Parameters
    ----------
    lines : list of str
        Its lines.
    """

    def __init__(self, lines: list[str]):
        self.header, _, *self.rows = [_cells(line) for line in lines]

    def column(self, *titles: str) -> list[str]:
        """Return the cells of the first column with one of some titles, if there is one."""
        places = [place for place, title in enumerate(self.header) if title in titles]
        return [row[places[0]] for row in self.rows] if places else []


def _cells(line: str) -> list[str]:
    # A | within code would end a cell in Markdown too.
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def code_in(text: str) -> list[str]:
    """Return the code within a text."""
    return [" ".join(match["text"].split()) for match in _CODE.finditer(text)]


def each(some: list[Page]) -> Callable:
    """Return a decorator that makes one test of a check of a page, which names all pages that fail."""

    def decorate(check: Callable) -> Callable:
        def test():
            wrong = {}
            for page in some:
                try:
                    check(page)
                except AssertionError as error:
                    wrong[page.name] = str(error)
            assert some and not wrong, wrong

        test.__name__ = check.__name__
        return test

    return decorate
