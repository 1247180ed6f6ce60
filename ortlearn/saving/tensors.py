"""Files of named arrays in the safetensors format."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from ..exceptions import SavedFileError

__all__ = ["pack_tensors", "read_tensors", "replace_tensors", "tensor_offsets", "unpack_tensors"]

#: Names of the types in a header.
DTYPES = {
    "F64": np.float64,
    "F32": np.float32,
    "F16": np.float16,
    "I64": np.int64,
    "I32": np.int32,
    "I16": np.int16,
    "I8": np.int8,
    "U8": np.uint8,
    "BOOL": np.bool_,
}
NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
METADATA = "__metadata__"
#: Largest size of a header in bytes.
MAX_HEADER_BYTES = 10**8
#: Alignment of arrays in bytes, as the format recommends.
ALIGNMENT = 8


def pack_tensors(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None) -> bytes:
    """Return the content of a file of arrays in the format of safetensors.

    The file begins with the length of the header as 8 bytes, little-endian. The header is JSON with type,
    shape and offsets of each array. The arrays follow in C order, little-endian
    (https://github.com/huggingface/safetensors#format).
    """
    header, contents, end = {}, [], 0
    for name, array in arrays.items():
        if array.dtype not in NAMES:
            raise TypeError(f"Array {name!r} is of type {array.dtype}: supported types are {sorted(DTYPES)}.")
        content = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        start, end = end, end + len(content)
        header[name] = {"dtype": NAMES[array.dtype], "shape": array.shape, "data_offsets": [start, end]}
        contents.append(content)
    text = json.dumps(({METADATA: dict(metadata)} if metadata else {}) | header).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    return b"".join([len(text).to_bytes(8, "little"), text, *contents])


def unpack_tensors(content: bytes) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return the arrays and the metadata of a file."""
    header, start = _header(content)
    arrays, metadata, places = {}, header.pop(METADATA, {}), []
    for name, known in header.items():
        try:
            dtype, shape = np.dtype(DTYPES[known["dtype"]]), tuple(known["shape"])
            begin, end = known["data_offsets"]
            fits = all(type(n) is int and n >= 0 for n in (*shape, begin, end))
            fits = fits and end - begin == math.prod(shape) * dtype.itemsize and start + end <= len(content)
        except (KeyError, TypeError, ValueError):
            fits = False
        if not fits:
            raise SavedFileError(f"The type, shape and offsets of tensor {name!r} do not match.")
        flat = np.frombuffer(content, dtype.newbyteorder("<"), math.prod(shape), start + begin)
        arrays[name] = flat.reshape(shape).astype(dtype)
        places.append((begin, end))
    places.sort()
    if [0, *(end for _, end in places)] != [*(begin for begin, _ in places), len(content) - start]:
        raise SavedFileError("The tensors of the safetensors file overlap, or do not fill it.")
    return arrays, metadata


def read_tensors(file: BinaryIO, size: int) -> bytes:
    """Return the content of a file, after a check that its header describes as many bytes as it has."""
    content = file.read(8)
    content += file.read(min(int.from_bytes(content, "little"), MAX_HEADER_BYTES, size))
    header, start = _header(content)
    header.pop(METADATA, None)
    try:
        end = max((known["data_offsets"][1] for known in header.values()), default=0)
        fits = start + end == size
    except (IndexError, KeyError, TypeError):
        fits = False
    if not fits:
        raise SavedFileError("The header of the safetensors file does not describe its content.")
    return content + file.read(end)


def replace_tensors(content: bytes, arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return a file with new values of some arrays, of the same types and shapes."""
    new = bytearray(content)
    for name, (start, length) in tensor_offsets(content).items():
        if name in arrays:
            array = np.ascontiguousarray(arrays[name])
            new[start : start + length] = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    return bytes(new)


def tensor_offsets(content: bytes) -> dict[str, tuple[int, int]]:
    """Return the offset of each array in a file, and its number of bytes."""
    header, start = _header(content)
    header.pop(METADATA, None)
    offsets = {name: known["data_offsets"] for name, known in header.items()}
    return {name: (start + begin, end - begin) for name, (begin, end) in offsets.items()}


def _header(content: bytes) -> tuple[dict[str, Any], int]:
    """Return the header, and the offset of the data."""
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > min(MAX_HEADER_BYTES, len(content) - 8):
        raise SavedFileError("This is not a safetensors file, or it is truncated.")
    try:
        header = json.loads(content[8 : 8 + length])
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise SavedFileError("The header of the safetensors file is not valid JSON.")
    return header, 8 + length
