"""Progress bar of a training, drawn by rich where it is installed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress_bar"]

#: What is shown of the record of an epoch, and under which name.
SHOWN = {"loss": "loss", "validation_loss": "val", "rate": "rate"}


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
    progress = Progress(*columns)
    try:
        progress.start()
    except LiveError:  # rich before 14.1 draws one bar at a time, and another one is being drawn
        yield _show_nothing
        return
    with progress:
        bar, text = progress.add_task(description, total=total, measured=""), _Measured()
        yield lambda record: progress.update(bar, advance=1, measured=text.of(record))


def _show_nothing(record: dict) -> None:
    pass


class _Measured:
    """What stands beside the bar; a validation stays there until the next one."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    def of(self, record: dict) -> str:
        """Return the text after an epoch."""
        measured = {name: record[key] for key, name in SHOWN.items() if record.get(key) is not None}
        self._last.update(measured)
        return " ".join(f"{name} {self._last[name]:.3g}" for name in SHOWN.values() if name in self._last)
