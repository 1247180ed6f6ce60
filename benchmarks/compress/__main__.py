"""Measure distillation, quantisation and pruning, and write the tables of docs/howto/compress.md.

``python -m benchmarks.compress [distil stack quantise prune] [--write]``
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

from benchmarks.compress import distillation, pruning, quantisation

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "compress.md"
TABLES = {
    "distil": (distillation.TITLES, lambda: distillation.rows("forest")),
    "stack": (distillation.TITLES, lambda: distillation.rows("stack")),
    "quantise": (quantisation.TITLES, quantisation.rows),
    "prune": (pruning.TITLES, pruning.rows),
}


def main() -> None:
    """Read the arguments, measure, print, and write the page if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", default=list(TABLES), help="names of tables (default: all)")
    parser.add_argument("--write", action="store_true", help="write them into the page")
    arguments = parser.parse_args()
    for name in arguments.tables:
        if name not in TABLES:
            parser.error(f"{name!r} is not one of {list(TABLES)}")
    warnings.simplefilter("ignore")
    for name in arguments.tables:
        titles, rows = TABLES[name]
        lines = [titles, ("---",) * len(titles), *rows()]
        text = "\n".join(f"| {' | '.join(row)} |" for row in lines)
        print(f"\n{text}\n", flush=True)
        if arguments.write:
            start, end = f"<!-- table {name} -->", "<!-- end -->"
            before, found, rest = PAGE.read_text(encoding="utf-8").partition(start)
            if not found:  # the page has a sentence about it
                continue
            _, _, after = rest.partition(end)
            PAGE.write_text(f"{before}{start}\n\n{text}\n\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
