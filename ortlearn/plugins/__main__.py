"""Print the table of plugins: ``python -m ortlearn.plugins [--no-load] [group]``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence

from . import GROUPS, PluginInfo, list_plugins

PREFIX = "ortlearn."
HEADERS = ("group", "name", "distribution", "version", "status")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table of plugins and return 0, broken plugins or not."""
    options = _parser().parse_args(arguments)
    group = options.group and PREFIX + options.group.removeprefix(PREFIX)
    if hasattr(sys.stdout, "reconfigure"):
        # A docstring the terminal's encoding lacks characters for must not end the listing.
        sys.stdout.reconfigure(errors="replace")
    infos = list_plugins(group, load=options.load)
    last = "summary" if options.load else "target"
    rows = [(*HEADERS, last), *(_row(info) for info in infos)]
    print("\n".join(_align(rows)))
    if not infos:
        print(f"No plugin in {group or 'any group'}.")
    return 0


def _parser() -> argparse.ArgumentParser:
    short = [group.removeprefix(PREFIX) for group in GROUPS]
    parser = argparse.ArgumentParser(
        prog="python -m ortlearn.plugins", description="List the plugins of ortlearn and their status."
    )
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
    return parser


def _row(info: PluginInfo) -> tuple[str, ...]:
    last = info.summary or info.value
    return info.group.removeprefix(PREFIX), info.name, info.distribution, info.version, info.status, last


def _align(rows: Iterable[tuple[str, ...]]) -> list[str]:
    rows = list(rows)
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


if __name__ == "__main__":
    sys.exit(main())
