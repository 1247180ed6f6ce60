"""Load plugins on first use, list them, and register objects in a process."""

from __future__ import annotations

import importlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..exceptions import PluginError, UnknownPluginError
from .discovery import OK, PluginInfo, find
from .groups import GROUPS, LABELS, LEARNING_RATES, check_group
from .loading import Key, Scan, summary_of
from .suggestions import suggestion

__all__ = ["get", "has", "list_plugins", "refresh", "register", "temporary", "unregister", "version"]

#: Shown as the distribution of an object that was passed to ``register``.
REGISTERED = "(registered)"

#: Text of a number.
NUMBER = r"[-+]?\d*\.?\d+(e[-+]?\d+)?"

# Guards these two; never held during an import.
_LOCK = threading.RLock()
_registered: dict[Key, Any] = {}
_current: Scan | None = None
_version = 0


def get(group: str, name: str) -> Any:
    """Return a plugin, importing it the first time.

    Parameters
    ----------
    group : str
        Group, such as ``"ortlearn.losses"``.
    name : str
        Name; case is ignored, unless several names differ only by case.

    Returns
    -------
    object
        Object that the plugin declares: a class for losses, penalties and learning rates.

    Raises
    ------
    UnknownPluginError
        If the name is unknown; the message lists the known names.
    PluginError
        If the plugin cannot be imported, if two distributions declare that name, if several names
        differ from it only by case, or if there is no such group.

    Examples
    --------
    >>> from ortlearn import plugins
    >>> plugins.get(plugins.LOSSES, "squared_error").__name__
    'SquaredErrorLoss'
    """
    key = _check_key(group, name)
    with _LOCK:
        key = _as_declared(key)
        if key in _registered:
            return _registered[key]
        scan = _scan()
    return scan.load(_unique_info(scan, key))


def has(group: str, name: str) -> bool:
    """Return whether a plugin with exactly that name is declared or registered; it may be broken.

    Parameters
    ----------
    group : str
        Group, such as ``"ortlearn.losses"``.
    name : str
        Name, with its case: names of classes, which model definitions have, may differ only by case.

    Returns
    -------
    bool
        Whether there is one.

    Raises
    ------
    PluginError
        If there is no such group.

    Examples
    --------
    >>> from ortlearn import plugins
    >>> plugins.has(plugins.LOSSES, "huber"), plugins.has(plugins.LOSSES, "nothing")
    (True, False)
    """
    key = _check_key(group, name)
    with _LOCK:
        return key in _registered or bool(_scan().matching(key))


def list_plugins(group: str | None = None, *, load: bool = False) -> list[PluginInfo]:
    """List plugins and their status; broken plugins do not make it fail.

    Parameters
    ----------
    group : str or None, default=None
        One group, or all of them.
    load : bool, default=False
        Whether to import every plugin, which determines its status and its summary.

    Returns
    -------
    list of PluginInfo
        Sorted by group and name. Registered objects replace the plugins that they hide.

    Raises
    ------
    PluginError
        If there is no such group.

    Examples
    --------
    >>> from ortlearn import plugins
    >>> for info in plugins.list_plugins(plugins.LOSSES):
    ...     if info.name == "log_loss":
    ...         print(info.distribution, info.value)
    ortlearn ortlearn.losses.log_loss:LogLoss
    """
    groups = GROUPS if group is None else (check_group(group),)
    with _LOCK:
        scan = _scan()
        hidden = dict(_registered)
    infos = [info for info in scan.infos if info.group in groups and info.key not in hidden]
    if load:
        for info in infos:
            scan.try_to_load(info)
    infos = [scan.with_status(info) for info in infos]
    infos += [_describe(key, obj) for key, obj in hidden.items() if key[0] in groups]
    return sorted(infos, key=lambda info: (GROUPS.index(info.group), info.name, info.owner))


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
    key = _check_key(group, name)
    with _LOCK:
        owners = [REGISTERED] if key in _registered else [info.owner for info in _scan().matching(key)]
        if owners and not overwrite:
            raise PluginError(
                f"The {LABELS[group]} {name!r} already exists: {', '.join(owners)}. "
                "Choose another name, or pass overwrite=True to hide it in this process."
            )
        _registered[key] = obj
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
    key = _check_key(group, name)
    with _LOCK:
        if key in _registered:
            del _registered[key]
            _count_change()
            return
        owners = [info.owner for info in _scan().matching(key)]
    if not owners:
        raise _unknown(key)
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
    key = _check_key(group, name)
    with _LOCK:
        before = {key: _registered[key]} if key in _registered else {}
        _registered[key] = obj
        _count_change()
    try:
        yield obj
    finally:
        with _LOCK:
            _registered.pop(key, None)
            _registered.update(before)
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
    with _LOCK:
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


def _scan() -> Scan:
    # The caller holds the lock.
    global _current
    if _current is None:
        _current = Scan(find())
    return _current


def _check_key(group: str, name: str) -> Key:
    check_group(group)
    if not isinstance(name, str) or not name:
        raise PluginError(f"The name of a {LABELS[group]} must be a non-empty string, got {name!r}.")
    return group, name


def _unique_info(scan: Scan, key: Key) -> PluginInfo:
    """Return the record of a name, or raise an error unless it is declared once."""
    infos = scan.matching(key)
    if not infos:
        raise _unknown(key)
    if len(infos) > 1:
        where = " and ".join(f"{info.owner} ({info.value})" for info in infos)
        raise PluginError(
            f"The {LABELS[key[0]]} {key[1]!r} is declared more than once: by {where}. "
            "Uninstall one of them, or choose one with ortlearn.plugins.register(..., overwrite=True)."
        )
    return infos[0]


def known_names(group: str) -> list[str]:
    """Return the names in a group, sorted."""
    with _LOCK:
        known = {info.name for info in _scan().infos if info.group == group and info.value}
        known |= {registered for owner, registered in _registered if owner == group}
    return sorted(known)


def _as_declared(key: Key) -> Key:
    """Return a key as it was declared: the exact name, or the one that differs only by case."""
    group, name = key
    if key in _registered or _scan().matching(key):
        return key
    folded = name.casefold()
    names = [known for known in known_names(group) if known.casefold() == folded]
    if len(names) > 1:
        found = " or ".join(map(repr, names))
        raise PluginError(
            f"The {LABELS[group]} {name!r} could be {found}, which differ only by case: "
            "use one of these names exactly."
        )
    return (group, names[0]) if names else key


def _unknown(key: Key) -> UnknownPluginError:
    group, name = key
    names = known_names(group)
    meant = suggestion(group, name, names)
    known = f"Known names: {', '.join(names) or 'none'}."
    if group == LEARNING_RATES and re.fullmatch(NUMBER, name):
        return UnknownPluginError(f"No learning rate is named {name!r}. Pass a number: learning_rate={name}.")
    hint = (
        f"Did you mean {meant!r}? {known}"
        if meant
        else f"{known} Install the distribution that declares it and call ortlearn.plugins.refresh()."
    )
    return UnknownPluginError(f"No {LABELS[group]} is named {name!r}. {hint}")


def _describe(key: Key, obj: Any) -> PluginInfo:
    kind = obj if hasattr(obj, "__qualname__") else type(obj)
    value = f"{kind.__module__}:{kind.__qualname__}"
    return PluginInfo(*key, value, REGISTERED, status=OK, summary=summary_of(obj))
