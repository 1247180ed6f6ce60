"""Edits of a valid file, read from the bytes that a fuzzer mutates."""

from __future__ import annotations

__all__ = ["edited"]

#: Bytes of an edit: position (4), kind, value.
_SIZE, _MOST = 6, 64


def edited(content: bytes, data: bytes) -> bytes:
    """Return a file after the edits that ``data`` describes: bytes set, flipped, deleted, repeated, inserted.

    Coverage-guided mutation of edits stays close to a valid file, which mutation of the file would not.
    """
    result = bytearray(content)
    for start in range(0, min(len(data), _SIZE * _MOST) - _SIZE + 1, _SIZE):
        place = int.from_bytes(data[start : start + 4], "little") % (len(result) + 1)
        kind, value = data[start + 4] % 6, data[start + 5]
        if kind == 0:
            result[place : place + 1] = bytes([value])
        elif kind == 1 and place < len(result):
            result[place] ^= 1 << value % 8
        elif kind == 2:
            del result[place : place + 1 + value]
        elif kind == 3:
            result[place:place] = result[place : place + 1 + value]
        elif kind == 4:
            result[place:place] = data[start + 4 : start + _SIZE] * (1 + value % 8)
        elif kind == 5:
            result[place : place + 8] = (value << 56 | value).to_bytes(8, "little")
    return bytes(result)
