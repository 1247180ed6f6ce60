"""A folder with the versions of a model, one of which is in use.

A version has the files ``model-0001.onnx``, which servers read, ``model-0001.skops`` with the scikit-learn
model if it can be written, from which the next adaptation starts, and the cards ``card-0001.html`` and
``card-0001.md``. Its record ``version-0001.json`` is written last: without it, the other files are the rest
of an interrupted writing. The first line of the file ``current`` is the name of the model file in use, the
next lines are those before; it is replaced by a rename: a reader sees the old version or the new one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from threading import get_ident
from typing import Any

from .._version import __version__
from ..callbacks.locks import FolderInUse, RunLock
from ..evaluation.model_files import load_model
from ..evaluation.predictions import Model
from ..exceptions import SavedFileError
from ..graphs.files import remove_hidden_files, write_atomically
from ..saving.regular_files import file_size, open_regular
from .interface import check_interface

__all__ = ["ModelFolder"]

CURRENT = "current"
RECORD = re.compile(r"version-(\d{4})\.json")
MODEL = re.compile(r"model-(\d{4})\.onnx")
#: Largest size of a record and of the file that names the current version.
MAX_BYTES = 2**20
#: Largest number of a version.
LAST = 9999


class ModelFolder:
    """A folder with the versions of a model.

    Parameters
    ----------
    path : str or os.PathLike
        Folder; it is created with the first version.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn import OrtGradientOptimizer
    >>> from ortlearn.lifecycle import ModelFolder
    >>> trainer = OrtGradientOptimizer(Ridge()).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> folder = ModelFolder(mkdtemp())
    >>> folder.add(trainer.get_trained_onnx().SerializeToString())
    1
    >>> folder.switch(1)
    >>> folder.current_path.name
    'model-0001.onnx'
    """

    def __init__(self, path: str | os.PathLike):
        self.path = Path(path)
        self._holder: int | None = None  # thread that holds the lock

    @property
    def current(self) -> int | None:
        """Number of the version in use; None before the first ``switch``."""
        earlier = self._order()
        return earlier[0] if earlier else None

    @property
    def current_path(self) -> Path:
        """ONNX file of the version in use."""
        return self._file("model", self._known_current(), "onnx")

    def history(self) -> list[dict[str, Any]]:
        """Return the records of all versions.

        Returns
        -------
        list of dict
            The first version first, each with ``number`` and ``current``.
        """
        current = self.current
        return [
            {"number": number, "current": number == current, **self._record(number)}
            for number in self._numbers()
        ]

    def model(self, trusted: Any = ()) -> Model:
        """Return the model in use.

        Parameters
        ----------
        trusted : sequence of str, default=()
            Types that a scikit-learn model may contain besides those that skops trusts.

        Returns
        -------
        Model
            The scikit-learn model if the folder has it, otherwise that of the ONNX file.

        Raises
        ------
        SavedFileError
            If a file is not the one that was added.
        """
        number = self._known_current()
        record, found = self._record(number), None
        for suffix in ("onnx", "skops"):
            path, digest = self._file("model", number, suffix), record["digests"].get(suffix)
            if digest is not None:
                _check_digest(path, digest)
                found = path
        if found is None:
            raise SavedFileError(f"{self.path} has no file of version {number}: its record names none.")
        return load_model(str(found), trusted)

    def add(
        self,
        onnx: bytes,
        skops: bytes | None = None,
        cards: Mapping[str, str] | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> int:
        """Add a version, which is not in use yet.

        Parameters
        ----------
        onnx, skops : bytes
            Contents of the files.
        cards : mapping of {"html", "md"} to str, default=None
            Texts of the card.
        about : mapping, default=None
            Further entries of the record, as JSON has them.

        Returns
        -------
        int
            Number of the version.

        Raises
        ------
        ValueError
            If another process changes the folder, or if inputs, outputs or classes differ from those of the
            version in use.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with self.locked():
            remove_hidden_files(self.path)
            if self.current is not None:
                check_interface(self.current_path, onnx)
            number = max(self._numbers(), default=0) + 1
            if number > LAST:
                raise ValueError(f"{self.path} has {LAST} versions: use another folder.")
            contents = {"onnx": onnx, **({} if skops is None else {"skops": skops})}
            for suffix, content in contents.items():
                _write(self._file("model", number, suffix), content)
            for suffix, text in (cards or {}).items():
                _write(self._file("card", number, suffix), text.encode())
            record = {
                "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
                "version": __version__,
                "parent": self.current,
                "digests": {
                    suffix: hashlib.sha256(content).hexdigest() for suffix, content in contents.items()
                },
                "bytes": len(onnx),
                **(about or {}),
            }
            text = json.dumps(record, indent=1, allow_nan=False)
            _write(self._file("version", number, "json"), text.encode())
        return number

    def switch(self, number: int) -> None:
        """Put a version into use.

        Parameters
        ----------
        number : int
            Version.

        Raises
        ------
        ValueError
            If there is no such version, or another process changes the folder.
        SavedFileError
            If a file of the version is damaged; the version in use stays.
        """
        if number not in self._numbers():
            raise ValueError(f"{self.path} has no version {number}, but {self._numbers()}.")
        with self.locked():
            earlier = self._order()
            if earlier[:1] != [number]:
                self._write_order([number, *earlier])

    def rollback(self) -> int:
        """Put the version into use that was in use before.

        Returns
        -------
        int
            Its number.

        Raises
        ------
        ValueError
            If there is none.
        """
        with self.locked():
            earlier = self._order()[1:]
            if not earlier:
                raise ValueError(f"{self.path}: no version was in use before the present one.")
            self._write_order(earlier)
        return earlier[0]

    def _known_current(self) -> int:
        if self.current is None:
            raise ValueError(f"{self.path} has no version in use: add one, and switch to it.")
        return self.current

    def _file(self, what: str, number: int, suffix: str) -> Path:
        return self.path / f"{what}-{number:04d}.{suffix}"

    def _numbers(self) -> list[int]:
        """Return the numbers of the versions that are complete."""
        if not self.path.is_dir():
            return []
        found = (RECORD.fullmatch(name) for name in os.listdir(self.path))
        return sorted(int(match[1]) for match in found if match)

    def _record(self, number: int) -> dict[str, Any]:
        path = self._file("version", number, "json")
        try:
            record = json.loads(_text(path))
            digests = record["digests"]
            fine = isinstance(digests, dict) and all(isinstance(text, str) for text in digests.values())
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise SavedFileError(f"{path} is damaged: {type(error).__name__}.") from error
        if not fine:
            raise SavedFileError(f"{path} is damaged: its digests are {digests!r}.")
        return record

    def _order(self) -> list[int]:
        """Return the number of the version in use, and of those before."""
        path = self.path / CURRENT
        try:
            lines = _text(path).split()
        except FileNotFoundError:
            return []
        found = [MODEL.fullmatch(line) for line in lines]
        if not all(found):
            raise SavedFileError(f"{path} is damaged: its lines must be names such as model-0001.onnx.")
        return [int(match[1]) for match in found if match]

    def _write_order(self, numbers: list[int]) -> None:
        for suffix, digest in self._record(numbers[0])["digests"].items():
            _check_digest(self._file("model", numbers[0], suffix), digest)
        text = "".join(f"model-{number:04d}.onnx\n" for number in numbers)
        _write(self.path / CURRENT, text.encode())

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes and threads from changing the folder; methods in the block may do so.

        Yields
        ------
        None
            The block of a ``with`` statement runs once the folder is locked.

        Raises
        ------
        ValueError
            If another process changes the folder; the message has its number.
        """
        if self._holder == get_ident():
            yield
            return
        if not self.path.is_dir():
            raise FileNotFoundError(2, "No such folder", str(self.path))
        try:
            lock = RunLock(self.path, "adaptation")
        except FolderInUse as error:
            raise ValueError(
                f"{self.path} is being changed by process {error.process}: wait until it has ended."
            ) from None
        self._holder = get_ident()
        try:
            yield
        finally:
            self._holder = None
            lock.release()


def _write(path: Path, content: bytes) -> None:
    write_atomically(path, lambda file: file.write(content))


def _text(path: Path) -> str:
    """Return the text of a small regular file."""
    with open_regular(path) as file:
        if file_size(file) > MAX_BYTES:
            raise SavedFileError(f"{path} has more than {MAX_BYTES} bytes: it is damaged.")
        return file.read().decode("utf-8", errors="replace")


def _check_digest(path: Path, digest: str) -> None:
    """Raise an error if a file is not the one that was added."""
    found = hashlib.sha256()
    with open_regular(path) as file:
        while block := file.read(2**20):
            found.update(block)
    if found.hexdigest() != digest:
        raise SavedFileError(f"{path} is not the file that was added: it is damaged, or was replaced.")
