"""Print the limits that a newcomer can lift: ``python -m docs.good_first_issues``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

__all__ = ["LIMITS", "FirstIssue", "find_issues", "listing"]

LIMITS = Path(__file__).parent / "limits.md"
#: A row of the table with a comment: area, limit, what happens; title, files to start from, first step.
_ROW = re.compile(
    r"^\| (.+?) \| (.+?) \| (.+) <!-- good first issue: (.+?) \\\| (.+?) \\\| (.+?) --> \|$", re.MULTILINE
)
_COMMENT = re.compile(r"\s*<!--.*?-->|<a id=.+?</a>")


class FirstIssue(NamedTuple):
    """A limit that is a good first issue."""

    title: str
    area: str
    limit: str
    files: list[str]
    step: str


def find_issues(text: str) -> list[FirstIssue]:
    """Return the issues that comments in the page of limits describe, in its order."""
    found = []
    for area, *cells, title, files, step in _ROW.findall(text):
        limit, what = (_COMMENT.sub("", cell) for cell in cells)
        found.append(FirstIssue(title, area, f"{limit}: {what}", files.split(", "), step))
    return found


def listing(issues: list[FirstIssue]) -> str:
    """Return the text about some issues."""
    return "\n\n".join(
        f"{issue.title} (limits, {issue.area})\n  First step: {issue.step}\n  Files: {', '.join(issue.files)}"
        for issue in issues
    )


if __name__ == "__main__":
    print(listing(find_issues(LIMITS.read_text(encoding="utf-8"))))
