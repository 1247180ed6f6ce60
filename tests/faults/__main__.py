"""Try faults: ``python -m tests.faults --only 'killed*'``, or all of them, into a table."""

from __future__ import annotations

import argparse
import time
import warnings
from fnmatch import fnmatch
from math import ceil
from pathlib import Path

from tests.faults import catalogue, page
from tests.faults.processes import measure

__all__ = ["main"]

#: Seconds that a whole run may take.
LIMIT = 570.0


def main(arguments: list[str] | None = None) -> int:
    """Try, print, write; return 1 where an attempt ended as it should not."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--only", nargs="*", default=["*"], metavar="GLOB", help="names of faults")
    parser.add_argument("--share", type=float, default=1.0, help="share of the attempts, 1 of each at least")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds of the whole run")
    parser.add_argument("--write", type=Path, help="page to write, such as docs/reliability.md")
    options = parser.parse_args(arguments)
    names = [name for name in catalogue.NAMES if any(fnmatch(name, glob) for glob in options.only)]
    if not names:
        parser.error(f"no fault fits {options.only}")
    warnings.simplefilter("ignore")
    begun, outcomes = time.monotonic(), {}
    for name in names:
        fault, start = catalogue.load(name), time.monotonic()
        found = measure(fault, ceil(options.share * fault.tries), begun + options.limit)
        outcomes[fault.what] = found
        print(f"{name:24} {time.monotonic() - start:6.1f} s  {found}", *found.texts, sep="\n    ", flush=True)
    print(page.table(outcomes))
    left_out = sum(found.left_out for found in outcomes.values())
    if left_out:
        print(
            f"{left_out} attempts were left out: the run reached its limit of {options.limit:g} seconds. "
            "Nothing is written: raise --limit, or run it on an idle machine."
        )
    elif options.write:
        page.write(options.write, outcomes, time.monotonic() - begun)
    return int(left_out > 0 or any(found.failed for found in outcomes.values()))


if __name__ == "__main__":
    raise SystemExit(main())
