"""Results as JSON, and as tables of text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["number", "table", "to_json"]


def to_json(result: Any) -> str:
    """Return a result as JSON; numbers that are not finite are null."""
    return json.dumps(_plain(result), indent=2, allow_nan=False)


def _plain(value: Any) -> Any:
    """Return a value in types of JSON."""
    if isinstance(value, Mapping):
        return {str(_plain(key)): _plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):  # arrays and numbers of numpy
        return _plain(value.tolist())
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def number(value: float | None, sign: bool = False) -> str:
    """Return a number with four significant digits, or a dash if there is none."""
    if value is None or math.isnan(value):
        return "-"
    return f"{value:+.4g}" if sign else f"{value:.4g}"


def table(rows: Sequence[Sequence[object]], indent: str = "") -> str:
    """Return rows of cells, aligned; the first row has the titles."""
    lines = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(indent + "  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
