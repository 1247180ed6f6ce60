"""Output files, which are checked before the work begins and written completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ..graphs.files import write_atomically

__all__ = ["OutputFile"]


@dataclass(frozen=True)
class OutputFile:
    """File that a command writes; without a path nothing is written."""

    path: str | None

    @classmethod
    def checked(cls, path: str | None, suffixes: Sequence[str], force: bool, option: str) -> OutputFile:
        """Return the file, after checks of its name and folder; it must not exist without ``force``."""
        if path is None:
            return cls(None)
        place = Path(path)
        if place.suffix.lower() not in suffixes:
            raise ValueError(f"{option} {path}: the name must end in {' or '.join(suffixes)}.")
        if not place.parent.is_dir():
            raise ValueError(f"{option} {path}: there is no folder {str(place.parent)!r}.")
        if not os.access(place.parent, os.W_OK):
            raise ValueError(f"{option} {path}: the folder {str(place.parent)!r} cannot be written to.")
        if place.is_dir():
            raise ValueError(f"{option} {path} is a folder.")
        if place.exists() and not force:
            raise ValueError(f"{option} {path} exists. Choose another name, or replace it with --force.")
        return cls(path)

    @property
    def suffix(self) -> str:
        """End of the name, in lower case."""
        return "" if self.path is None else Path(self.path).suffix.lower()

    def write(self, content: bytes) -> None:
        """Write the file under a temporary name, then rename it."""
        assert self.path is not None
        write_atomically(self.path, lambda file: file.write(content))

    def write_frames(self, frames: Iterable[Any]) -> None:
        """Write the rows of frames as csv or parquet, as they come."""
        assert self.path is not None
        if self.suffix == ".parquet":
            from ..evaluation.arrow_files import write_parquet as write
        else:
            write = _write_csv
        write_atomically(self.path, lambda file: write(file, frames))


def _write_csv(file: BinaryIO, frames: Iterable[Any]) -> None:
    for number, frame in enumerate(frames):
        file.write(frame.to_csv(index=False, header=number == 0).encode())
