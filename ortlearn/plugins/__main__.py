"""Print the table of plugins: ``python -m ortlearn.plugins [--no-load] [group]``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from . import list_plugins
from .table import add_arguments, full_group, plugins_table


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table of plugins and return 0, even if some plugins are broken."""
    parser = argparse.ArgumentParser(
        prog="python -m ortlearn.plugins", description="List the plugins of ortlearn and their status."
    )
    add_arguments(parser)
    options = parser.parse_args(arguments)
    group = full_group(options.group)
    if hasattr(sys.stdout, "reconfigure"):
        # Docstrings may have characters that the encoding of the terminal lacks.
        sys.stdout.reconfigure(errors="replace")
    print(plugins_table(list_plugins(group, load=options.load), group, options.load))
    return 0


if __name__ == "__main__":
    sys.exit(main())
