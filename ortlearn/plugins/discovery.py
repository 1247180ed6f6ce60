"""Find plugins in the metadata of installed distributions, without importing any."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import metadata

from .groups import GROUPS, check_group

__all__ = ["BROKEN", "NOT_LOADED", "OK", "PluginInfo", "find"]

NOT_LOADED = "not loaded"
OK = "ok"
#: Start of the status of a plugin that cannot be used; the reason follows.
BROKEN = "broken: "


@dataclass(frozen=True)
class PluginInfo:
    """Record of a plugin.

    Parameters
    ----------
    group : str
        Group, such as ``"ortlearn.losses"``.
    name : str
        Name of the plugin; ``"?"`` if the metadata of a distribution cannot be read.
    value : str
        Location of the plugin, ``"module:attribute"``.
    distribution : str
        Distribution that declares it, or ``"(registered)"``.
    version : str, default=""
        Version of that distribution.
    status : str, default="not loaded"
        ``"not loaded"``, ``"ok"`` or ``"broken: "`` followed by the reason.
    summary : str, default=""
        First line of the plugin's docstring; empty before it is loaded.

    Examples
    --------
    >>> from ortlearn.plugins import PluginInfo
    >>> info = PluginInfo("ortlearn.losses", "huber", "robust:Huber", "robust-losses", "1.0")
    >>> info.owner, info.status
    ('robust-losses 1.0', 'not loaded')
    """

    group: str
    name: str
    value: str
    distribution: str
    version: str = ""
    status: str = NOT_LOADED
    summary: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Group and name."""
        return self.group, self.name

    @property
    def owner(self) -> str:
        """Distribution and version, as shown in messages."""
        return f"{self.distribution} {self.version}".strip()

    @property
    def broken(self) -> bool:
        """Whether the plugin is known to be unusable."""
        return self.status.startswith(BROKEN)


def find(group: str | None = None) -> list[PluginInfo]:
    """Find the plugins that installed distributions declare, without importing them.

    If a distribution is on ``sys.path`` twice, the first copy is used. A name that is declared twice is
    listed twice, with a status that mentions it.
    """
    groups = GROUPS if group is None else (check_group(group),)
    found = {info for dist in _distributions() for info in _declared(dist) if info.group in groups}
    order = sorted(found, key=lambda info: (GROUPS.index(info.group), info.name, info.owner, info.value))
    return _mark_conflicts(order)


def _distributions() -> Iterator[metadata.Distribution]:
    """Yield each distribution that may declare plugins, once."""
    seen = set()
    for candidate in metadata.distributions():
        if not _groups_in_text(candidate):
            continue
        name = _name(candidate)
        normalized = re.sub(r"[-_.]+", "-", name).lower()
        if not name or normalized in seen:
            continue
        seen.add(normalized)
        try:
            # The first copy on sys.path is imported, even if it declares no plugins.
            yield metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # the remains of an interrupted installation


def _groups_in_text(dist: metadata.Distribution) -> list[str]:
    # A cheap test of the text, since most distributions declare no plugins.
    try:
        text = dist.read_text("entry_points.txt") or ""
    except (OSError, UnicodeError):
        return []
    return [group for group in GROUPS if f"[{group}]" in text]


def _name(dist: metadata.Distribution) -> str:
    try:
        return dist.metadata["Name"] or ""
    except Exception:  # third-party metadata may raise any error
        return ""


def _declared(dist: metadata.Distribution) -> Iterator[PluginInfo]:
    """Yield the plugins of a distribution, or a broken record per group if it cannot be parsed."""
    owner = (dist.metadata["Name"], dist.metadata["Version"] or "")
    try:
        points = list(dist.entry_points)
    except Exception as error:  # third-party metadata may raise any error
        for group in _groups_in_text(dist):
            yield PluginInfo(
                group, "?", "", *owner, status=f"{BROKEN}entry_points.txt is malformed ({error})"
            )
        return
    for point in points:
        if point.group in GROUPS:
            yield PluginInfo(point.group, point.name, point.value, *owner)


def _mark_conflicts(infos: Iterable[PluginInfo]) -> list[PluginInfo]:
    by_key: dict[tuple[str, str], list[PluginInfo]] = defaultdict(list)
    infos = list(infos)
    for info in infos:
        if not info.broken:
            by_key[info.key].append(info)
    marked = []
    for info in infos:
        others = [other.owner for other in by_key[info.key] if other is not info]
        if others and not info.broken:
            info = replace(info, status=f"{BROKEN}also declared by {', '.join(others)}")
        marked.append(info)
    return marked
