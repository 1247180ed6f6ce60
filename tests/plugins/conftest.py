"""Distributions created by tests, with metadata and modules in a folder of sys.path."""

import sys

import pytest

from ortlearn import plugins


class Site:
    """A folder into which distributions are installed, as by pip."""

    def __init__(self, folder):
        self.folder = folder
        self.modules = []

    def add(self, name, version="1.0", entry_points="", **modules):
        """Write the metadata of a distribution, and its modules."""
        info = self.folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(entry_points)
        for module, source in modules.items():
            (self.folder / f"{module}.py").write_text(source, encoding="utf-8")
            self.modules.append(module)
        plugins.refresh()


@pytest.fixture
def new_site(tmp_path, monkeypatch):
    """Create folders of ``sys.path``; the newest is searched first."""
    sites = []

    def make():
        folder = tmp_path / f"site{len(sites)}"
        folder.mkdir()
        monkeypatch.syspath_prepend(str(folder))
        sites.append(Site(folder))
        return sites[-1]

    yield make
    for site in sites:
        for module in site.modules:
            sys.modules.pop(module, None)
    monkeypatch.undo()
    plugins.refresh()


@pytest.fixture
def site(new_site):
    """Create a folder of ``sys.path``."""
    return new_site()
