"""Every limit has an example, or links to a test or a measurement."""

import re

import pytest

from tests.docs.pages import DOCS

EVIDENCE = re.compile(
    r"^>>> |`tests/[\w/]+\.py::\w+`|\]\((?:performance|coverage|decisions/[\w-]+)\.md(?:#[\w-]+)?\)", re.M
)


def sections(text):
    """Return the texts by heading, without empty ones."""
    parts = re.split(r"^#{1,3} (.+)$", text, flags=re.MULTILINE)
    return {title: body for title, body in zip(parts[1::2], parts[2::2], strict=True) if body.strip()}


LIMITS = sections((DOCS / "limits.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("title", LIMITS)
def test_limit_has_evidence(title):
    assert EVIDENCE.search(LIMITS[title])


def test_sections_and_evidence_are_found():
    found = sections("# A\n\ntext\n\n## B\n\n### C\n\n- see `tests/a/test_b.py::test_c`\n")
    assert list(found) == ["A", "C"]
    assert not EVIDENCE.search(found["A"]) and EVIDENCE.search(found["C"])
