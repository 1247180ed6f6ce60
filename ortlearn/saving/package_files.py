"""Files of a training package, which are checked before their content is used."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, load_model_from_string

from ..exceptions import SavedFileError
from ..graphs.files import HIDDEN
from ..graphs.messages import message_tensors
from .package_schema import PACKAGE_SCHEMA
from .regular_files import file_size, open_regular
from .schema import check_manifest
from .tensors import read_tensors, unpack_tensors

__all__ = [
    "CHECKSUM",
    "EPOCH",
    "ESTIMATOR",
    "FORMAT",
    "KIND",
    "MANIFEST",
    "OLD_TENSORS",
    "PREDICT",
    "VALUES",
    "PackageFiles",
    "check_finite",
    "check_folder",
    "check_present",
    "check_values",
    "packed_manifest",
    "read_graph",
    "read_package",
    "read_regular_tensors",
    "sealed",
]

#: Number of the format that is written. Format 1 has no checksums, and weights and states in two files.
FORMAT = 2
MANIFEST, ESTIMATOR, PREDICT = "training.json", "estimator.zip", "predict.onnx"
KIND = "ortlearn training package"
#: Weights and states; one file, since a program replaces both by renaming once.
VALUES = "values.safetensors"
OLD_TENSORS = ("weights.safetensors", "state.safetensors")
#: Name of the state that counts the epochs that a program has trained.
EPOCH = "ortlearn_epoch"
#: Key of the checksum of a file inside of this file.
CHECKSUM = "ortlearn_crc32"
_MARK = f'"{CHECKSUM}": "'.encode()
#: Largest number of epochs of a program, each of which gets a record.
MAX_EPOCHS = 10**6
#: Largest size of a graph, which is that of protobuf, and of a manifest, in bytes.
MAX_GRAPH_BYTES = 2**31 - 1
MAX_MANIFEST_BYTES = 1 << 28


@dataclass(frozen=True)
class PackageFiles:
    """A package that was read."""

    root: Path
    manifest: dict[str, Any]
    contents: dict[str, bytes]
    values: dict[str, np.ndarray]

    def names(self, weights: bool) -> list[str]:
        """Return the names of weights, or those of states."""
        return [item["name"] for item in self.manifest["carried"] if (item["state"] is None) == weights]


def sealed(content: bytes) -> bytes:
    """Return a file with its checksum, the CRC-32 of the file with zeros in its place."""
    before, mark, rest = content.partition(_MARK)
    plain = before + mark + b"00000000" + rest[8:]
    return before + mark + b"%08x" % zlib.crc32(plain) + rest[8:]


def packed_manifest(manifest: Mapping[str, Any], files: Mapping[str, bytes]) -> bytes:
    """Return the file of a manifest, with its checksum and those of files that programs do not change."""
    checksums = {name: f"{zlib.crc32(data):08x}" for name, data in files.items() if name != VALUES}
    whole = {CHECKSUM: "0" * 8, **manifest, "files": checksums}
    check_manifest(whole, PACKAGE_SCHEMA)
    return sealed(json.dumps(whole, indent=1, allow_nan=False).encode())


def check_folder(root: Path) -> None:
    """Raise an error for a folder that has files, and is not a package."""
    if not root.is_dir() or all(path.name.startswith(HIDDEN) for path in root.iterdir()):
        return
    path = root / MANIFEST
    if not path.exists() or KIND.encode() not in _read_file(path, MAX_MANIFEST_BYTES):
        raise SavedFileError(
            f"{root} is a folder with other files: pass a new or an empty folder, or that of a package."
        )


def check_present(root: Path, names: Iterable[str]) -> None:
    """Raise an error that names the missing files of a package."""
    if not root.is_dir():
        found = "a file" if os.path.lexists(root) else "missing"
        raise SavedFileError(
            f"{root} is {found}, and a training package is a folder: pass the folder that export_training "
            "has written. ortlearn.saving.load reads the files of ortlearn.saving.save."
        )
    if missing := [name for name in names if not os.path.lexists(root / name)]:
        raise SavedFileError(f"The package in {root} lacks {', '.join(missing)}: copy or export it again.")


def read_package(folder: str | os.PathLike, needed: str) -> PackageFiles:
    """Read manifest, weights and states of a package, and check them, and that a needed file is present."""
    root = Path(folder)
    check_present(root, [MANIFEST])
    manifest = _read_manifest(root)
    check_present(root, [*manifest["tensors"], needed])
    contents: dict[str, bytes] = {}
    values: dict[str, np.ndarray] = {}
    for name in manifest["tensors"]:
        contents[name], arrays = read_regular_tensors(root / name)
        if manifest["format"] > 1 and contents[name] != sealed(contents[name]):
            raise SavedFileError(f"{root / name} was altered: its checksum is wrong.")
        values |= arrays
    try:
        check_values(values, manifest["carried"])
    except SavedFileError as error:
        raise SavedFileError(f"The package in {root} is damaged. {error}") from error
    return PackageFiles(root, manifest, contents, values)


def read_regular_tensors(path: Path) -> tuple[bytes, dict[str, np.ndarray]]:
    """Return a file of tensors, and its arrays; its header says how many bytes are read."""
    try:
        with open_regular(path) as file:
            content = read_tensors(file, file_size(file))
        return content, unpack_tensors(content)[0]
    except SavedFileError as error:
        raise SavedFileError(f"{path} cannot be read. {error}") from error


def read_graph(package: PackageFiles, name: str) -> ModelProto:
    """Return a graph of a package, without its external data."""
    path = package.root / name
    content = _read_file(path, MAX_GRAPH_BYTES)
    if package.manifest["format"] > 1 and package.manifest["files"].get(name) != f"{zlib.crc32(content):08x}":
        raise SavedFileError(f"{path} was altered: its checksum is wrong.")
    try:
        model = load_model_from_string(content)
        for _ in message_tensors(model):  # checks text
            pass
        return model
    except Exception as error:  # of protobuf
        raise SavedFileError(f"{path} is not an ONNX graph: {error}.") from error


def check_values(values: Mapping[str, np.ndarray], carried: list[dict[str, Any]]) -> None:
    """Raise an error unless there are all carried values, of their types and shapes, finite and in range."""
    known = {item["name"]: (item["type"], item["shape"], item.get("minimum")) for item in carried}
    known[EPOCH] = ("int64", [], 0)
    if len(known) != len(carried) + 1 or len(known) == 1:
        raise SavedFileError(f"Its manifest must name weights, each once, besides {EPOCH}.")
    missing, unknown = sorted(known.keys() - values.keys()), sorted(values.keys() - known.keys())
    if missing or unknown:
        raise SavedFileError(f"It must have tensors as in its manifest: {missing=}, {unknown=}.")
    for name, (dtype, shape, minimum) in known.items():
        array = values[name]
        if str(array.dtype) != dtype or list(array.shape) != shape:
            form = f"{dtype} of shape {shape}, not {array.dtype} of shape {list(array.shape)}"
            raise SavedFileError(f"Tensor {name!r} must be {form}.")
        check_finite(name, array, minimum)
    if values[EPOCH] > MAX_EPOCHS:
        raise SavedFileError(f"{EPOCH} is {values[EPOCH]}, more than {MAX_EPOCHS} epochs.")


def check_finite(name: str, array: np.ndarray, minimum: float | None = None) -> None:
    """Raise an error if an array has values that are not finite, or below a minimum."""
    if not np.isfinite(array).all():
        raise SavedFileError(f"Tensor {name!r} has values that are NaN or infinite.")
    if minimum is not None and array.size and array.min() < minimum:
        raise SavedFileError(f"Tensor {name!r} has values below {minimum:g}, such as {array.min():g}.")


def _read_file(path: Path, max_bytes: int) -> bytes:
    with open_regular(path) as file:
        if file_size(file) > max_bytes:
            raise SavedFileError(f"{path} has more than {max_bytes} bytes.")
        return file.read(max_bytes)


def _read_manifest(root: Path) -> dict[str, Any]:
    path = root / MANIFEST
    content = _read_file(path, MAX_MANIFEST_BYTES)
    try:
        manifest = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise SavedFileError(f"{path} is not JSON: {error}.") from error
    number = manifest.get("format") if isinstance(manifest, dict) else None
    if isinstance(number, int) and not 1 <= number <= FORMAT:
        raise SavedFileError(
            f"The package in {root} has format {number}, and this version of ortlearn reads formats up to "
            f"{FORMAT}: export it again, or use the version that wrote it."
        )
    check_manifest(manifest, PACKAGE_SCHEMA, MANIFEST)
    if tuple(manifest["tensors"]) != (OLD_TENSORS if number == 1 else (VALUES,)):
        raise SavedFileError(f"{path} has the wrong files of tensors {manifest['tensors']}.")
    if not manifest["schedule"]["rates"] or not np.isfinite(manifest["schedule"]["rates"]).all():
        raise SavedFileError(f"{path} must have finite learning rates.")
    if number != 1 and (content != sealed(content) or "files" not in manifest):
        raise SavedFileError(f"{path} was altered: its checksum is wrong. Export the package again.")
    return manifest
