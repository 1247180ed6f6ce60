"""The table of plugins, for both command lines."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence

from .discovery import PluginInfo
from .groups import GROUPS

__all__ = ["add_arguments", "full_group", "plugins_table"]

PREFIX = "ortlearn."
HEADERS = ("group", "name", "distribution", "version", "status")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments ``group`` and ``--no-load``."""
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
        help="import each plugin, to show its status and its summary (the default)",
    )


def full_group(name: str | None) -> str | None:
    """Return the full name of a group."""
    return name and PREFIX + name.removeprefix(PREFIX)


def plugins_table(infos: Sequence[PluginInfo], group: str | None, load: bool) -> str:
    """Return one line per plugin, with its location, or with its summary if plugins are loaded."""
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
