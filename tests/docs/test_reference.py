"""The reference has a page for every public name."""

import importlib
import inspect
import re
from typing import get_origin

import pytest

from tests.docs.pages import DOCS, each, pages
from tests.docs.test_docstrings import PACKAGES

AUTOSUMMARY = re.compile(r"^\.\. autosummary::\n(?:   :.*\n)*\n((?:   \S+\n)+)", re.MULTILINE)


def listed():
    """Return the modules listed in the reference."""
    text = (DOCS / "reference/index.md").read_text(encoding="utf-8")
    return [line.strip() for block in AUTOSUMMARY.findall(text) for line in block.splitlines()]


def names(module):
    return getattr(importlib.import_module(module), "__all__", [])


def has_page(obj):
    alias = get_origin(obj) is not None  # inspect.isclass is true for it in Python 3.10
    return inspect.isfunction(obj) or (inspect.isclass(obj) and not alias)


def test_every_class_and_function_is_on_a_page():
    pages = {
        id(getattr(importlib.import_module(module), name)) for module in listed() for name in names(module)
    }
    for package in PACKAGES:
        found = {name: getattr(importlib.import_module(package), name) for name in names(package)}
        assert not [name for name, obj in found.items() if has_page(obj) and id(obj) not in pages]


def imported(text):
    """Return the modules of ortlearn that the examples of a page import from."""
    return set(re.findall(r"^(?:>>> |\.\.\. )? *from (ortlearn(?:\.[\w.]+)?) import ", text, re.MULTILINE))


@each(pages())
def test_imported_modules_are_listed(page):
    assert imported(page.text) <= set(listed())


@pytest.mark.parametrize("package", PACKAGES)
def test_constants_are_described_by_their_package(package):
    module = importlib.import_module(package)
    constants = [name for name in names(package) if not has_page(getattr(module, name))]
    assert not [name for name in constants if f"``{name}``" not in module.__doc__]


@pytest.mark.parametrize("module", listed())
def test_names_are_found_by_autosummary(module):
    """Autosummary uses ``dir`` and, with the settings of conf.py, ``__all__``."""
    imported = importlib.import_module(module)
    assert names(module)
    assert set(names(module)) <= set(dir(imported))
    assert all(obj.__doc__ for name in names(module) if has_page(obj := getattr(imported, name)))


def test_autosummary_uses_all():
    settings = (DOCS / "conf.py").read_text(encoding="utf-8")
    for line in ("autosummary_generate = True", "autosummary_ignore_module_all = False"):
        assert line in settings
    assert "autosummary_imported_members = True" in settings
