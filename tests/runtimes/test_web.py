"""The runner for the browser, in a headless one, with no network."""

import json

import pytest

from .browser import served, text_of
from .conftest import RUNTIMES, modules_of
from .packages import PACKAGES


@pytest.fixture(scope="module")
def found(packages, tmp_path_factory):
    modules_of("web")
    root = next(iter(packages.values())).parent
    with served(core=RUNTIMES / "core", web=RUNTIMES / "web", packages=root) as address:
        page = f"{address}/web/test/record.html?packages={','.join(PACKAGES)}"
        results = json.loads(text_of(page, tmp_path_factory.mktemp("browser")))
    assert "error" not in results, results["error"]
    return results


@pytest.mark.parametrize("name", PACKAGES)
def test_it_trains_as_python_does(name, found):
    own = found[name]
    assert max(own["differences"].values()) < 1e-4
    assert own["epoch"] == 3
    assert own["after"]["loss"] < own["before"]["loss"]
