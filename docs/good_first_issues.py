"""Print the limits that a newcomer can lift: ``python -m docs.good_first_issues``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

__all__ = ["LIMITS", "FirstIssue", "find_issues", "listing"]

LIMITS = Path(__file__).parent / "limits.md"
#: A comment below a limit: title, files to start from, first step.
_MARK = re.compile(r"<!-- good first issue: ([^|]+)\s\| ([^|]+)\s\| ([^|]+?) -->")

_COMMENT = re.compile(r"\s*<!--.*?-->", re.S)


class FirstIssue(NamedTuple):
    """A limit that is a good first issue."""

    title: str
    section: str
    limit: str
    files: list[str]
    step: str


def find_issues(text: str) -> list[FirstIssue]:
    """Return the issues that comments in the page of limits describe, in its order."""
    found = []
    for mark in _MARK.finditer(text):
        title, files, step = (" ".join(part.split()) for part in mark.groups())
        before = _COMMENT.sub("", text[: mark.start()])
        section = re.findall(r"^#{2,3} (.+)$", before, re.MULTILINE)[-1]
        limit = re.split(r"\n\n|\n(?=- )", before.rstrip())[-1].removeprefix("- ")
        found.append(FirstIssue(title, section, " ".join(limit.split()), files.split(", "), step))
    return found


def listing(issues: list[FirstIssue]) -> str:
    """Return the text about some issues."""
    return "\n\n".join(
        f"{issue.title} (limits, {issue.section})\n"
        f"  First step: {issue.step}\n"
        f"  Files: {', '.join(issue.files)}"
        for issue in issues
    )


if __name__ == "__main__":
    print(listing(find_issues(LIMITS.read_text(encoding="utf-8"))))
