"""The tutorial of the plugin distribution shows all files of the example distribution."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/tutorials/plugin-distribution.md"
FOLDER = ROOT / "tests/example_plugin"
SHOWN = re.compile(r"^`([\w/.]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def shown():
    """Return the files on the page by name."""
    return dict(SHOWN.findall(PAGE.read_text(encoding="utf-8")))


def files():
    """Return the files of the distribution, except those made by building and testing."""
    kept = [
        path
        for path in FOLDER.rglob("*")
        if path.is_file() and not {"build", "__pycache__", ".pytest_cache"} & set(path.parts)
    ]
    names = {path.relative_to(FOLDER).as_posix(): path for path in kept}
    return {name: path for name, path in names.items() if ".egg-info/" not in name}


def test_every_file_is_shown():
    assert set(shown()) == set(files())


def test_files_are_shown_unchanged():
    for name, text in shown().items():
        assert text == (FOLDER / name).read_text(encoding="utf-8"), f"{name} differs in {PAGE.name}"


def test_tree_lists_every_file():
    (tree,) = re.findall(r"^```text\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert {line.strip() for line in tree.splitlines() if not line.endswith("/")} == {
        Path(name).name for name in files()
    }
