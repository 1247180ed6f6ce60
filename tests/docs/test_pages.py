"""Links of the documentation are valid, all pages are reachable, pictures have descriptions."""

import ast
import re

import pytest

from tests.docs.pages import DOCS, GENERATED, ROOT, Page, each, pages

PAGES = pages()
SITE = [page for page in PAGES if page.path.is_relative_to(DOCS)]
#: Texts beside the pages: the changelog, and the READMEs of the runners.
BESIDE = [Page(ROOT / "CHANGELOG.md"), *map(Page, sorted(ROOT.glob("runtimes/*/README.md")))]
#: Folders of pages that begin with what readers will learn.
TEACHING = ("guide", "howto", "tutorials", "explanation")
#: Largest numbers of words of a page's prose, of that of all pages, and of all pages with code and tables;
#: ``python -m tests.docs.pages`` prints them.
LONGEST, PROSE, ALL = 1_200, 32_700, 52_500
TEST = re.compile(r"^(tests/[\w/]+\.py)::(\w+)$")


every_page = each(PAGES)


def is_generated(target):
    return target.startswith(GENERATED) or "/gallery/" in target or "reference/api/" in target


def targets_in(path, site):
    """Return the anchors of a page that links may name; those of the site may not name HTML elements."""
    page = Page(path)
    return page.anchors() if site else page.anchors() | page.entries()


def broken(page):
    """Return the broken local links and pictures of a page."""
    found, site = [], page.path.is_relative_to(DOCS)
    for _, target in [*page.links(), *page.pictures()]:
        if re.match(r"^\w+:", target) or is_generated(target):
            continue
        name, _, anchor = target.partition("#")
        path = (page.path.parent / name).resolve() if name else page.path
        if not path.exists() or (anchor and anchor not in targets_in(path, site)):
            found.append(target)
    return found


@each([*PAGES, *BESIDE])
def test_links_are_valid(page):
    assert not broken(page)


@every_page
def test_targets_of_cards_exist(page):
    names = [name for name in page.cards() if not is_generated(name)]
    assert not [name for name in names if not (page.path.parent / f"{name}.md").is_file()]


@each(SITE)
def test_links_of_site_pages_stay_within_the_site(page):
    local = [target.partition("#")[0] for _, target in page.links() if not re.match(r"^\w+:", target)]
    paths = [(page.path.parent / name).resolve() for name in local if name.endswith(".md")]
    assert all(path.is_relative_to(DOCS) for path in paths)


@every_page
def test_pictures_have_descriptions(page):
    assert all(len(text.split()) >= 3 for text, _ in page.pictures())


@every_page
def test_one_title(page):
    titles = re.findall(r"^# ", page.prose, re.MULTILINE)
    assert len(titles) == 1 and page.text.startswith(("# ", "---"))


@each([page for page in SITE if page.path.parent.name in TEACHING])
def test_page_begins_with_its_learning_goal(page):
    assert re.search(r"^# .+\n\nAfter (this|these|each|a) ", page.text)


@each([page for page in PAGES if page.path.parent != DOCS / "reference"])
def test_pages_are_short(page):
    assert 10 < page.words() <= LONGEST


def test_all_pages_can_be_read():
    assert sum(page.words() for page in PAGES) <= PROSE
    assert sum(page.all_words() for page in PAGES) <= ALL


@pytest.mark.slow
@every_page
def test_tests_named_by_a_page_exist(page):
    for match in filter(None, map(TEST.match, page.code())):
        tree = ast.parse((ROOT / match[1]).read_text(encoding="utf-8"))
        functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert match[2] in functions, f"{match[1]} has no {match[2]}"


def test_every_page_is_in_a_table_of_contents():
    reached, waiting = set(), ["index"]
    while waiting:
        name = waiting.pop()
        if name in reached or is_generated(name):
            continue
        reached.add(name)
        path = DOCS / f"{name}.md"
        assert path.is_file(), f"docs/{name}.md is in a table of contents, but does not exist"
        waiting += Page(path).contents()
    own = {
        page.path.relative_to(DOCS).with_suffix("").as_posix() for page in PAGES if DOCS in page.path.parents
    }
    assert not own - reached


def test_pages_that_have_moved_lead_to_pages():
    tree = ast.parse((DOCS / "conf.py").read_text(encoding="utf-8"))
    (moved,) = [
        ast.literal_eval(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "MOVED"
    ]
    for old, new in moved.items():
        name, _, anchor = new.partition("#")
        page = Page(DOCS / name.replace(".html", ".md"))
        assert not (DOCS / f"{old}.md").exists() and page.path.is_file()
        assert not anchor or anchor in page.anchors()


BAD = """# One title
<!-- not a word -->

[here](#one-title) [there](#another) [page](missing.md) [web](https://example.org) ![](picture.png)
[a `word` in code](other.md#what-is-it) `[no](link.md)`

```python
# no title
[no](link.md)
```

## What *is* `it`?

| no | word |
|---|---|
| 1 | here |
"""


def test_broken_links_are_found(tmp_path):
    path = tmp_path / "page.md"
    path.write_text(BAD)
    (tmp_path / "other.md").write_text('# Other\n\n## What is it?\n\n<a id="entry"></a>Entry\n')
    page = Page(path)
    assert page.anchors() == {"one-title", "what-is-it"}
    assert broken(page) == ["#another", "missing.md", "picture.png"]
    assert targets_in(tmp_path / "other.md", site=False) - targets_in(tmp_path / "other.md", site=True) == {
        "entry"
    }
    assert page.pictures() == [("", "picture.png")]
    assert "`[no](link.md)`"[1:-1] in page.code()
    assert page.words() == 14 and page.all_words() == 21
