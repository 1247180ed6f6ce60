"""The data files of a path; streams, such as the standard input, are stored in temporary files."""

from __future__ import annotations

import glob
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..data.temporary_files import TemporaryFile
from .messages import check_installed, one_line

__all__ = ["DataFile", "data_files", "name_of", "read_errors"]

EXTRA = "cli"
#: Kinds of data files by their suffixes.
SUFFIXES = {"csv": (".csv", ".csv.gz"), "parquet": (".parquet", ".pq"), "Arrow": (".arrow", ".feather")}
KNOWN = tuple(suffix for suffixes in SUFFIXES.values() for suffix in suffixes)
COMPRESSED = ".gz"
#: Kind of a stream by its first bytes; csv otherwise.
BEGINNINGS = {b"PAR1": "parquet", b"ARROW1": "Arrow", b"\xff\xff\xff\xff": "Arrow stream"}
GZIP = b"\x1f\x8b"
STANDARD_INPUT = ("-", "/dev/stdin")


@dataclass(frozen=True)
class DataFile:
    """A file to read.

    It has its name in messages, its path, its kind, one of ``SUFFIXES``, whether gzip compresses it, and the
    temporary file in which a stream is stored.
    """

    name: str
    path: str
    kind: str
    compressed: bool = False
    stored: TemporaryFile | None = None


def name_of(path: str) -> str:
    """Return the name of a path in messages."""
    return "standard input" if path == "-" else path


def data_files(path: str) -> list[DataFile]:
    """Return the files that a path means: itself, all data files in a folder, or those of a pattern."""
    check_installed("pandas", EXTRA, "data files")
    if _is_stream(path):
        return [_stored(path)]
    found = [path]
    if path and Path(path).is_dir():
        inside = (each for each in Path(path).rglob("*") if not each.name.startswith((".", "_")))
        found = sorted(str(each) for each in inside if each.name.lower().endswith(KNOWN))
    elif glob.has_magic(path) and not Path(path).exists():
        found = sorted(glob.glob(path, recursive=True))
    names = f"{', '.join(SUFFIXES['csv'])}, {SUFFIXES['parquet'][0]} or {SUFFIXES['Arrow'][0]}"
    if not found:
        kind = "folder" if Path(path).is_dir() else "pattern"
        raise FileNotFoundError(2, f"No {names} file in this {kind}", path)
    for name in found:
        if not name.lower().endswith(KNOWN):
            raise ValueError(
                f"{name or repr(name)}: data must be a {names} file, a folder of them, a pattern such as "
                "'rows-*.csv', or - for the standard input."
            )
    if any(not name.lower().endswith(SUFFIXES["csv"]) for name in found):
        check_installed("pyarrow", EXTRA, "parquet and Arrow files")
    if not Path(found[0]).exists():
        raise FileNotFoundError(2, "No such file", path)
    return [_file(name) for name in found]


def _file(path: str) -> DataFile:
    kind = next(kind for kind, suffixes in SUFFIXES.items() if path.lower().endswith(suffixes))
    if kind == "Arrow":
        with open(path, "rb") as file:
            is_stream = BEGINNINGS.get(file.read(4)) == "Arrow stream"
        if is_stream:
            return _of_arrow_stream(path, path)
    return DataFile(path, path, kind, path.lower().endswith(COMPRESSED))


def _is_stream(path: str) -> bool:
    """Return whether a path can be read only once."""
    return path in STANDARD_INPUT or path.startswith("/dev/fd/") or Path(path).is_fifo()


def _stored(path: str) -> DataFile:
    """Return a stream as a temporary file."""
    opened: Any = nullcontext(sys.stdin.buffer) if path in STANDARD_INPUT else open(path, "rb")
    with opened as stream:
        first = stream.read(max(map(len, BEGINNINGS)))
        kinds = (kind for beginning, kind in BEGINNINGS.items() if first.startswith(beginning))
        kind = next(kinds, "csv")
        if kind != "csv":
            check_installed("pyarrow", EXTRA, "parquet and Arrow files")
        stored, name = TemporaryFile(), name_of(path)
        with open(stored.path, "wb") as file:
            file.write(first)
            shutil.copyfileobj(stream, file)
    if kind == "Arrow stream":
        return _of_arrow_stream(name, stored.path)
    return DataFile(name, stored.path, kind, first.startswith(GZIP), stored)


def _of_arrow_stream(name: str, path: str) -> DataFile:
    """Return a file in Arrow's format for streams as one that can be read in any order."""
    from .arrow_files import write_as_file

    stored = TemporaryFile()
    with open(stored.path, "wb") as file, read_errors(DataFile(name, path, "Arrow")):
        write_as_file(path, file)
    return DataFile(name, stored.path, "Arrow", stored=stored)


@contextmanager
def read_errors(file: DataFile) -> Iterator[None]:
    """Name the file in errors of pandas and pyarrow."""
    from pandas.errors import EmptyDataError

    try:
        yield
    except EmptyDataError:
        raise ValueError(f"{file.name} is empty.") from None
    except (OSError, ValueError, EOFError) as error:
        named = isinstance(error, OSError) and error.filename is not None
        if named or str(error).startswith(file.name):
            raise
        kind = "an Arrow file" if file.kind == "Arrow" else file.kind
        advice = ". Save the file as UTF-8." if isinstance(error, UnicodeError) else ""
        raise ValueError(f"{file.name} cannot be read as {kind}: {one_line(error)}{advice}") from error
