"""Progress bar of a training, drawn by rich where it is installed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(total: int, description: str, enabled: bool) -> Iterator[Callable[[dict], None]]:
    """Show a bar while epochs pass.

    Parameters
    ----------
    total : int
        Number of epochs.
    description : str
        Shown before the bar.
    enabled : bool
        Whether to show anything.

    Yields
    ------
    callable
        To call with the record of each epoch.
    """
    if not enabled:
        yield lambda record: None
        return
    try:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        warnings.warn(
            "verbose needs rich for its progress bar: pip install 'ortlearn[progress]'.", stacklevel=3
        )
        yield lambda record: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.6g}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns) as progress:
        bar = progress.add_task(description, total=total, loss=float("nan"))
        yield lambda record: progress.update(bar, advance=1, loss=record["loss"])
