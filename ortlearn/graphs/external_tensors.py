"""Large initializers whose numbers stay in a file beside the model, and are mapped into memory."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper

from ..exceptions import ConversionError, SavedFileError
from .nodes import all_nodes, subgraphs

__all__ = [
    "FILES_FOLDER",
    "external_initializers",
    "for_session",
    "is_mapped",
    "keep_external",
    "reject_external",
    "source_files",
    "stays_in",
    "tensor_array",
    "with_own_locations",
    "without_external",
]

#: Separates the folder of a model from the location of a tensor in it: both are one path.
IN = f"{os.sep}.{os.sep}"
#: Option of onnxruntime's sessions: the folder of external files, whose existence newer versions check.
FILES_FOLDER = "session.model_external_initializers_file_folder_path"
#: Files that :func:`keep_external` has checked; the locations of other models are not trusted.
_CHECKED: set[str] = set()


def _entries(tensor: TensorProto) -> dict[str, str]:
    return {entry.key: entry.value for entry in tensor.external_data}


def _set_location(tensor: TensorProto, location: str) -> None:
    next(entry for entry in tensor.external_data if entry.key == "location").value = location


def keep_external(tensor: TensorProto, folder: Path) -> None:
    """Keep the values of a tensor in a file of a folder; raise a ConversionError if it does not fit."""
    stored, n_bytes = _entries(tensor), _n_bytes(tensor)
    location, offset, length = stored.get("location", ""), stored.get("offset", "0"), stored.get("length")
    path, base = folder / location, os.path.realpath(folder)
    problem = ""
    if not location or os.path.isabs(location) or ".." in Path(location).parts:
        problem = "its location is not a path inside of the folder of the model"
    elif os.path.realpath(path) != os.path.join(base, os.path.normpath(location)) or not path.is_file():
        problem = "there is no regular file, or a link is on the way"
    elif path.stat().st_nlink > 1:
        problem = "the file has several names"
    elif not offset.isdecimal() or (length or str(n_bytes)) != str(n_bytes):
        problem = f"its shape {list(tensor.dims)} takes {n_bytes} bytes, and {length} are declared"
    elif path.stat().st_size < int(offset) + n_bytes:
        problem = f"the file has {path.stat().st_size} bytes, fewer than {int(offset) + n_bytes}"
    if problem:
        raise ConversionError(
            f"Tensor {tensor.name!r} cannot be read from {location!r}: {problem}. Put the model and the "
            "files of its weights into one folder, as they were written."
        )
    whole = f"{base}{IN}{location}"
    _CHECKED.add(whole)
    _set_location(tensor, whole)


def _n_bytes(tensor: TensorProto) -> int:
    count = 1
    for size in tensor.dims:
        count *= size
    return count * helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize


def is_mapped(tensor: TensorProto) -> bool:
    """Return whether the numbers of a tensor are in a file that was checked in this process."""
    is_external = tensor.data_location == TensorProto.EXTERNAL
    return is_external and _entries(tensor).get("location", "") in _CHECKED


def tensor_array(tensor: TensorProto) -> np.ndarray:
    """Return the values of a tensor; of an external one, a read-only array that maps its file."""
    if tensor.data_location != TensorProto.EXTERNAL:
        return numpy_helper.to_array(tensor)
    stored = _entries(tensor)
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type)).str
    status = os.stat(stored["location"])
    version = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
    return _mapped(stored["location"], int(stored.get("offset", 0)), dtype, tuple(tensor.dims), version)


@cache
def _mapped(
    location: str, offset: int, dtype: str, shape: tuple[int, ...], version: tuple[int, ...]
) -> np.ndarray:
    """Return a map of a part of a file; another one once the file has been replaced."""
    return np.asarray(np.memmap(location, dtype=dtype, mode="r", offset=offset, shape=shape))


def external_initializers(model: ModelProto) -> list[TensorProto]:
    """Return the initializers of the main graph whose numbers are in files."""
    return [t for t in model.graph.initializer if t.data_location == TensorProto.EXTERNAL]


def source_files(model: ModelProto) -> set[str]:
    """Return the paths of the files of external initializers."""
    return {os.path.realpath(_entries(t)["location"]) for t in external_initializers(model)}


def stays_in(tensor: TensorProto, folder: Path) -> bool:
    """Return whether the file of an external tensor belongs to a folder."""
    return _entries(tensor)["location"].rpartition(IN)[0] == os.path.realpath(folder)


def without_external(model: ModelProto) -> ModelProto:
    """Return a model whose external initializers are inputs; the same one without any."""
    kept = [t for t in model.graph.initializer if t.data_location != TensorProto.EXTERNAL]
    if len(kept) == len(model.graph.initializer):
        return model
    result = ModelProto()
    result.CopyFrom(model)
    del result.graph.initializer[:]
    result.graph.initializer.extend(kept)
    known = {value.name for value in model.graph.input}
    result.graph.input.extend(
        helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
        for tensor in external_initializers(model)
        if tensor.name not in known
    )
    return result


def with_own_locations(model: ModelProto) -> ModelProto:
    """Return a model whose external tensors have the locations of its file; the same one without any."""
    if not external_initializers(model):
        return model
    result = ModelProto()
    result.CopyFrom(model)
    for tensor in external_initializers(result):
        _set_location(tensor, _entries(tensor)["location"].rpartition(IN)[2])
    return result


def reject_external(model: ModelProto) -> None:
    """Raise a SavedFileError for a model with external tensors, which a single file does not hold."""
    names = [tensor.name for tensor in external_initializers(model)]
    if names:
        raise SavedFileError(
            f"The weights {names} stay in the file beside the ONNX model, as they are too large for a saved "
            "estimator or a checkpoint: write the trained model by save_onnx_graph(folder), and train it "
            "again from its path."
        )


def for_session(model: ModelProto) -> tuple[ModelProto, dict[str, np.ndarray], str]:
    """Return a model whose external tensors are initializers of the main graph, their values, and a folder.

    Locations are relative to the folder, the value of ``FILES_FOLDER``. onnxruntime gets the values and reads
    no file.
    """
    if not any(t.data_location == TensorProto.EXTERNAL for g in _graphs(model) for t in g.initializer):
        return model, {}, ""
    result = ModelProto()
    result.CopyFrom(model)
    values = {tensor.name: tensor_array(tensor) for tensor in external_initializers(result)}
    for graph in _graphs(result)[1:]:
        for tensor in [t for t in graph.initializer if t.data_location == TensorProto.EXTERNAL]:
            if tensor.name not in values:
                values[tensor.name] = tensor_array(tensor)
                result.graph.initializer.append(tensor)
            graph.initializer.remove(tensor)
    folder = os.path.commonpath([os.path.dirname(path) for path in source_files(result)])
    for tensor in external_initializers(result):
        _set_location(tensor, os.path.relpath(os.path.realpath(_entries(tensor)["location"]), folder))
    return result, values, folder


def _graphs(model: ModelProto) -> list[GraphProto]:
    """Return the main graph and the subgraphs of its nodes."""
    return [model.graph, *(graph for node in all_nodes(model.graph) for graph in subgraphs(node))]
