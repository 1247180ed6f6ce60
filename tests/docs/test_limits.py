"""Every limit has an example, or links to a test, a measurement or a decision."""

import re
from pathlib import Path

import pytest

from ortlearn import exceptions
from tests.docs.pages import DOCS, ROOT, Page

MEASURED = r"performance|coverage|decisions/[\w-]+|howto/adapt_to_new_data"
EVIDENCE = re.compile(rf"`tests/[\w/]+\.py(?:::\w+)?`|\]\((?:{MEASURED})\.md(?:#[\w-]+)?\)")


def sections(text):
    """Return the texts by heading, without empty ones."""
    parts = re.split(r"^#{2,3} (.+)$", text, flags=re.MULTILINE)
    return {title: body for title, body in zip(parts[1::2], parts[2::2], strict=True) if body.strip()}


LIMITS = sections((DOCS / "limits.md").read_text(encoding="utf-8"))
#: Examples by the same headings, in a file that is run as a test.
EXAMPLES = sections(Path(__file__).with_name("limits.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("title", LIMITS)
def test_limit_has_evidence(title):
    assert title in EXAMPLES or EVIDENCE.search(LIMITS[title])


def test_every_row_of_a_table_has_evidence():
    rows = [
        (title, row)
        for title, text in LIMITS.items()
        for row in re.findall(r"^\| (?!limit|estimator).+\|$", text, re.MULTILINE)
    ]
    by_example = [title for title, row in rows if row.endswith("<!-- example --> |")]
    assert len(by_example) > 15 and all(">>> " in EXAMPLES[title] for title in by_example)
    others = [row for _, row in rows if "<!-- example -->" not in row]
    assert len(others) > 40 and not [row for row in others if not EVIDENCE.search(row)]


def test_errors_and_the_page_have_the_same_limits():
    sources = [path.read_text(encoding="utf-8") for path in Path(exceptions.__file__).parent.rglob("*.py")]
    written = {
        name
        for text in sources
        for name in re.findall(r"(?:limit_address\(|limit(?:: str)? ?= ?)['\"]([\w-]+)", text)
    }
    page = Page(ROOT / exceptions.LIMITS)
    assert len(written) > 25 and written <= page.anchors()
    assert set(re.findall(r'<a id="([\w-]+)">', page.text)) <= written


def test_sections_and_evidence_are_found():
    found = sections("# T\n\n## A\n\ntext\n\n## B\n\n### C\n\n- see `tests/a/test_b.py::test_c`\n")
    assert list(found) == ["A", "C"]
    assert not EVIDENCE.search(found["A"]) and EVIDENCE.search(found["C"])
