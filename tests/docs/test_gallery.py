"""Every gallery example has a title, is in the reading order and ends with a picture."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))


def reading_order():
    """Return the reading order of docs/conf.py, which is not imported: it requires Sphinx."""
    tree = ast.parse((ROOT / "docs" / "conf.py").read_text(encoding="utf-8"))
    (order,) = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    (names,) = (node.value for node in order.body if isinstance(node, ast.Assign))
    return list(ast.literal_eval(names))


def test_reading_order_is_complete():
    assert sorted(reading_order()) == sorted(path.stem.removeprefix("plot_") for path in EXAMPLES)
    assert len(EXAMPLES) >= 12


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_has_a_title_and_a_picture(path):
    source = path.read_text(encoding="utf-8")
    title, rule, blank, *text = ast.get_docstring(ast.parse(source)).splitlines()
    assert rule == "=" * len(title) and not blank and "**" in "".join(text)
    *_, last = re.split(r"^# %%$", source, flags=re.MULTILINE)
    assert "plt.show()" in last and re.search(r"set_title|title=", last)
    assert "# sphinx_gallery_thumbnail_number = -1" in last
