"""Files of saved estimators, written atomically and checked when they are read."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from ..exceptions import SavedFileError
from ..graphs.files import write_atomically
from .arrays import DATE
from .regular_files import file_size, open_regular
from .schema import FORMAT, check_manifest

__all__ = ["MANIFEST", "SUFFIX", "Content", "packed", "read", "read_manifest", "write"]

MANIFEST = "manifest.json"
#: Largest size of a manifest in bytes, which is parsed before its digest is checked.
MAX_MANIFEST_BYTES = 1 << 28
SUFFIX = ".zip"


@dataclass(frozen=True)
class Content:
    """A manifest, and the files that it lists."""

    manifest: dict[str, Any]
    files: dict[str, bytes]


def write(path: str | os.PathLike, content: Content) -> None:
    """Write a zip file if the path ends with ``.zip``, and a folder otherwise.

    Existing content stays valid until the new one is complete: a zip file is replaced by renaming, and the
    files of a folder get new names, which become valid when its manifest is replaced.
    """
    path = Path(path)
    if path.suffix.lower() == SUFFIX:
        data = packed(content)
        write_atomically(path, lambda file: file.write(data))
        return
    manifest = _sealed(content)
    if path.is_dir() and not (path / MANIFEST).exists() and any(path.iterdir()):
        raise SavedFileError(
            f"{path} is a folder with other files: pass an empty or a new folder, or a name that ends with "
            f"{SUFFIX}."
        )
    if path.is_file():
        raise SavedFileError(f"{path} is a file: pass a folder, or a name that ends with {SUFFIX}.")
    path.mkdir(exist_ok=True)
    old = _names_in(path)
    new = {_name_in_folder(name, manifest["files"][name]): data for name, data in content.files.items()}
    for name, data in new.items():
        write_atomically(path / name, partial(_put, data))
    write_atomically(path / MANIFEST, lambda file: file.write(_as_json(manifest)))
    for name in old - new.keys():
        (path / name).unlink(missing_ok=True)


def packed(content: Content) -> bytes:
    """Return the bytes of a zip file."""
    return _zipped({MANIFEST: _as_json(_sealed(content)), **content.files})


def read(path: str | os.PathLike) -> Content:
    """Read a zip file or a folder that :func:`write` has written."""
    return Content(*_read(_existing(path), whole=True))


def read_manifest(path: str | os.PathLike) -> dict[str, Any]:
    """Read only the manifest."""
    return _read(_existing(path), whole=False)[0]


def _existing(path: str | os.PathLike) -> Path:
    """Return a path as an object; raise an error for other types, and for missing files."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be the path of a saved estimator, not {path!r}.")
    found = Path(path)
    if not str(path) or "\0" in str(path) or not os.path.lexists(found):
        raise FileNotFoundError(
            f"{str(path)!r} does not exist. Pass a file or a folder that ortlearn.saving.save or "
            "ModelCheckpoint has written."
        )
    return found


def _put(data: bytes, file: BinaryIO) -> None:
    file.write(data)


def _sealed(content: Content) -> dict[str, Any]:
    """Return the manifest with sizes and digests of the files, and its own digest."""
    files = {
        name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in content.files.items()
    }
    manifest = {"kind": "ortlearn", "format": FORMAT, **content.manifest, "files": files}
    manifest["sha256"] = _digest(manifest)
    return manifest


def _as_json(manifest: Mapping[str, Any]) -> bytes:
    return json.dumps(manifest, indent=1, allow_nan=False).encode()


def _digest(manifest: Mapping[str, Any]) -> str:
    """Return the digest of a manifest, without the entry for the digest."""
    rest = {key: value for key, value in manifest.items() if key != "sha256"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _zipped(files: Mapping[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name, DATE), data)
    return file.getvalue()


def _name_in_folder(name: str, entry: Mapping[str, Any]) -> str:
    """Return the name of a file in a folder, which contains a part of its digest."""
    stem, _, suffix = name.rpartition(".")
    return f"{stem}-{entry['sha256'][:16]}.{suffix}"


def _names_in(folder: Path) -> set[str]:
    """Return the files that the manifest of a folder lists, or none without a valid manifest."""
    try:
        files = read_manifest(folder)["files"]
    except (OSError, SavedFileError):
        return set()
    return {_name_in_folder(name, entry) for name, entry in files.items()}


def _read(path: Path, whole: bool) -> tuple[dict[str, Any], dict[str, bytes]]:
    try:
        if path.is_dir():
            return _read_folder(path, whole)
        with open_regular(path) as file:
            return _read_zip(file, file_size(file), whole)
    except SavedFileError as error:
        raise SavedFileError(f"{path} is not a saved estimator, or is damaged. {error}") from error


def _read_zip(file: BinaryIO, size: int, whole: bool) -> tuple[dict[str, Any], dict[str, bytes]]:
    try:
        with zipfile.ZipFile(file) as archive:
            return _read_members(archive, size, whole)
    except SavedFileError:
        raise
    except Exception as error:  # zipfile and struct raise many kinds of errors for damaged files
        raise SavedFileError(f"It cannot be read as a zip file: {error}.") from error


def _read_members(
    archive: zipfile.ZipFile, size: int, whole: bool
) -> tuple[dict[str, Any], dict[str, bytes]]:
    members = archive.infolist()
    names = [item.filename for item in members]
    if MANIFEST not in names:
        raise SavedFileError(f"It lacks {MANIFEST}: it is truncated, or another kind of zip file.")
    if len({*names}) < len(names):
        raise SavedFileError("It has repeated names.")
    if any(item.compress_type != zipfile.ZIP_STORED or item.flag_bits & 1 for item in members):
        raise SavedFileError("It is compressed or encrypted, which is not supported.")
    if sum(item.file_size for item in members) > size:
        raise SavedFileError("Its declared sizes exceed the size of the file.")
    manifest = _checked_manifest(archive.read(MANIFEST))
    unknown = sorted({*names} - {MANIFEST, *manifest["files"]})
    if unknown:
        raise SavedFileError(f"It has files that its manifest does not list: {unknown[:5]}.")
    if not whole:
        return manifest, {}
    missing = sorted({*manifest["files"]} - {*names})
    if missing:
        raise SavedFileError(f"It lacks {missing}.")
    return manifest, {
        name: _checked_file(name, archive.read(name), entry) for name, entry in manifest["files"].items()
    }


def _read_folder(folder: Path, whole: bool) -> tuple[dict[str, Any], dict[str, bytes]]:
    manifest = _checked_manifest(_read_regular(folder / MANIFEST, MAX_MANIFEST_BYTES))
    if not whole:
        return manifest, {}
    return manifest, {
        name: _checked_file(name, _read_regular(folder / _name_in_folder(name, entry), entry["bytes"]), entry)
        for name, entry in manifest["files"].items()
    }


def _read_regular(path: Path, max_bytes: int) -> bytes:
    """Return the content of a regular file, up to ``max_bytes + 1`` bytes."""
    try:
        with open_regular(path, follow_links=False) as file:
            return file.read(max_bytes + 1)
    except OSError as error:
        raise SavedFileError(f"{path.name} cannot be read: {error.strerror}.") from error


def _checked_manifest(data: bytes) -> dict[str, Any]:
    if len(data) > MAX_MANIFEST_BYTES:
        raise SavedFileError(f"Its manifest has more than {MAX_MANIFEST_BYTES} bytes.")
    try:
        manifest = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SavedFileError(f"Its manifest is not JSON: {error}.") from error
    if isinstance(manifest, dict) and isinstance(manifest.get("format"), int) and manifest["format"] > FORMAT:
        raise SavedFileError(
            f"It has format {manifest['format']}, and this version of ortlearn reads formats up to {FORMAT}: "
            "install a newer version."
        )
    check_manifest(manifest)
    if _digest(manifest) != manifest["sha256"]:
        raise SavedFileError("Its manifest was altered.")
    return manifest


def _checked_file(name: str, data: bytes, entry: Mapping[str, Any]) -> bytes:
    if len(data) != entry["bytes"] or hashlib.sha256(data).hexdigest() != entry["sha256"]:
        raise SavedFileError(f"{name} was altered.")
    return data
