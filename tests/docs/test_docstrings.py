"""Docstrings of public names, methods and properties pass numpydoc's validation."""

import enum
import importlib
import inspect
import pkgutil

import pytest
from numpydoc.validate import validate

import ortlearn
from tests.test_public_docstrings import needs_sections

PACKAGES = [
    "ortlearn",
    "ortlearn.conversion",
    "ortlearn.exceptions",
    *(f"ortlearn.{info.name}" for info in pkgutil.iter_modules(ortlearn.__path__) if info.ispkg),
]
#: Checks of numpydoc that are not applied.
IGNORED = {
    "EX01": "no example: checked in tests/test_public_docstrings.py; not required for methods",
    "SA01": "no section See Also",
    "ES01": "no extended summary: one line is enough for many functions",
}
#: Missing sections: allowed for overriding methods and internal names.
SECTIONS = {"PR01", "RT01", "YD01"}


def is_ours(obj):
    return str(getattr(obj, "__module__", "")).startswith("ortlearn")


def is_record(cls):
    """Return whether a class is a dataclass, tuple, enumeration or protocol."""
    return (
        hasattr(cls, "__dataclass_fields__")
        or issubclass(cls, tuple | enum.Enum)
        or getattr(cls, "_is_protocol", False)
    )


def own_members(cls):
    """Yield names and definitions of the public methods and properties defined in a class."""
    for name, member in vars(cls).items():
        function = getattr(member, "__func__", member)
        if not name.startswith("_") and (inspect.isfunction(function) or isinstance(member, property)):
            yield name, member


def overrides(cls, name):
    """Return whether a method overrides one of a base class."""
    return any(name in vars(base) for base in cls.__mro__[1:] if base is not object)


def errors_of(path, excused=()):
    """Return the errors that numpydoc finds in a docstring."""
    return [
        f"{code}: {text}"
        for code, text in validate(path)["errors"]
        if code not in IGNORED and code not in excused
    ]


def public():
    """Yield path and object of every public name, once each."""
    seen = set()
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in getattr(module, "__all__", ()):
            obj = getattr(module, name)
            if (inspect.isclass(obj) or inspect.isfunction(obj)) and is_ours(obj) and id(obj) not in seen:
                seen.add(id(obj))
                yield f"{package}.{name}", obj


NAMES = dict(public())
#: Public classes, and the paths of subclasses for their other bases.
CLASSES = {
    base: path
    for path, obj in NAMES.items()
    if inspect.isclass(obj)
    for base in reversed(obj.__mro__)
    if is_ours(base)
} | {obj: path for path, obj in NAMES.items() if inspect.isclass(obj)}


def of_name(path, obj):
    """Return the errors that numpydoc finds in the docstring of a public name."""
    excused = {"PR01", "PR02"} if inspect.isclass(obj) and is_record(obj) else set()
    excused |= {"RT01"} if "Yields\n" in (inspect.getdoc(obj) or "") else set()
    excused |= set() if needs_sections(path) else SECTIONS
    return errors_of(path, excused)


@pytest.mark.slow
def test_names():
    found = {path: of_name(path, obj) for path, obj in NAMES.items()}
    assert not {path: errors for path, errors in found.items() if errors}


@pytest.mark.slow
def test_members():
    found = {
        path: errors_of(path, () if needs_sections(path) and not overrides(cls, name) else SECTIONS)
        for cls in CLASSES
        for name, member in own_members(cls)
        if inspect.getattr_static(NAMES[CLASSES[cls]], name) is member and (path := f"{CLASSES[cls]}.{name}")
    }
    assert not {path: errors for path, errors in found.items() if errors}


def test_names_are_collected():
    assert {"ortlearn.OrtGradientOptimizer", "ortlearn.losses.HuberLoss"} <= set(NAMES)
    assert {"CheckedParameters", "BasePenalty"} <= {cls.__name__ for cls in CLASSES}


class Example:
    """An example."""

    def right(self, first):
        """Return the first.

        Parameters
        ----------
        first : int
            The first.

        Returns
        -------
        int
            The first.
        """
        return first

    def wrong(self, first, second):
        """return the first

        Parameters
        ----------
        first : int
        third : int
            Not there.
        """
        return first


def test_errors_are_found():
    codes = {text.partition(":")[0] for text in errors_of(f"{__name__}.Example.wrong")}
    assert {"SS02", "SS03", "PR01", "PR02", "PR07", "RT01"} <= codes
    assert not errors_of(f"{__name__}.Example.right")
