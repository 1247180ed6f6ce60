"""Configuration of pytest for the pages: the how-to guides and the user guide are slow tests."""

from pathlib import Path

import pytest

collect_ignore = ["conf.py"]

#: Folders whose pages take about a minute in total.
SLOW = {Path(__file__).parent / name for name in ("guide", "howto")}


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.suffix == ".md" and item.path.parent in SLOW:
            item.add_marker(pytest.mark.slow)
