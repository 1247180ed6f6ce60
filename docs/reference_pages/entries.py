"""The plugins of a group: one entry for each object, whatever it is called, and the broken ones."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from ortlearn import plugins
from ortlearn.learning_rates import BaseLearningRate, BaseSchedule
from ortlearn.losses import BaseLoss
from ortlearn.penalties import BasePenalty

__all__ = ["BASES", "FAULTS", "Entry", "find_entries", "one_line"]

BASES = {
    plugins.LOSSES: BaseLoss,
    plugins.PENALTIES: BasePenalty,
    plugins.LEARNING_RATES: BaseLearningRate,
    plugins.SCHEDULES: BaseSchedule,
}
#: What the code of others may raise, at any place, without stopping the pages.
FAULTS = (Exception, SystemExit)


@dataclass
class Entry:
    """A plugin with its default parameters, or why there is none.

    Attributes
    ----------
    names : list of str
        What it is called, the best name first.
    owner : str
        Distribution and version.
    plugin : object
        Object made by its name alone; None where it is broken.
    reason : str
        Why it is broken.
    """

    names: list[str]
    owner: str
    plugin: Any = None
    reason: str = ""
    target: Any = field(default=None, repr=False)


def find_entries(group: str, distributions: Collection[str] | None = None) -> list[Entry]:
    """Return the plugins of a group, sorted by name.

    Parameters
    ----------
    group : str
        Group, such as ``"ortlearn.losses"``.
    distributions : collection of str, default=None
        Whose plugins; all by default.

    Returns
    -------
    list of Entry
        Every name is in exactly one of them, or in several where several distributions declare it.
    """
    entries: list[Entry] = []
    for info in plugins.list_plugins(group, load=True):
        if distributions is not None and info.distribution not in distributions:
            continue
        entry = _entry(group, info)
        twin = next((e for e in entries if entry.target is not None and e.target is entry.target), None)
        if twin is None:
            entries.append(entry)
        else:
            twin.names += entry.names
    for entry in entries:
        entry.names = _best_first(entry.names, type(entry.plugin).__name__)
    return sorted(entries, key=lambda entry: (entry.names[0].lower(), entry.owner))


def _entry(group: str, info: plugins.PluginInfo) -> Entry:
    if info.broken:
        return Entry([info.name], info.owner, reason=info.status.partition(": ")[2])
    try:
        plugin = plugins.create(group, info.name, BASES[group])
        plugin.check()
    except FAULTS as error:
        return Entry([info.name], info.owner, reason=one_line(error))
    return Entry([info.name], info.owner, plugin, target=plugins.get(group, info.name))


def one_line(error: BaseException) -> str:
    """Return the kind of an error and its message, without line breaks."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ")


def _best_first(names: list[str], kind: str) -> list[str]:
    """Put the longest name that is part of the name of the class first."""

    def key(name: str) -> tuple[int, str]:
        letters = name.replace("_", "").lower()
        return -len(name) if letters in kind.lower() else 0, name

    return sorted(names, key=key)
