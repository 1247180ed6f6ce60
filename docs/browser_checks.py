"""Render the built website in a browser, at the width of a desktop and of a phone.

``python -m docs.browser_checks build/docs`` requires Chromium or Chrome. It prints elements that extend
beyond the right edge of their page, links to neighbours that are cut off, tables wider than their box, and
pictures that do not load, and fails if there are any.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from html import unescape
from pathlib import Path

__all__ = ["PROGRAMS", "WIDTHS", "describe", "harness", "look_at"]

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
WIDTHS = {"desktop": 1280, "phone": 390}
#: Loads the pages one after the other in a frame of each width, and measures their elements. Elements that
#: scroll horizontally, such as code, may be wider.
PAGE = """<!doctype html><meta charset="utf-8"><iframe id="frame" style="height: 900px; border: 0"></iframe>
<pre id="report"></pre>
<script>
const tasks = TASKS, report = [], frame = document.getElementById("frame");
const contained = (element, edge) => {
  for (let box = element.parentElement; box; box = box.parentElement) {
    if (overflow(box) !== "visible" && box.getBoundingClientRect().right <= edge + 1) return true;
  }
  return false;
};
const words = element => element.textContent.replace(/\\s+/g, " ").trim();
const overflow = element => frame.contentWindow.getComputedStyle(element).overflowX;
const scrolls = element => ["auto", "scroll"].includes(overflow(element));
const wide = table => {
  for (let box = table; box && box.tagName !== "ARTICLE"; box = box.parentElement) {
    if (scrolls(box)) return false;
    if (box !== table && table.getBoundingClientRect().width > box.clientWidth + 1) return true;
  }
  return false;
};
const next = () => {
  if (tasks.length === 0) {
    document.getElementById("report").textContent = JSON.stringify(report);
    return;
  }
  frame.style.width = tasks[0].width + "px";
  frame.src = tasks[0].url;
};
frame.onload = () => {
  const {page, screen} = tasks.shift(), content = frame.contentDocument;
  const edge = content.documentElement.clientWidth;
  const text = content.querySelector("main") ?? content.body;
  const outside = [...text.querySelectorAll("*")].filter(element => {
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.right > edge + 1 && !contained(element, edge);
  });
  const links = [...content.querySelectorAll(".prev-next-area, .prev-next-area *")];
  const cut = links.filter(one => overflow(one) === "hidden" && one.scrollWidth > one.clientWidth + 1);
  const tables = [...text.querySelectorAll("article table")].filter(wide);
  const broken = [...content.images].filter(image => image.complete && !image.naturalWidth);
  report.push({page, screen, loaded: text.textContent.trim() !== "",
    over: Math.max(0, content.documentElement.scrollWidth - edge),
    outside: outside.slice(0, 3).map(one => one.tagName + ": " + one.textContent.trim().slice(0, 40)),
    cut: cut.map(one => words(one).slice(0, 60)),
    tables: tables.slice(0, 3).map(one => one.className + ": " + words(one).slice(0, 40)),
    broken: broken.map(image => image.getAttribute("src"))});
  next();
};
next();
</script>
"""


def harness(root: Path, pages: Iterable[Path]) -> str:
    """Return a page that loads other pages in a frame.

    Parameters
    ----------
    root : Path
        Folder of pages.
    pages : iterable of Path
        Pages to load.

    Returns
    -------
    str
        HTML that ends with a report in JSON after all pages are loaded.
    """
    tasks = [
        {"page": page.relative_to(root).as_posix(), "url": page.as_uri(), "screen": screen, "width": width}
        for screen, width in WIDTHS.items()
        for page in pages
    ]
    return PAGE.replace("TASKS", json.dumps(tasks))


def _moved(page: Path) -> bool:
    """Return whether a page only leads to another one."""
    return 'http-equiv="refresh"' in page.read_text(encoding="utf-8")


def describe(report: Iterable[dict]) -> list[str]:
    """Return the problems in the report of the browser.

    Parameters
    ----------
    report : iterable of dict
        One record per page and width.

    Returns
    -------
    list of str
        Pages that did not load, are wider than the screen, cut text off, or lack a picture.
    """
    problems = []
    for record in report:
        where = f"{record['page']}, {record['screen']}"
        if not record["loaded"]:
            problems.append(f"{where}: did not load")
        if record["over"]:
            problems.append(f"{where}: {record['over']} pixels wider than the screen")
        problems += [f"{where}: beyond the edge: {element}" for element in record["outside"]]
        problems += [f"{where}: cut off: {text}" for text in record["cut"]]
        problems += [f"{where}: table wider than its box: {table}" for table in record["tables"]]
        problems += [f"{where}: picture {source} does not load" for source in record["broken"]]
    return problems


def look_at(root: Path, program: str) -> list[dict]:
    """Load all pages of a folder in a browser.

    Parameters
    ----------
    root : Path
        Folder of pages.
    program : str
        Chromium or Chrome.

    Returns
    -------
    list of dict
        One record per page and width.

    Raises
    ------
    RuntimeError
        If the browser returns no report.
    """
    root = root.resolve()
    pages = [
        path for path in sorted(root.rglob("*.html")) if "_static" not in path.parts and not _moved(path)
    ]
    with tempfile.TemporaryDirectory() as folder:
        start = Path(folder, "pages.html")
        start.write_text(harness(root, pages), encoding="utf-8")
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"]
        options += [f"--user-data-dir={folder}/profile", "--window-size=1400,1000", "--dump-dom"]
        done = subprocess.run(
            [program, *options, start.as_uri()], capture_output=True, text=True, timeout=900
        )
    found = re.search(r'<pre id="report">(.+?)</pre>', done.stdout, re.S)
    if found is None:
        raise RuntimeError(f"{program} returned no report:\n{done.stderr[-2000:]}")
    return json.loads(unescape(found[1]))


if __name__ == "__main__":
    browser = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if browser is None:
        sys.exit(f"Install a browser first: one of {', '.join(PROGRAMS)}.")
    seen = look_at(Path(sys.argv[1]), browser)
    wrong = describe(seen)
    print("\n".join(wrong) or f"{len(seen) // len(WIDTHS)} pages fit on {' and '.join(WIDTHS)}.")
    sys.exit(bool(wrong))
