"""Conversion between arrays and the bytes of an npz file, without pickle."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Mapping

import numpy as np

from ..exceptions import SavedFileError

__all__ = ["pack_arrays", "unpack_arrays"]

#: Kinds of numpy types that are stored: numbers, booleans, texts and bytes of a fixed width.
KINDS = "biufcUS"
#: Fixed date of all members, so that equal arrays have equal bytes.
DATE = (1980, 1, 1, 0, 0, 0)


def pack_arrays(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return the bytes of an npz file, not compressed."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            part = io.BytesIO()
            np.lib.format.write_array(part, np.asarray(array), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", DATE), part.getvalue())
    return file.getvalue()


def unpack_arrays(content: bytes) -> dict[str, np.ndarray]:
    """Return the arrays of an npz file that is not compressed.

    Declared sizes are compared with the actual bytes before memory is allocated.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            if any(item.compress_type != zipfile.ZIP_STORED for item in members):
                raise SavedFileError("an array is compressed")
            if sum(item.file_size for item in members) > len(content):
                raise SavedFileError("the declared sizes exceed the size of the file")
            return {item.filename.removesuffix(".npy"): _array(archive.read(item)) for item in members}
    except Exception as error:  # zipfile, struct and numpy raise many kinds of errors for damaged files
        raise SavedFileError(f"The arrays cannot be read: {error}.") from error


def _array(content: bytes) -> np.ndarray:
    """Return the array of an npy file of version 1.0 or 2.0."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise SavedFileError(f"an array has version {version}")
    shape, fortran_order, dtype = readers[version](file)
    data = content[file.tell() :]
    if dtype.kind not in KINDS or dtype.hasobject:
        raise SavedFileError(f"an array is of type {dtype}")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(data):
        raise SavedFileError(f"an array of shape {shape} and type {dtype} has {len(data)} bytes")
    if not dtype.itemsize:
        return np.zeros(shape, dtype=dtype)
    flat = np.frombuffer(data, dtype=dtype)
    return flat.reshape(shape, order="F" if fortran_order else "C").copy(order="A")
