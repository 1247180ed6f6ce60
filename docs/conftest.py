"""How pytest runs the pages: the settings of Sphinx are left out, how-tos and the guide are slow tests."""

from pathlib import Path

import pytest

collect_ignore = ["conf.py"]

#: Folders whose pages train for a minute in all.
SLOW = {Path(__file__).parent / name for name in ("guide", "howto")}


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.suffix == ".md" and item.path.parent in SLOW:
            item.add_marker(pytest.mark.slow)
