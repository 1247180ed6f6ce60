"""Files of tensors in the safetensors format."""

import json

import numpy as np
import pytest

from ortlearn.exceptions import SavedFileError
from ortlearn.saving.tensors import pack_tensors, tensor_offsets, unpack_tensors

ARRAYS = {
    "b": np.arange(6, dtype=np.float32).reshape(2, 3),
    "a": np.array(7),
    "empty": np.zeros((0, 3)),
    "flags": np.array([True, False]),
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
}


def test_round_trip():
    found, metadata = unpack_tensors(pack_tensors(ARRAYS, {"made by": "a test"}))
    assert metadata == {"made by": "a test"}
    assert list(found) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        np.testing.assert_array_equal(found[name], array)


def test_bytes_of_the_format():
    """Eight bytes of length, a JSON header, and the values without gaps."""
    content = pack_tensors({"x": np.array([1.0, 2.0], dtype=np.float32)})
    length = int.from_bytes(content[:8], "little")
    known = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    assert json.loads(content[8 : 8 + length]) == {"x": known}
    assert (8 + length) % 8 == 0
    assert content[8 + length :] == np.array([1.0, 2.0], dtype="<f4").tobytes()
    assert tensor_offsets(content) == {"x": (8 + length, 8)}


def test_an_unsupported_type_is_rejected():
    with pytest.raises(TypeError, match="complex128"):
        pack_tensors({"z": np.zeros(1, dtype=complex)})


@pytest.mark.parametrize(
    "known",
    [
        {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [2], "data_offsets": [0, 8000]},
        {"dtype": "F32", "shape": [10**12], "data_offsets": [0, 4 * 10**12]},
        {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]},
        {"dtype": "F32", "shape": ["2"], "data_offsets": [0, 8]},
        {"dtype": "O", "shape": [2], "data_offsets": [0, 8]},
        {"shape": [2]},
        7,
    ],
)
def test_mismatching_headers_are_rejected(known):
    text = json.dumps({"x": known}).encode()
    with pytest.raises(SavedFileError, match="'x'"):
        unpack_tensors(len(text).to_bytes(8, "little") + text + bytes(8))


@pytest.mark.parametrize(
    "content", [b"", bytes(7), b"\xff" * 8, (10).to_bytes(8, "little"), (2).to_bytes(8, "little") + b"[]"]
)
def test_missing_headers_are_rejected(content):
    with pytest.raises(SavedFileError):
        unpack_tensors(content)
