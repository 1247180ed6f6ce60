"""Decode values from JSON, arrays, graphs and scikit-learn models, without running code of a file.

Only plugins of installed packages and record types that the caller lists are instantiated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, load_model_from_string, numpy_helper
from scipy import sparse

from .. import plugins
from ..exceptions import OrtlearnError, SavedFileError
from ..graphs.messages import message_tensors
from . import sklearn_objects
from .arrays import unpack_arrays
from .encoder import ARRAYS, GROUPS
from .record_types import Omitted, RecordType

__all__ = ["Decoder", "read_model"]

#: Largest number of levels of nesting of a value.
DEEPEST = 60


class Decoder:
    """Decode the values that the encoder has written; only classes of ``types`` are instantiated."""

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
            "model": lambda parts: read_model(self._file(parts, "onnx")),
            "sklearn": self._sklearn,
            "omitted": lambda parts: Omitted(_text(parts["name"])),
            "plugin": self._plugin,
            "record": self._record,
        }

    def decode(self, value: Any) -> Any:
        """Return the value that was encoded as JSON."""
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
            raise SavedFileError("The record has items that are not a list.")
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
        is_incomplete = any(isinstance(value, Omitted) for value in values.values())
        return Omitted(cls.__name__) if is_incomplete else cls(**values)

    def _record(self, parts: dict[str, Any]) -> Any:
        kind = self._types.get(_text(parts["name"]))
        if kind is None:
            raise SavedFileError(f"The record has a value of unknown type {parts['name']!r}.")
        return kind.make(self._pairs(parts["fields"]))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise SavedFileError(f"The record has {value!r} instead of a name.")
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


def read_model(content: bytes) -> ModelProto:
    """Return the graph of a file."""
    model = load_model_from_string(content)
    try:
        for tensor in message_tensors(model):
            if tensor.data_location == TensorProto.EXTERNAL:
                name = tensor.name
                raise SavedFileError(f"The graph has external data ({name!r}), which is not supported.")
            numpy_helper.to_array(tensor)  # checks values, which are not copied
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        if isinstance(error, SavedFileError):
            raise
        raise SavedFileError(f"The graph has invalid text or tensors: {error}.") from error
    return model
