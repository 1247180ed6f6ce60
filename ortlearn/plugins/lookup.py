"""Find plugins by name, load them on first use, and list them."""

from __future__ import annotations

from typing import Any

from ..exceptions import PluginError
from .discovery import OK, PluginInfo
from .groups import GROUPS, LABELS, check_group
from .loading import Key, Scan, summary_of
from .registry import LOCK, REGISTERED, check_key, installed, known_names, registered
from .suggestions import unknown_plugin

__all__ = ["get", "has", "list_plugins"]


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
    key = check_key(group, name)
    with LOCK:
        key = _as_declared(key)
        if key in registered:
            return registered[key]
        scan = installed()
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
    key = check_key(group, name)
    with LOCK:
        return key in registered or bool(installed().matching(key))


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
    with LOCK:
        scan = installed()
        hidden = dict(registered)
    infos = [info for info in scan.infos if info.group in groups and info.key not in hidden]
    if load:
        for info in infos:
            scan.try_to_load(info)
    infos = [scan.with_status(info) for info in infos]
    infos += [_describe(key, obj) for key, obj in hidden.items() if key[0] in groups]
    return sorted(infos, key=lambda info: (GROUPS.index(info.group), info.name, info.owner))


def _unique_info(scan: Scan, key: Key) -> PluginInfo:
    """Return the record of a name, or raise an error unless it is declared once."""
    infos = scan.matching(key)
    if not infos:
        raise unknown_plugin(key, known_names(key[0]))
    if len(infos) > 1:
        where = " and ".join(f"{info.owner} ({info.value})" for info in infos)
        raise PluginError(
            f"The {LABELS[key[0]]} {key[1]!r} is declared more than once: by {where}. "
            "Uninstall one of them, or choose one with ortlearn.plugins.register(..., overwrite=True)."
        )
    return infos[0]


def _as_declared(key: Key) -> Key:
    """Return a key as it was declared: the exact name, or the one that differs only by case."""
    group, name = key
    if key in registered or installed().matching(key):
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


def _describe(key: Key, obj: Any) -> PluginInfo:
    kind = obj if hasattr(obj, "__qualname__") else type(obj)
    value = f"{kind.__module__}:{kind.__qualname__}"
    return PluginInfo(*key, value, REGISTERED, status=OK, summary=summary_of(obj))
