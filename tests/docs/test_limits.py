"""Every limit has an example, or links to a test, a measurement or a decision."""

import re
from pathlib import Path

from ortlearn import exceptions
from tests.docs.pages import DOCS, ROOT, Page

MEASURED = r"performance|coverage|decisions/[\w-]+|howto/adapt_to_new_data"
EVIDENCE = re.compile(rf"`tests/[\w/]+\.py(?:::\w+)?`|\]\((?:{MEASURED})\.md(?:#[\w-]+)?\)")


LIMITS = (DOCS / "limits.md").read_text(encoding="utf-8")
#: Cells of the table: area, limit, what happens.
ROWS = re.findall(r"^\| (?!area)(.+?) \| (.+?) \| (.+) \|$", LIMITS, re.MULTILINE)
#: Examples by area, in a file that is run as a test.
EXAMPLES = re.split(
    r"^## (.+)$", Path(__file__).with_name("limits.md").read_text(encoding="utf-8"), flags=re.MULTILINE
)


def test_every_limit_has_evidence():
    examples = dict(zip(EXAMPLES[1::2], EXAMPLES[2::2], strict=True))
    by_example = [area for area, _, what in ROWS if what.endswith("<!-- example -->")]
    assert len(by_example) > 15 and all(">>> " in examples[area] for area in by_example)
    others = [what for _, _, what in ROWS if "<!-- example -->" not in what]
    assert len(others) > 50
    assert not [what for what in others if not EVIDENCE.search(what) and "good first issue" not in what]


def test_errors_and_the_page_have_the_same_limits():
    sources = [path.read_text(encoding="utf-8") for path in Path(exceptions.__file__).parent.rglob("*.py")]
    written = {
        name
        for text in sources
        for name in re.findall(r"(?:limit_address\(|limit(?:: str)? ?= ?)['\"]([\w-]+)", text)
    }
    page = Page(ROOT / exceptions.LIMITS)
    assert len(written) > 25 and written <= page.entries()
    pages = [ROOT / "CHANGELOG.md", *DOCS.rglob("*.md")]
    linked = {name for path in pages for name in re.findall(r"limits\.md#([\w-]+)", path.read_text("utf-8"))}
    assert set(re.findall(r'<a id="([\w-]+)">', page.text)) <= written | linked
