"""Progress of a training: a bar, drawn by rich where it is installed, or the line of a stream."""

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
    """Show a bar while epochs pass, or the line of a stream, which stays open."""
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
            "verbose needs rich for its progress bar: pip install 'ortlearn[progress]'.", stacklevel=3
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
    except LiveError:  # rich before 14.1 draws one bar at a time, and another one is being drawn
        yield _show_nothing
        return
    with progress:
        bar, text = progress.add_task(description, total=total, measured=""), MeasuredText()
        yield lambda record: progress.update(bar, advance=1, measured=text.of(record))


def _show_nothing(record: dict) -> None:
    pass
