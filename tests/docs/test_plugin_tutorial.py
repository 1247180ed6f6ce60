"""The tutorial of the plugin distribution includes the files of the example distribution."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/tutorials/plugin-distribution.md"
FOLDER = ROOT / "tests/example_plugin"
INCLUDED = re.compile(r"^```\{literalinclude\} (\S+)$", re.MULTILINE)
#: Files that the tree of the page lists, and that the page does not include.
ONLY_LISTED = {"README.md", "src/ortlearn_example_plugin/__init__.py"}


def files():
    """Return the files of the distribution, except those made by building and testing."""
    kept = [
        path
        for path in FOLDER.rglob("*")
        if path.is_file() and not {"build", "__pycache__", ".pytest_cache"} & set(path.parts)
    ]
    names = {path.relative_to(FOLDER).as_posix() for path in kept}
    return {name for name in names if ".egg-info/" not in name}


def test_every_file_is_included():
    paths = [(PAGE.parent / name).resolve() for name in INCLUDED.findall(PAGE.read_text(encoding="utf-8"))]
    assert {path.relative_to(FOLDER).as_posix() for path in paths} == files() - ONLY_LISTED


def test_tree_lists_every_file():
    (tree,) = re.findall(r"^```text\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert {line.strip() for line in tree.splitlines() if not line.endswith("/")} == {
        Path(name).name for name in files()
    }
