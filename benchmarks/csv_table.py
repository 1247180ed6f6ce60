"""Long tables of pages: a CSV file beside the page, with the name of the page."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

__all__ = ["write_beside"]


def write_beside(page: Path, titles: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    """Write a table to the file of a page with the suffix ``.csv``, and return its path."""
    path = page.with_suffix(".csv")
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([titles, *rows])
    return path
