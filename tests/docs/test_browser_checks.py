"""Tasks of the browser check, and the description of its report."""

import json
import re

from docs.browser_checks import WIDTHS, describe, harness

FINE = {"page": "index.html", "screen": "phone", "loaded": True, "over": 0}
FINE |= {"outside": [], "cut": [], "tables": [], "broken": []}


def test_every_page_is_checked_in_every_width(tmp_path):
    pages = [tmp_path / "index.html", tmp_path / "guide" / "a page.html"]
    text = harness(tmp_path, pages)
    tasks = json.loads(re.search(r"const tasks = (\[.*?\]), report", text)[1])
    assert len(tasks) == len(pages) * len(WIDTHS)
    assert {task["page"] for task in tasks} == {"index.html", "guide/a page.html"}
    assert {(task["screen"], task["width"]) for task in tasks} == set(WIDTHS.items())
    assert all(task["url"].startswith("file:///") and " " not in task["url"] for task in tasks)


def test_pages_without_problems():
    assert describe([FINE, {**FINE, "screen": "desktop"}]) == []


def test_problems_are_described():
    report = [
        FINE,
        {**FINE, "over": 12, "outside": ["TABLE: a b c"]},
        {**FINE, "cut": ["next A long title"], "tables": ["dataframe: a b"]},
        {**FINE, "page": "x.html", "broken": ["gone.png"]},
        {**FINE, "page": "y.html", "loaded": False},
    ]
    assert describe(report) == [
        "index.html, phone: 12 pixels wider than the screen",
        "index.html, phone: beyond the edge: TABLE: a b c",
        "index.html, phone: cut off: next A long title",
        "index.html, phone: table wider than its box: dataframe: a b",
        "x.html, phone: picture gone.png does not load",
        "y.html, phone: did not load",
    ]
