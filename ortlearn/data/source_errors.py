"""Errors of samples of a source, which name the file and the row group, or the batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..exceptions import SourceError
from .sample_blocks import SampleBlock

__all__ = ["errors_in", "first_fault", "located", "unreadable"]


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


def first_fault(block: SampleBlock, check: Callable[[SampleBlock], Any]) -> Exception | None:
    """Return the error, with its position, of the first part of a block for which a check fails."""
    for part in block.parts:
        try:
            check(part)
        except (ValueError, TypeError) as found:
            return _placed(found, part.where)
    return None


def located(block: SampleBlock, check: Callable[[SampleBlock], Any], error: Exception) -> Exception:
    """Return the error of a failed check, with the position of the first part that fails alone."""
    return first_fault(block, check) or _placed(error, block.where)


def unreadable(what: str, error: Exception, cure: str) -> SourceError:
    """Return the error for a part of a source that cannot be read."""
    return SourceError(f"{what} cannot be read: {str(error).rstrip('.')}. {cure}")
