"""Values as JSON, arrays, graphs and scikit-learn models; back without running code of a file.

A value that JSON has no form for is an object with the key ``"$"``, its kind. Objects are made of plugins
that installed packages declare, and of record types that the caller lists: a file only names them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, load_model_from_string
from scipy import sparse

from .. import plugins
from ..exceptions import OrtlearnError, SavedFileError
from . import sklearn_objects
from .arrays import pack_arrays, unpack_arrays
from .record_types import Omitted, RecordType

__all__ = ["Decoder", "Encoder"]

ARRAYS = "arrays.npz"
#: Groups of plugins that are objects with parameters.
GROUPS = (plugins.LOSSES, plugins.PENALTIES, plugins.LEARNING_RATES, plugins.SCHEDULES)
#: Levels of nesting that a value may have.
DEEPEST = 60


def _plugin_name(cls: type) -> tuple[str, str] | None:
    """Return group and name of a plugin by its class, None for other classes."""
    for group in GROUPS:
        for info in plugins.list_plugins(group):
            named = info.value.rpartition(":")[2] == cls.__qualname__ and not info.broken
            if named and plugins.get(group, info.name) is cls:
                return group, info.name
    return None


@dataclass
class Encoder:
    """Takes values, and gathers the files that they are in.

    Attributes
    ----------
    types : mapping of str to RecordType
        Record types by name.
    files : dict of str to bytes
        Graphs and scikit-learn models.
    omitted : list of str
        What was left out, and why.
    written : dict
        scikit-learn objects that skops has written before, by id: a training that is saved often writes
        those that it does not change once.
    """

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
        """Return graphs, scikit-learn models and arrays.

        Returns
        -------
        dict of str to bytes
            Files by name.
        """
        return {**self.files, ARRAYS: pack_arrays(self._arrays)}

    def encode(self, value: Any) -> Any:
        """Return a value as JSON; what is large goes to files, an object that comes again only once.

        Parameters
        ----------
        value : object
            Value.

        Returns
        -------
        object
            Value of JSON.
        """
        if value is None or isinstance(value, bool | str) and type(value) in (bool, str):
            return value
        if type(value) is int:
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"$": "float", "value": repr(value)}
        if type(value) is list:
            return [self.encode(item) for item in value]
        if id(value) not in self._known:
            self._known[id(value)] = value, self._encode_object(value)  # kept alive: it is known by its id
        return self._known[id(value)][1]

    def _encode_object(self, value: Any) -> Any:
        own = self._names.get(type(value))
        if own is not None:
            return {"$": "record", "name": own, "fields": self._pairs(self.types[own].take(value))}
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
            triple = value.tocsr()
            parts = [triple.data, triple.indices, triple.indptr]
            return {"$": "csr", "shape": list(value.shape), "parts": [self.encode(part) for part in parts]}
        if isinstance(value, ModelProto):
            return {"$": "model", "file": self._file("graph", "onnx", value.SerializeToString())}
        if isinstance(value, bytes):
            return {"$": "bytes", "key": self._array(np.frombuffer(value, dtype=np.uint8))}
        return self._encode_instance(value)

    def _encode_instance(self, value: Any) -> Any:
        """Return a plugin, a class of plugins, or a scikit-learn object; what is none of them is omitted."""
        cls = value if isinstance(value, type) else type(value)
        plugin = self._plugin_name(cls)
        if plugin is not None:
            head = {"$": "plugin", "group": plugin[0], "name": plugin[1]}
            return head if cls is value else {**head, "parameters": self._pairs(value.get_params(deep=False))}
        reason = "it is no plugin of an installed package, and reading it back would run code"
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


#: Types, their kind, and the items that stand for a value.
COLLECTIONS: tuple[tuple[tuple[type, ...], str, Callable[[Any], Any]], ...] = (
    ((tuple,), "tuple", list),
    ((dict,), "dict", lambda value: [list(pair) for pair in value.items()]),
    ((set,), "set", lambda value: sorted(value, key=repr)),
    ((frozenset,), "frozenset", lambda value: sorted(value, key=repr)),
    ((slice,), "slice", lambda value: [value.start, value.stop, value.step]),
)


class Decoder:
    """Makes values of what :class:`Encoder` gave.

    Parameters
    ----------
    types : mapping of str to RecordType
        Record types by name: no other class is made an object of.
    files : mapping of str to bytes
        Files by name.
    trusted : sequence of str
        Types that scikit-learn models may hold besides those that skops trusts.

    Attributes
    ----------
    omitted : list of str
        scikit-learn models that were not read, and why.
    """

    def __init__(self, types: Mapping[str, RecordType], files: Mapping[str, bytes], trusted: Sequence[str]):
        self._types = types
        self._files = files
        self._trusted = trusted
        self._arrays = unpack_arrays(files[ARRAYS]) if ARRAYS in files else {}
        self._objects: dict[str, Any] = {}
        self.omitted: list[str] = []
        self._depth = 0
        self._makers: dict[str, Callable[[dict[str, Any]], Any]] = {
            "float": lambda parts: _number(parts["value"]),
            "tuple": lambda parts: tuple(self._items(parts)),
            "set": lambda parts: set(self._items(parts)),
            "frozenset": lambda parts: frozenset(self._items(parts)),
            "dict": lambda parts: dict(self._items(parts)),
            "slice": lambda parts: slice(*_three(self._items(parts))),
            "objects": self._object_array,
            "array": self._stored_array,
            "bytes": lambda parts: self._stored(parts).tobytes(),
            "dtype": lambda parts: _dtype(parts["value"]),
            "random_state": self._random_state,
            "csr": self._csr,
            "model": lambda parts: _model(self._file(parts, "onnx")),
            "sklearn": self._sklearn,
            "omitted": lambda parts: Omitted(_text(parts["name"])),
            "plugin": self._plugin,
            "record": self._record,
        }

    def decode(self, value: Any) -> Any:
        """Return the value of JSON that :meth:`Encoder.encode` gave.

        Parameters
        ----------
        value : object
            Value of JSON.

        Returns
        -------
        object
            Value.

        Raises
        ------
        SavedFileError
            If it is not of that form, or names a record type, a plugin or a file that is unknown.
        """
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if self._depth > DEEPEST:
            raise SavedFileError("The record is nested too deeply.")
        self._depth += 1
        try:
            if isinstance(value, list):
                return [self.decode(item) for item in value]
            maker = self._makers.get(value.get("$"))
            if maker is None:
                raise SavedFileError(f"The record has a value of unknown kind {value.get('$')!r}.")
            return maker(value)
        except OrtlearnError as error:
            raise error if isinstance(error, SavedFileError) else SavedFileError(f"{error}") from error
        except Exception as error:  # constructors of plugins and numpy raise many kinds of errors
            raise SavedFileError(f"The record is invalid: {type(error).__name__}: {error}") from error
        finally:
            self._depth -= 1

    def _items(self, parts: dict[str, Any]) -> list[Any]:
        if not isinstance(parts["items"], list):
            raise SavedFileError("The record has items that are no list.")
        return [self.decode(item) for item in parts["items"]]

    def _pairs(self, values: Any) -> dict[str, Any]:
        return {_text(name): self.decode(value) for name, value in values.items()}

    def _stored(self, parts: dict[str, Any]) -> np.ndarray:
        if parts["key"] not in self._arrays:
            raise SavedFileError(f"The file lacks the array {parts['key']!r}.")
        return self._arrays[parts["key"]]

    def _stored_array(self, parts: dict[str, Any]) -> Any:
        array = self._stored(parts)
        return array[()] if parts["scalar"] else array.copy()

    def _object_array(self, parts: dict[str, Any]) -> np.ndarray:
        items = self._items(parts)
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return array.reshape([int(size) for size in parts["shape"]])

    def _random_state(self, parts: dict[str, Any]) -> np.random.RandomState:
        found = np.random.RandomState()
        found.set_state(self.decode(parts["state"]))
        return found

    def _csr(self, parts: dict[str, Any]) -> Any:
        data, indices, pointers = _three([self.decode(part) for part in parts["parts"]])
        found = sparse.csr_matrix((data, indices, pointers), shape=[int(size) for size in parts["shape"]])
        found.check_format(full_check=True)
        return found

    def _file(self, parts: dict[str, Any], suffix: str) -> bytes:
        name = _text(parts["file"])
        if name not in self._files or not name.endswith(f".{suffix}"):
            raise SavedFileError(f"The file lacks {name}.")
        return self._files[name]

    def _sklearn(self, parts: dict[str, Any]) -> Any:
        content, name = self._file(parts, "skops"), parts["file"]
        if name not in self._objects:
            try:
                self._objects[name] = sklearn_objects.load(content, self._trusted)
            except sklearn_objects.NotTrusted as error:
                self._objects[name] = Omitted(_text(parts["name"]), str(error))
                self.omitted.append(f"{parts['name']}: {error}")
        return self._objects[name]

    def _plugin(self, parts: dict[str, Any]) -> Any:
        group = _text(parts["group"])
        if group not in GROUPS:
            raise SavedFileError(f"The record has a plugin of the group {group!r}.")
        cls = plugins.get(group, _text(parts["name"]))
        if "parameters" not in parts:
            return cls
        values = self._pairs(parts["parameters"])
        lost = any(isinstance(value, Omitted) for value in values.values())
        return Omitted(cls.__name__) if lost else cls(**values)

    def _record(self, parts: dict[str, Any]) -> Any:
        kind = self._types.get(_text(parts["name"]))
        if kind is None:
            raise SavedFileError(f"The record has a value of unknown type {parts['name']!r}.")
        return kind.make(self._pairs(parts["fields"]))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise SavedFileError(f"The record has {value!r} where a name is expected.")
    return value


def _three(items: list[Any]) -> tuple[Any, Any, Any]:
    first, second, third = items
    return first, second, third


def _number(text: Any) -> float:
    if text not in ("inf", "-inf", "nan"):
        raise SavedFileError(f"The record has the number {text!r}.")
    return float(text)


def _dtype(text: Any) -> np.dtype:
    dtype = np.dtype(_text(text))
    if dtype.hasobject and text != "|O":
        raise SavedFileError(f"The record has the type {text!r}.")
    return dtype


def _model(content: bytes) -> ModelProto:
    """Return a graph that has all of its numbers inside of it."""
    model = load_model_from_string(content)
    with suppress(StopIteration):
        name = next(_external(model.graph))
        raise SavedFileError(f"The graph has numbers outside of the file ({name!r}), which are not read.")
    return model


def _external(graph: Any) -> Any:
    """Yield the names of tensors whose numbers are in other files, those of graphs inside included."""
    for tensor in graph.initializer:
        if tensor.data_location == TensorProto.EXTERNAL:
            yield tensor.name
    for node in graph.node:
        for attribute in node.attribute:
            for tensor in (attribute.t, *attribute.tensors):
                if tensor.data_location == TensorProto.EXTERNAL:
                    yield tensor.name
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from _external(inner)
