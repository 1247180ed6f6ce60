"""Values and arrays of records are written and read again."""

import io
import json
import pickle
import zipfile

import numpy as np
import pytest

from ortlearn.exceptions import SavedFileError
from ortlearn.saving.arrays import pack_arrays, unpack_arrays
from ortlearn.saving.decoder import Decoder
from ortlearn.saving.encoder import Encoder
from tests.saving.archives import RAN, Harmful


def header(shape, descr, order="False"):
    text = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


@pytest.mark.parametrize(
    "content",
    [
        header((10**15,), "<f8") + b"\0" * 8,
        header((-1,), "<f8") + b"\0" * 8,
        header((1,), "|O") + pickle.dumps([Harmful()]),
        header((1,), "<f8"),
        header((2**62, 2**62), "<f8"),
        header((1,), "<M8[s]") + b"\0" * 8,
        header("__import__('os').abort()", "<f8"),
        b"\x93NUMPY\x03\x00" + b"\0" * 20,
        b"no array",
    ],
)
def test_arrays_are_as_large_as_their_bytes(content):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a0.npy", content)
    with pytest.raises(SavedFileError, match="The arrays cannot be read"):
        unpack_arrays(file.getvalue())
    assert not RAN


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "u1", "?", "U5", "S3", "c16", ">f8", "f2"])
def test_arrays_round_trip(dtype, order):
    for shape in ((), (0,), (3,), (2, 3), (2, 0, 4)):
        array = np.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype), order=order)
        found = unpack_arrays(pack_arrays({"a": array}))["a"]
        np.testing.assert_array_equal(found, array, strict=True)
        assert found.flags.writeable


VALUES = [
    *(None, True, 3, -(2**70), 1.5, float("inf"), "text", [1, [2]], (1, "a"), {"$": 1, 2: (3,)}, b"bytes"),
    *(
        {1, 2},
        frozenset("a"),
        slice(1, None, 2),
        np.float32(0.1),
        np.int64(3),
        np.str_("a"),
        np.dtype("<f4"),
    ),
    *({("a", None): 1}, float("-inf"), {}, (), np.bool_(True)),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_round_trip(value):
    encoder = Encoder({})
    text = json.dumps(encoder.encode(value), allow_nan=False)
    found = Decoder({}, encoder.all_files(), ()).decode(json.loads(text))
    assert type(found) is type(value) and found == value


def test_random_states_round_trip():
    state = np.random.RandomState(3)
    state.normal(size=5)
    encoder = Encoder({})
    text = json.dumps(encoder.encode(state))
    found = Decoder({}, encoder.all_files(), ()).decode(json.loads(text))
    np.testing.assert_array_equal(found.normal(size=9), state.normal(size=9))
