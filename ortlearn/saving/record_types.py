"""Record types: classes whose objects are saved as values, which are checked when they are loaded."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from ..exceptions import SavedFileError

__all__ = ["Omitted", "RecordType", "check_type", "parameters_type"]


@dataclass(frozen=True)
class Omitted:
    """Placeholder for a value that is not stored, since loading it would run code."""

    name: str
    reason: str = ""


@dataclass(frozen=True)
class RecordType:
    """A class whose objects are records: a dataclass, a named tuple, or another class with ``names``."""

    cls: type
    hidden: Mapping[str, Any] | None = None  # names in annotations that are imported for type checkers only
    names: tuple[str, ...] | None = None  # attributes and parameters of the constructor; else the fields
    build: Callable[..., Any] | None = None  # instead of the constructor
    needed: tuple[str, ...] = ()  # values that must not be omitted
    prepared: Callable[[Any], Any] | None = None  # from an object to the one to store
    upgraded: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None  # values of an earlier version
    former: Mapping[str, str] = field(default_factory=dict)  # from earlier names to present ones

    @cached_property
    def _fields(self) -> dict[str, bool]:
        """Names of the values, and whether each is required."""
        if self.names is not None:
            return dict.fromkeys(self.names, True)
        if is_dataclass(self.cls):
            return {
                item.name: item.default is MISSING and item.default_factory is MISSING
                for item in fields(self.cls)
                if item.init
            }
        return dict.fromkeys(self.cls._fields, True)  # type: ignore[attr-defined]

    @cached_property
    def _hints(self) -> dict[str, Any]:
        if self.names is not None:
            return {}
        return get_type_hints(self.cls, vars(sys.modules[self.cls.__module__]), dict(self.hidden or {}))

    def take(self, value: Any) -> dict[str, Any]:
        """Return the values of an object."""
        value = value if self.prepared is None else self.prepared(value)
        return {name: getattr(value, name) for name in self._fields}

    def make(self, values: Mapping[str, Any]) -> Any:
        """Return an object with given values; values missing in files of earlier versions have defaults."""
        values = {self.former.get(key, key): value for key, value in values.items()}
        name, values = self.cls.__name__, values if self.upgraded is None else self.upgraded(values)
        unknown = sorted(values.keys() - self._fields.keys())
        missing = sorted(key for key, needed in self._fields.items() if needed and key not in values)
        if unknown or missing:
            raise SavedFileError(f"A record {name} has unknown values {unknown}, or lacks {missing}.")
        for key, value in values.items():
            if key in self._hints and not check_type(value, self._hints[key]):
                raise SavedFileError(f"A record {name} has {key} of type {type(value).__name__}.")
        for key in self.needed:
            parts = values[key] if isinstance(values[key], tuple) else (values[key],)
            for part in parts:
                if isinstance(part, Omitted):
                    raise SavedFileError(f"The model needs {part.name}, which is not read: {part.reason}.")
        if self.names is not None and any(isinstance(value, Omitted) for value in values.values()):
            return Omitted(name)
        kept = {key: None if isinstance(value, Omitted) else value for key, value in values.items()}
        return (self.build or self.cls)(**kept)


def parameters_type(cls: type) -> RecordType:
    """Return the record type of a class with scikit-learn's parameters."""
    return RecordType(cls, names=tuple(sorted(cls._get_param_names())))  # type: ignore[attr-defined]


def check_type(value: Any, hint: Any) -> bool:
    """Return whether a value has the type of an annotation."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any or origin is Callable or isinstance(value, Omitted):
        return True
    if hint is None or hint is type(None):
        return value is None
    if origin in (Union, types.UnionType):
        return any(check_type(value, part) for part in arguments)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if arguments and arguments[-1] is Ellipsis:
            return all(check_type(item, arguments[0]) for item in value)
        return len(value) == len(arguments) and all(map(check_type, value, arguments))
    if origin in (dict, Mapping):
        if not isinstance(value, Mapping):
            return False
        return all(check_type(k, arguments[0]) and check_type(v, arguments[1]) for k, v in value.items())
    if origin in (list, set, frozenset, Sequence):
        is_one = isinstance(value, origin) and not isinstance(value, str | bytes)
        return is_one and all(check_type(item, arguments[0]) for item in value)
    return _is_instance(value, origin or hint)


def _is_instance(value: Any, cls: Any) -> bool:
    if not isinstance(cls, type):
        return True
    if cls is float:
        return isinstance(value, float | int | np.floating | np.integer) and not isinstance(value, bool)
    if cls is int:
        return isinstance(value, int | np.integer)
    if cls is bool:
        return isinstance(value, bool | np.bool_)
    return isinstance(value, cls)
