"""Inject faults and print a table of the results: ``python -m benchmarks.faults --only 'killed*'``."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Mapping
from fnmatch import fnmatch
from math import ceil
from pathlib import Path

from benchmarks.faults import catalogue, page
from benchmarks.faults.fault import Fault
from benchmarks.faults.processes import measure

__all__ = ["main"]

#: Time limit of a run in seconds.
LIMIT = 1800.0


def main(arguments: list[str] | None = None, faults: Mapping[str, Fault] | None = None) -> int:
    """Inject faults, by default of the catalogue; print and write the table; return 1 if one failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    parser.add_argument("--only", nargs="*", default=["*"], metavar="GLOB", help="names of faults")
    parser.add_argument("--share", type=float, default=1.0, help="share of attempts, at least 1 per fault")
    parser.add_argument("--limit", type=float, default=LIMIT, help="time limit of the run in seconds")
    parser.add_argument("--write", type=Path, help="page to write, such as docs/reliability.md")
    options = parser.parse_args(arguments)
    names = [name for name in faults or catalogue.NAMES if any(fnmatch(name, glob) for glob in options.only)]
    if not names:
        parser.error(f"no fault matches {options.only}")
    warnings.simplefilter("ignore")
    begun, outcomes = time.monotonic(), {}
    for name in names:
        fault, start = faults[name] if faults else catalogue.load(name), time.monotonic()
        found = measure(fault, ceil(options.share * fault.tries), begun + options.limit)
        outcomes[fault.title] = found
        print(f"{name:24} {time.monotonic() - start:6.1f} s  {found}", *found.texts, sep="\n    ", flush=True)
    print(page.table(outcomes))
    left_out = sum(found.left_out for found in outcomes.values())
    if left_out:
        print(
            f"{left_out} attempts were omitted: the run reached its limit of {options.limit:g} seconds. "
            "The table was not written: raise --limit, or run it on an idle machine."
        )
    elif options.write:
        page.write(options.write, outcomes, time.monotonic() - begun)
    return int(left_out > 0 or any(found.failed for found in outcomes.values()))


if __name__ == "__main__":
    raise SystemExit(main())
