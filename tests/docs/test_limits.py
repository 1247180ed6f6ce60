"""Every limit is shown by an example, or points at a test or at what was measured."""

import re

import pytest

from tests.docs.pages import DOCS

EVIDENCE = re.compile(
    r"^>>> |`tests/[\w/]+\.py::\w+`|\]\((?:performance|coverage|decisions/[\w-]+)\.md\)", re.M
)


def sections(text):
    """Return the text under each heading, up to the next one, where there is any."""
    parts = re.split(r"^#{1,3} (.+)$", text, flags=re.MULTILINE)
    return {title: body for title, body in zip(parts[1::2], parts[2::2], strict=True) if body.strip()}


LIMITS = sections((DOCS / "limits.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("title", LIMITS)
def test_there_is_evidence(title):
    assert EVIDENCE.search(LIMITS[title])


def test_what_is_found():
    found = sections("# A\n\ntext\n\n## B\n\n### C\n\n- see `tests/a/test_b.py::test_c`\n")
    assert list(found) == ["A", "C"]
    assert not EVIDENCE.search(found["A"]) and EVIDENCE.search(found["C"])
