"""The tensors of a protobuf message, with a check of its text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onnx import TensorProto

__all__ = ["message_tensors"]

#: Fields of type bytes that contain text.
_TEXTS = {"onnx.AttributeProto.s", "onnx.AttributeProto.strings", "onnx.TensorProto.string_data"}


def message_tensors(message: Any) -> Iterator[TensorProto]:
    """Yield the tensors of a message; raise a ValueError for text that is not UTF-8.

    Parsers of protobuf accept such text, and code that reads it later would fail.
    """
    parts: list[Any] = []
    try:
        for field, value in message.ListFields():
            values = [value] if isinstance(value, str | bytes) or hasattr(value, "ListFields") else value
            if field.message_type is not None:
                parts += values
            elif field.type == field.TYPE_STRING or field.full_name in _TEXTS:
                for text in values:
                    text.encode() if isinstance(text, str) else text.decode()
    except UnicodeError as error:
        raise ValueError(f"a {type(message).__name__} with text that is not UTF-8: {error}") from error
    for part in parts:
        if isinstance(part, TensorProto):
            yield part
        yield from message_tensors(part)
