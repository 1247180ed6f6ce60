"""Fixtures of training packages, and helpers to run Node."""

import shutil
import subprocess
from pathlib import Path

import pytest

from .packages import PACKAGES, write_package

RUNTIMES = Path(__file__).parents[2] / "runtimes"


@pytest.fixture(scope="session")
def packages(tmp_path_factory):
    """Return the folders of the packages; tests must not change them."""
    root = tmp_path_factory.mktemp("packages")
    for name in PACKAGES:
        write_package(name, root / name)
    return {name: root / name for name in PACKAGES}


def modules_of(name):
    """Return the folder of a runner with its npm packages; skip the test if they are not installed."""
    folder = RUNTIMES / name
    if shutil.which("node") is None:
        pytest.skip("Node is not installed")
    if not (folder / "node_modules").exists():
        pytest.skip("its npm packages are not installed: run make test-runtimes")
    return folder


def node(*command, folder):
    """Run Node and return what it prints."""
    found = subprocess.run(
        ["node", *map(str, command)], cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert found.returncode == 0, found.stderr
    return found.stdout
