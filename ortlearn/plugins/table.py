"""The table of plugins that both command lines show."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence

from .discovery import PluginInfo
from .groups import GROUPS

__all__ = ["add_arguments", "full_group", "plugins_table"]

PREFIX = "ortlearn."
HEADERS = ("group", "name", "distribution", "version", "status")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the group, and whether plugins are imported."""
    short = [group.removeprefix(PREFIX) for group in GROUPS]
    parser.add_argument(
        "group",
        nargs="?",
        choices=[*short, *GROUPS],
        metavar="group",
        help=f"one of {', '.join(short)}; all by default",
    )
    parser.add_argument(
        "--load",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="import each plugin, to show whether it works and what it is (the default)",
    )


def full_group(name: str | None) -> str | None:
    """Return the full name of a group."""
    return name and PREFIX + name.removeprefix(PREFIX)


def plugins_table(infos: Sequence[PluginInfo], group: str | None, load: bool) -> str:
    """Return one line per plugin: where it lives, or where plugins were loaded what it is."""
    rows = [(*HEADERS, "summary" if load else "target"), *(_row(info) for info in infos)]
    lines = _align(rows)
    if not infos:
        lines.append(f"No plugin in {group or 'any group'}.")
    return "\n".join(lines)


def _row(info: PluginInfo) -> tuple[str, ...]:
    last = info.summary or info.value
    return info.group.removeprefix(PREFIX), info.name, info.distribution, info.version, info.status, last


def _align(rows: Iterable[tuple[str, ...]]) -> list[str]:
    rows = list(rows)
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
