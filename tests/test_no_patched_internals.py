"""Tests replace no attribute of the package, of its benchmarks or of its tests.

A limit is an argument with the constant as default, a double is handed in, and :mod:`tests.calls` observes
calls. What belongs to other packages may be replaced where the real condition cannot be made, such as a full
disk or a slow clock.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
OWN = {"ortlearn", "benchmarks", "tests", "docs"}
METHODS = {"setattr", "delattr"}
#: Names of functions of unittest.mock, whose first argument is the replaced object.
PATCHES = {"patch", "object", "multiple", "dict"}


def imported(tree):
    """Return the package of each name that a module imports."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {(alias.asname or alias.name).partition(".")[0]: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            package = "tests" if node.level else node.module
            found |= {alias.asname or alias.name: package for alias in node.names}
    for node in ast.walk(tree):  # name = pytest.importorskip("package")
        if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("pytest.importorskip("):
            found[ast.unparse(node.targets[0])] = str(getattr(node.value.args[0], "value", "unknown"))
    return {name: package.partition(".")[0] for name, package in found.items()}


def is_patch(function):
    """Return whether a function replaces its first argument: of monkeypatch, or of unittest.mock."""
    if isinstance(function, ast.Attribute) and function.attr in METHODS:
        return True
    return "patch" in ast.unparse(function).split(".") and ast.unparse(function).split(".")[-1] in PATCHES


def package_of(target, packages):
    """Return the package of a replaced object: a text, or an object that begins with an imported name."""
    if isinstance(target, ast.Constant):
        return str(target.value).partition(".")[0]
    while isinstance(target, ast.Attribute | ast.Call):
        target = target.value if isinstance(target, ast.Attribute) else target.func
    return packages.get(getattr(target, "id", ""), "unknown")


def patched(source):
    """Return lines and packages of what a module replaces."""
    if not any(word in source for word in (*METHODS, "patch")):
        return {}
    tree = ast.parse(source)
    packages = imported(tree)
    calls = [
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and is_patch(node.func) and node.args
    ]
    return {node.lineno: package_of(node.args[0], packages) for node in calls}


@pytest.mark.slow
def test_tests_replace_no_internals():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {package}"
        for path in sorted(ROOT.rglob("*.py"))
        for line, package in patched(path.read_text(encoding="utf-8")).items()
        if package in OWN or package == "unknown"
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text, package",
    [
        ("from ortlearn.training import loop\nmonkeypatch.setattr(loop, 'PAUSE', 0)", "ortlearn"),
        ("import ortlearn.training as t\npatch.setattr(t.loop, 'PAUSE', 0)", "ortlearn"),
        ("monkeypatch.setattr('ortlearn.training.loop.PAUSE', 0)", "ortlearn"),
        ("from ortlearn.graphs import drawing\nm.setattr(drawing.shutil, 'which', str)", "ortlearn"),
        ("from unittest import mock\nmock.patch('ortlearn.training.loop.PAUSE', 0)", "ortlearn"),
        ("from unittest.mock import patch\npatch.object(loop, 'PAUSE', 0)", "unknown"),
        ("import os\nmonkeypatch.setattr(os, 'fsync', None)", "os"),
    ],
)
def test_patches_are_found(text, package):
    assert list(patched(text).values()) == [package]
