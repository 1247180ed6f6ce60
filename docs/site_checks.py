"""Check the links and pictures of the built website: ``python -m docs.site_checks build/docs``.

Prints broken internal links, pictures without an alternative text and examples that print a warning, and
fails if there are any. External links are not checked.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["Page", "check_site", "read_page"]

#: Attributes that name a file, by tag.
LINKS = {"a": "href", "link": "href", "img": "src", "script": "src", "source": "src"}


@dataclass
class Page:
    """Links and pictures of a page.

    Attributes
    ----------
    anchors : set of str
        Targets of links.
    links : list of str
        Links as written in the page.
    pictures : list of (str, str)
        Source and alternative text of each picture.
    """

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    pictures: list[tuple[str, str]] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.page.anchors.update(filter(None, (values.get("id"), values.get("name"))))
        link = values.get(LINKS.get(tag, ""))
        if link:
            self.page.links.append(link)
        if tag == "img":
            self.page.pictures.append((values.get("src") or "", (values.get("alt") or "").strip()))


def read_page(text: str) -> Page:
    """Return the links and pictures of a page of HTML.

    Parameters
    ----------
    text : str
        The page.

    Returns
    -------
    Page
        Anchors, links and pictures.

    Examples
    --------
    >>> from docs.site_checks import read_page
    >>> read_page('<p id="here"><a href="other.html">There</a></p>')
    Page(anchors={'here'}, links=['other.html'], pictures=[])
    """
    reader = _Reader()
    reader.feed(text)
    return reader.page


def check_site(root: Path) -> list[str]:
    """Return the problems of the pages of a folder.

    Parameters
    ----------
    root : Path
        Folder of pages.

    Returns
    -------
    list of str
        Broken links, pictures without an alternative text, and outputs of examples with a warning.
    """
    paths = [path for path in sorted(root.resolve().rglob("*.html")) if "_static" not in path.parts]
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    pages = {path: read_page(text) for path, text in texts.items()}
    problems = [
        f"{path.relative_to(root.resolve()).as_posix()}: an example prints a warning"
        for path, text in texts.items()
        if "sphx-glr-script-out" in text and "/site-packages/" in text
    ]
    for path, page in pages.items():
        name = path.relative_to(root.resolve()).as_posix()
        problems += [
            f"{name}: picture {source} has no alternative text" for source, text in page.pictures if not text
        ]
        problems += [f"{name}: broken link {link}" for link in page.links if not _exists(path, link, pages)]
    return problems


def _exists(path: Path, link: str, pages: dict[Path, Page]) -> bool:
    """Return whether the file and the anchor of a link exist."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target = target / "index.html"
    if not parts.fragment or target not in pages:
        return target.is_file()
    return unquote(parts.fragment) in pages[target].anchors


if __name__ == "__main__":
    found = check_site(Path(sys.argv[1]))
    print("\n".join(found) or "All links and pictures are valid.")
    sys.exit(bool(found))
