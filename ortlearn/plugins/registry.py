"""Installed plugins, and objects that are registered as plugins in a process."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..exceptions import PluginError
from .discovery import find
from .groups import LABELS, check_group
from .loading import Key, Scan
from .suggestions import unknown_plugin

__all__ = [
    "LOCK",
    "REGISTERED",
    "check_key",
    "installed",
    "known_names",
    "refresh",
    "register",
    "registered",
    "temporary",
    "unregister",
    "version",
]

#: Shown as the distribution of an object that was passed to ``register``.
REGISTERED = "(registered)"
#: Guards the registered objects and the scan; never held during an import.
LOCK = threading.RLock()
#: Registered objects, which hide installed plugins of the same name.
registered: dict[Key, Any] = {}
_current: Scan | None = None
_version = 0


def register(group: str, name: str, obj: Any, overwrite: bool = False) -> None:
    """Register an object under the name of a plugin, in this process only.

    Intended for notebooks and tests. Other processes (``n_jobs=2``) do not have the name: pass the object
    itself, or declare it as an entry point of an installed distribution.

    Parameters
    ----------
    group : str
        Group, such as ``"ortlearn.losses"``.
    name : str
        Name of the plugin.
    obj : object
        Plugin.
    overwrite : bool, default=False
        Whether the object may hide another plugin of that name.

    Raises
    ------
    PluginError
        If the name is taken and ``overwrite`` is False, if it is not a string or empty, or if there
        is no such group.

    Examples
    --------
    >>> from ortlearn import plugins
    >>> class MyLoss:
    ...     "A loss of mine."
    >>> plugins.register(plugins.LOSSES, "mine", MyLoss)
    >>> plugins.get(plugins.LOSSES, "mine") is MyLoss
    True
    >>> plugins.unregister(plugins.LOSSES, "mine")
    """
    key = check_key(group, name)
    with LOCK:
        owners = [REGISTERED] if key in registered else [info.owner for info in installed().matching(key)]
        if owners and not overwrite:
            raise PluginError(
                f"The {LABELS[group]} {name!r} already exists: {', '.join(owners)}. "
                "Choose another name, or pass overwrite=True to hide it in this process."
            )
        registered[key] = obj
        _count_change()


def unregister(group: str, name: str) -> None:
    """Undo ``register``; an installed plugin that was hidden is visible again.

    Parameters
    ----------
    group : str
        Group, such as ``"ortlearn.losses"``.
    name : str
        Name that was passed to ``register``.

    Raises
    ------
    UnknownPluginError
        If nothing has that name.
    PluginError
        If the name belongs to an installed distribution, or if there is no such group.

    Examples
    --------
    >>> from ortlearn import plugins
    >>> plugins.register(plugins.PENALTIES, "mine", object)
    >>> plugins.unregister(plugins.PENALTIES, "mine")
    >>> "mine" in [info.name for info in plugins.list_plugins(plugins.PENALTIES)]
    False
    """
    key = check_key(group, name)
    with LOCK:
        if key in registered:
            del registered[key]
            _count_change()
            return
        owners = [info.owner for info in installed().matching(key)]
    if not owners:
        raise unknown_plugin(key, known_names(group))
    raise PluginError(
        f"The {LABELS[group]} {name!r} was not registered: it comes from {', '.join(owners)}. "
        "Uninstall that distribution, or hide the plugin with register(..., overwrite=True)."
    )


@contextmanager
def temporary(group: str, name: str, obj: Any) -> Iterator[Any]:
    """Register an object under the name of a plugin within a ``with`` block.

    Parameters
    ----------
    group : str
        Group, such as ``"ortlearn.losses"``.
    name : str
        Name of the plugin, in all threads of the process.
    obj : object
        Plugin.

    Yields
    ------
    object
        The plugin.

    Raises
    ------
    PluginError
        If there is no such group, or if the name is not a string or empty.

    Examples
    --------
    >>> from ortlearn import plugins
    >>> with plugins.temporary(plugins.LOSSES, "squared_error", dict):
    ...     plugins.get(plugins.LOSSES, "squared_error")
    <class 'dict'>
    """
    key = check_key(group, name)
    with LOCK:
        before = {key: registered[key]} if key in registered else {}
        registered[key] = obj
        _count_change()
    try:
        yield obj
    finally:
        with LOCK:
            registered.pop(key, None)
            registered.update(before)
            _count_change()


def refresh() -> None:
    """Read the metadata of distributions again; registered objects are kept.

    Examples
    --------
    >>> from ortlearn import plugins
    >>> plugins.refresh()
    """
    global _current
    importlib.invalidate_caches()
    with LOCK:
        _current = None
        _count_change()


def version() -> int:
    """Return a number that changes with every registration and refresh.

    A cache that depends on all plugins of a group is valid as long as the number is the same.

    Returns
    -------
    int
        Number of changes in this process.

    Examples
    --------
    >>> from ortlearn import plugins
    >>> before = plugins.version()
    >>> with plugins.temporary(plugins.LOSSES, "mine", dict):
    ...     plugins.version() == before
    False
    """
    return _version


def _count_change() -> None:
    global _version
    _version += 1


def installed() -> Scan:
    """Return the installed plugins; the caller holds the lock."""
    global _current
    if _current is None:
        _current = Scan(find())
    return _current


def check_key(group: str, name: str) -> Key:
    """Return group and name, or raise an error if one of them is invalid."""
    check_group(group)
    if not isinstance(name, str) or not name:
        raise PluginError(f"The name of a {LABELS[group]} must be a non-empty string, got {name!r}.")
    return group, name


def known_names(group: str) -> list[str]:
    """Return the names in a group, sorted."""
    with LOCK:
        known = {info.name for info in installed().infos if info.group == group and info.value}
        known |= {name for owner, name in registered if owner == group}
    return sorted(known)
