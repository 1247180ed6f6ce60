"""Encode values as JSON, arrays, graphs and scikit-learn models.

A value that JSON does not support is stored as an object with its kind under the key ``"$"``. A plugin is
stored as group, name and parameters, a record as the name of its type and its values; other objects are
omitted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from onnx import ModelProto
from scipy import sparse

from .. import plugins
from ..graphs.external_tensors import reject_external
from . import sklearn_objects
from .arrays import pack_arrays
from .record_types import RecordType

__all__ = ["ARRAYS", "GROUPS", "Encoder"]

#: File with all arrays.
ARRAYS = "arrays.npz"
#: Groups of plugins that are stored.
GROUPS = (plugins.LOSSES, plugins.PENALTIES, plugins.LEARNING_RATES, plugins.SCHEDULES)


def _plugin_name(cls: type) -> tuple[str, str] | None:
    """Return group and name of the plugin of a class, or None for other classes."""
    for group in GROUPS:
        for info in plugins.list_plugins(group):
            named = info.value.rpartition(":")[2] == cls.__qualname__ and not info.broken
            if named and plugins.get(group, info.name) is cls:
                return group, info.name
    return None


@dataclass
class Encoder:
    """Encode values, and collect the files that contain them."""

    types: Mapping[str, RecordType]
    files: dict[str, bytes] = field(default_factory=dict)
    omitted: list[str] = field(default_factory=list)
    written: dict[int, tuple[Any, bytes | None, str]] = field(default_factory=dict)
    _arrays: dict[str, np.ndarray] = field(default_factory=dict)
    _known: dict[int, tuple[Any, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._names = {kind.cls: name for name, kind in self.types.items()}
        self._plugin_name = cache(_plugin_name)

    def all_files(self) -> dict[str, bytes]:
        """Return graphs, scikit-learn models and arrays."""
        return {**self.files, ARRAYS: pack_arrays(self._arrays)}

    def encode(self, value: Any) -> Any:
        """Return a value as JSON; large values are added to the files, repeated objects once."""
        if value is None or type(value) in (bool, str, int):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"$": "float", "value": repr(value)}
        if type(value) is list:
            return [self.encode(item) for item in value]
        if id(value) not in self._known:
            self._known[id(value)] = value, self._encode_object(value)  # the reference keeps the id valid
        return self._known[id(value)][1]

    def _encode_object(self, value: Any) -> Any:
        """Encode a record, a container, an array, a graph or bytes."""
        name = self._names.get(type(value))
        if name is not None:
            return {"$": "record", "name": name, "fields": self._pairs(self.types[name].take(value))}
        for kinds, kind, listed in COLLECTIONS:
            if type(value) in kinds:
                return {"$": kind, "items": [self.encode(item) for item in listed(value)]}
        if isinstance(value, np.ndarray) and value.dtype.kind == "O":
            items = [self.encode(item) for item in value.ravel().tolist()]
            return {"$": "objects", "shape": list(value.shape), "items": items}
        if isinstance(value, np.ndarray | np.generic):
            return {"$": "array", "scalar": isinstance(value, np.generic), "key": self._array(value)}
        if isinstance(value, np.dtype):
            return {"$": "dtype", "value": value.str}
        if isinstance(value, np.random.RandomState):
            return {"$": "random_state", "state": self.encode(value.get_state(legacy=True))}
        if sparse.issparse(value):
            matrix = value.tocsr()
            parts = [matrix.data, matrix.indices, matrix.indptr]
            return {"$": "csr", "shape": list(value.shape), "parts": [self.encode(part) for part in parts]}
        if isinstance(value, ModelProto):
            reject_external(value)
            return {"$": "model", "file": self._file("graph", "onnx", value.SerializeToString())}
        if isinstance(value, bytes):
            return {"$": "bytes", "key": self._array(np.frombuffer(value, dtype=np.uint8))}
        return self._encode_instance(value)

    def _encode_instance(self, value: Any) -> Any:
        """Encode a plugin, a plugin class or a scikit-learn object; other objects are omitted."""
        cls = value if isinstance(value, type) else type(value)
        plugin = self._plugin_name(cls)
        if plugin is not None:
            record = {"$": "plugin", "group": plugin[0], "name": plugin[1]}
            parameters = {} if cls is value else {"parameters": self._pairs(value.get_params(deep=False))}
            return record | parameters
        reason = "it is not a plugin of an installed package, and loading it would run code"
        if not isinstance(value, type) and hasattr(value, "get_params") and hasattr(value, "fit"):
            if id(value) not in self.written:
                self.written[id(value)] = value, *sklearn_objects.dump(value)
            _, content, reason = self.written[id(value)]
            if content is not None:
                name = self._file("estimator", "skops", content)
                return {"$": "sklearn", "name": cls.__qualname__, "file": name}
        name = getattr(value, "__qualname__", cls.__qualname__)
        self.omitted.append(f"{name}: {reason}")
        return {"$": "omitted", "name": name}

    def _pairs(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.encode(value) for name, value in values.items()}

    def _array(self, array: Any) -> str:
        key = f"a{len(self._arrays)}"
        self._arrays[key] = np.asarray(array)
        return key

    def _file(self, stem: str, suffix: str, content: bytes) -> str:
        for name, known in self.files.items():
            if known == content and name.endswith(suffix):
                return name
        name = f"{stem}-{len(self.files)}.{suffix}"
        self.files[name] = content
        return name


#: Container types, their kind, and a function that returns the items of a container.
COLLECTIONS: tuple[tuple[tuple[type, ...], str, Callable[[Any], Any]], ...] = (
    ((tuple,), "tuple", list),
    ((dict,), "dict", lambda value: [list(pair) for pair in value.items()]),
    ((set,), "set", lambda value: sorted(value, key=repr)),
    ((frozenset,), "frozenset", lambda value: sorted(value, key=repr)),
    ((slice,), "slice", lambda value: [value.start, value.stop, value.step]),
)
