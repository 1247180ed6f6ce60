"""Progress of a training: a bar, if rich is installed, or a line for calls of partial_fit."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .stream_progress import MeasuredText, close_stream, interrupt_line, show_stream

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(
    total: int | None, description: str, enabled: bool, stream: Any = None
) -> Iterator[Callable[[dict], None]]:
    """Show a progress bar, or the line of a stream, which stays open."""
    if stream is not None and enabled:
        try:
            yield lambda record: show_stream(stream, description, record)
        except BaseException:
            interrupt_line()
            raise
        return
    close_stream(stream)
    if not enabled:
        yield _show_nothing
        return
    try:
        from rich.errors import LiveError
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        warnings.warn(
            "verbose requires rich to show a progress bar: pip install 'ortlearn[progress]'.", stacklevel=3
        )
        yield _show_nothing
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[measured]}"),
        TimeRemainingColumn(),
    )
    interrupt_line()
    progress = Progress(*columns)
    try:
        progress.start()
    except LiveError:  # rich before 14.1 supports one bar at a time
        yield _show_nothing
        return
    with progress:
        bar, text = progress.add_task(description, total=total, measured=""), MeasuredText()
        yield lambda record: progress.update(bar, advance=1, measured=text.of(record))


def _show_nothing(record: dict) -> None:
    pass
