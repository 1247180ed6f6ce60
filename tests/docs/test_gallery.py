"""Every example of the gallery has a title, a place in the reading order, and ends in a picture."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))


def reading_order():
    """Return the names that the settings of Sphinx list, which import what the tests need not have."""
    tree = ast.parse((ROOT / "docs" / "conf.py").read_text(encoding="utf-8"))
    (order,) = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    (names,) = (node.value for node in order.body if isinstance(node, ast.Assign))
    return list(ast.literal_eval(names))


def test_the_reading_order_has_every_example():
    assert sorted(reading_order()) == sorted(path.stem.removeprefix("plot_") for path in EXAMPLES)
    assert len(EXAMPLES) >= 12


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example(path):
    source = path.read_text(encoding="utf-8")
    title, rule, blank, *text = ast.get_docstring(ast.parse(source)).splitlines()
    assert rule == "=" * len(title) and not blank and "**" in "".join(text)
    *_, last = re.split(r"^# %%$", source, flags=re.MULTILINE)
    assert "plt.show()" in last and re.search(r"set_title|title=", last)
    assert "# sphinx_gallery_thumbnail_number = -1" in last
