"""Definitions for other packages use public names only."""

import importlib
import sys
from pathlib import Path

import pytest

import ortlearn.models.others
from ortlearn import plugins
from ortlearn.models import find_definition, public_path
from tests.test_layers import imports

FILES = sorted(Path(ortlearn.models.others.__file__).parent.glob("[a-z]*.py"))
#: Modules whose names are documented.
PUBLIC = {
    *("ortlearn.losses", "ortlearn.penalties", "ortlearn.models", "ortlearn.models.forms"),
    *("ortlearn.models.scores", "ortlearn.models.trees", "ortlearn.models.others.boosters"),
    *("ortlearn.models.others.xgboost_json", "ortlearn.models.capabilities", "ortlearn.boosting.packages"),
}


DECLARED = [
    info.name
    for info in plugins.list_plugins(plugins.MODELS)
    if info.distribution == "ortlearn" and not info.name.startswith("sklearn.")
]


@pytest.mark.parametrize("name", DECLARED)
def test_definitions_are_declared_for_existing_classes(name):
    module, _, kind = name.rpartition(".")
    pytest.importorskip(module.partition(".")[0])
    found = getattr(importlib.import_module(module), kind)
    assert public_path(found) == name
    assert type(find_definition(found.__new__(found))) is plugins.get(plugins.MODELS, name)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_only_public_names_are_imported(path):
    names = imports(path.read_text(encoding="utf-8"), f"ortlearn.models.others.{path.stem}")
    own = [name.rpartition(".") for name in names if name.startswith("ortlearn.") and name not in PUBLIC]
    assert own and {module for module, _, _ in own} <= PUBLIC
    for module, _, name in own:
        assert name in importlib.import_module(module).__all__


def test_definitions_do_not_import_their_package():
    known = {*sys.stdlib_module_names, "numpy", "ortlearn", "sklearn"}
    found = {
        name.partition(".")[0]
        for path in FILES
        for name in imports(path.read_text(encoding="utf-8"), f"ortlearn.models.others.{path.stem}")
    }
    assert found <= known
