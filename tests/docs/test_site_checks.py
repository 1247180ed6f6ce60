"""The checks of built pages find broken links and missing descriptions, and nothing else."""

import pytest

from docs.site_checks import check_site, read_page

GOOD = {
    "index.html": """
        <link rel="stylesheet" href="_static/style.css?digest=1">
        <h1 id="top">Title</h1>
        <a href="#top">up</a> <a href="guide/page.html#%C3%A9t%C3%A9">summer</a> <a href="guide/">guide</a>
        <a href="https://example.org/nowhere">elsewhere</a> <a href="mailto:somebody">mail</a>
        <img src="picture.svg" alt="a curve that falls"/>""",
    "guide/index.html": '<a href="../index.html#top">home</a>',
    "guide/page.html": '<section id="été"></section><a href="../picture.svg#part">picture</a>',
}


@pytest.fixture
def site(tmp_path):
    def write(**changes):
        for name, text in {**GOOD, **changes}.items():
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        (tmp_path / "_static").mkdir(exist_ok=True)
        for name in ("picture.svg", "_static/style.css"):
            (tmp_path / name).touch()
        (tmp_path / "_static" / "theme.html").write_text('<a href="missing.html">not ours</a>')
        return tmp_path

    return write


def test_valid_site(site):
    assert check_site(site()) == []


@pytest.mark.parametrize(
    "text, problem",
    [
        ('<a href="gone.html">x</a>', "broken link gone.html"),
        ('<a href="../index.html#gone">x</a>', "broken link ../index.html#gone"),
        ('<a href="#gone">x</a>', "broken link #gone"),
        ('<img src="gone.svg" alt="curve">', "broken link gone.svg"),
        ('<script src="gone.js"></script>', "broken link gone.js"),
        ('<img src="../picture.svg" alt=" ">', "picture ../picture.svg has no alternative text"),
        ('<img src="../picture.svg">', "picture ../picture.svg has no alternative text"),
        (
            '<p class="sphx-glr-script-out">/lib/site-packages/a.py: Warning</p>',
            "an example prints a warning",
        ),
    ],
    ids=["file", "anchor", "anchor of the page", "picture", "script", "blank text", "no text", "warning"],
)
def test_problems_are_found(site, text, problem):
    root = site(**{"guide/other.html": text})
    assert check_site(root) == [f"guide/other.html: {problem}"]


def test_elements_of_a_page():
    page = read_page('<a name="old"></a><h2 id="new"></h2><a href="x.html">x</a><img src="p.png" alt="P">')
    assert page.anchors == {"old", "new"} and page.links == ["x.html", "p.png"]
    assert page.pictures == [("p.png", "P")]
