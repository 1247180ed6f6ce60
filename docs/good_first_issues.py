"""The page of limits that a newcomer can lift: ``python -m docs.good_first_issues``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

__all__ = ["FirstIssue", "find_issues", "write_page"]

DOCS = Path(__file__).parent
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


def page(issues: list[FirstIssue]) -> str:
    """Return the page of some issues."""
    parts = [
        "# Good first issues\n\nEach of these limits can be lifted without knowing the whole package. The "
        "files say where to start, and [Code layout](explanation/layout.md) what their folders are for.\n"
    ]
    for issue in issues:
        anchor = re.sub(r"[^\w -]", "", issue.section.lower()).replace(" ", "-")
        files = ", ".join(f"`{name}`" for name in issue.files)
        parts.append(
            f"## {issue.title}\n\n[The limit](limits.md#{anchor}).\n\n"
            f"**First step.** {issue.step}\n\n**Files.** {files}\n"
        )
    parts.append("---\n\n`make docs` generates this page from the comments in `docs/limits.md`.\n")
    return "\n".join(parts)


def write_page(folder: Path = DOCS) -> Path:
    """Write the page into the folder of the documentation, and return its path."""
    path = folder / "good_first_issues.md"
    issues = find_issues((DOCS / "limits.md").read_text(encoding="utf-8"))
    path.write_text(page(issues), encoding="utf-8")
    return path


if __name__ == "__main__":
    print(write_page())
