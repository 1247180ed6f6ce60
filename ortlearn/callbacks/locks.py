"""A lock on the folder of a training, released when the process ends."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

__all__ = ["FolderInUse", "RunLock"]

NAME = ".ortlearn.lock"
FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
#: Seconds between attempts, and their number, to read the name of a process that has just acquired a lock.
PAUSE, TRIES = 0.01, 100
#: Byte locked on Windows, after those that other processes read.
LOCKED_BYTE = 1 << 30


class FolderInUse(Exception):
    """Another training holds the lock."""

    def __init__(self, owner: str, process: str):
        super().__init__(owner, process)
        self.owner, self.process = owner, process


class RunLock:
    """A lock on a folder, acquired by the constructor.

    The operating system releases the lock when the process dies. A forked child does not inherit it. The
    name of the owner must not contain spaces.
    """

    _held: ClassVar[set[RunLock]] = set()

    def __init__(self, folder: Path, owner: str):
        self.folder = folder
        self._path = folder / NAME
        while True:
            self._descriptor = self._open()
            try:
                if self._take(owner):
                    break
            except BaseException:
                os.close(self._descriptor)
                raise
            os.close(self._descriptor)  # the previous owner has removed the file
        self._held.add(self)

    def _open(self) -> int:
        try:
            descriptor = os.open(self._path, FLAGS, 0o666)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise _cannot_lock(self.folder, error.errno, f"{NAME} is a symbolic link") from error
            raise _cannot_lock(self.folder, error.errno, error.strerror) from error
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            os.close(descriptor)
            raise _cannot_lock(self.folder, errno.EINVAL, f"{NAME} is a link or a special file")
        return descriptor

    def _take(self, owner: str) -> bool:
        """Lock the file and write the owner; return False if the file was removed meanwhile."""
        try:
            _lock(self._descriptor)
        except BlockingIOError:
            raise FolderInUse(*self._holder()) from None
        except OSError as error:
            raise _cannot_lock(self.folder, error.errno, error.strerror) from error
        if not self._is_current():
            return False
        try:
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, f"{owner} {os.getpid()}".encode())
        except OSError as error:
            self._remove()
            raise _cannot_lock(self.folder, error.errno, error.strerror) from error
        return True

    def _holder(self) -> tuple[str, str]:
        """Return owner and process that hold the lock."""
        for _ in range(TRIES):
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            owner, _, process = os.read(self._descriptor, 200).decode(errors="replace").partition(" ")
            if process:
                return owner, process
            time.sleep(PAUSE)
        return "", "unknown"

    def _is_current(self) -> bool:
        with suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(self._descriptor), os.lstat(self._path))
        return False

    def _remove(self) -> None:
        with suppress(OSError):
            if self._is_current():
                os.unlink(self._path)

    def is_held(self) -> bool:
        """Return whether this process holds the lock."""
        return self in self._held

    def release(self) -> None:
        """Release the lock; a second call, or one in a forked child, does nothing."""
        if not self.is_held():
            return
        self._held.discard(self)
        self._remove()  # before another process can lock it
        os.close(self._descriptor)
        if sys.platform == "win32":  # an open file cannot be removed there
            with suppress(OSError):
                os.unlink(self._path)

    @classmethod
    def _forget(cls) -> None:
        for lock in cls._held:
            os.close(lock._descriptor)
        cls._held.clear()


def _cannot_lock(folder: Path, number: int | None, reason: str | None) -> OSError:
    return OSError(
        number,
        f"Cannot lock the folder {folder}: {reason}. Make it writable, or pass a folder that "
        "is, on a disk with file locks.",
    )


def _lock(descriptor: int) -> None:
    if sys.platform == "win32":
        os.lseek(descriptor, LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(error.errno, error.strerror) from error
        os.lseek(descriptor, 0, os.SEEK_SET)
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=RunLock._forget)
