"""Import plugins once, and keep the result."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from dataclasses import replace
from importlib import metadata
from typing import Any

from ..exceptions import PluginError
from .discovery import BROKEN, OK, PluginInfo
from .groups import LABELS

__all__ = ["Key", "Scan", "summary_of"]

Key = tuple[str, str]


class Scan:
    """Plugins found in the metadata, and those that were loaded since."""

    def __init__(self, infos: Iterable[PluginInfo]):
        self.infos = tuple(infos)
        # Records without a value belong to unreadable metadata, and have no name.
        self._by_key: dict[Key, list[PluginInfo]] = {}
        for info in self.infos:
            if info.value:
                self._by_key.setdefault(info.key, []).append(info)
        self._loaded: dict[Key, Any] = {}
        self._failures: dict[Key, BaseException] = {}
        # Never held during an import: modules may load plugins while they are imported, in any thread,
        # which would be a deadlock.
        self._lock = threading.Lock()

    def matching(self, key: Key) -> list[PluginInfo]:
        """Return the records of a name; several if it is declared more than once."""
        return self._by_key.get(key, [])

    def load(self, info: PluginInfo) -> Any:
        """Return a plugin, which is imported once, or raise the error of its import."""
        self.try_to_load(info)
        with self._lock:
            if info.key in self._loaded:
                return self._loaded[info.key]
            error = self._failures[info.key]
        raise PluginError(
            f"The {LABELS[info.group]} {info.name!r} of {info.owner} ({info.value}) cannot be loaded: "
            f"{_one_line(error)}. Repair or uninstall that distribution and call ortlearn.plugins.refresh(); "
            "other plugins are not affected."
        ) from error

    def try_to_load(self, info: PluginInfo) -> None:
        """Import a plugin unless this was tried before, and record failures."""
        with self._lock:
            if info.broken or info.key in self._loaded or info.key in self._failures:
                return
        point = metadata.EntryPoint(name=info.name, value=info.value, group=info.group)
        try:
            obj = point.load()
        except (Exception, SystemExit) as error:  # modules may exit during their import
            with self._lock:
                self._failures.setdefault(info.key, error)
            return
        with self._lock:
            # All threads get the object of the first one.
            self._loaded.setdefault(info.key, obj)

    def _summary(self, info: PluginInfo) -> str:
        """Return the summary of a plugin, from its own docstring or that of its module."""
        obj = self._loaded[info.key]
        shared = not isinstance(obj, type) and getattr(obj, "__doc__", None) is type(obj).__doc__
        return (summary_of(_module_of(info.value)) if shared else "") or summary_of(obj)

    def with_status(self, info: PluginInfo) -> PluginInfo:
        """Return a record with the status of the plugin, if loading was tried."""
        with self._lock:
            if info.key in self._loaded:
                return replace(info, status=OK, summary=self._summary(info))
            if info.key in self._failures:
                return replace(info, status=BROKEN + _one_line(self._failures[info.key]))
        return info


def _module_of(value: str) -> Any:
    return sys.modules.get(value.partition(":")[0])


def summary_of(obj: Any) -> str:
    """Return the first line of an object's own docstring."""
    try:
        lines = (obj.__doc__ or "").strip().splitlines()
    except Exception:  # __doc__ of third-party objects may raise any error
        return ""
    return lines[0].strip() if lines else ""


def _one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ")
