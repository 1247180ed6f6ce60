"""Errors of rows of a source, which name the file and the row group, or the batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..exceptions import SourceError
from .rows import Rows

__all__ = ["errors_in", "first_fault", "located"]


@contextmanager
def errors_in(where: str) -> Iterator[None]:
    """Name the position in the source in errors."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise _placed(error, where) from error


def _placed(error: Exception, where: str) -> Exception:
    """Return an error that names the position in the source, if it is known."""
    if not where or isinstance(error, SourceError):
        return error
    return SourceError(f"In {where} of the source: {error}")


def first_fault(rows: Rows, check: Callable[[Rows], Any]) -> Exception | None:
    """Return the error, with its position, of the first part of rows for which a check fails."""
    for part in rows.parts:
        try:
            check(part)
        except (ValueError, TypeError) as found:
            return _placed(found, part.where)
    return None


def located(rows: Rows, check: Callable[[Rows], Any], error: Exception) -> Exception:
    """Return the error of rows that failed a check, with the position of the first part that fails alone."""
    return first_fault(rows, check) or _placed(error, rows.where)
