"""Measure models, and write a table: ``python -m benchmarks.model_zoo --only 'RandomForest*'``."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from benchmarks.model_zoo.cases import catalogue, choose
from benchmarks.model_zoo.processes import LIMIT, measure_all
from benchmarks.model_zoo.verdict import reason, state

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Measure models, and print or write the results; return 1 if targets are checked and missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model_zoo", description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], metavar="GLOB", help="names of cases or estimators")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds of a case")
    parser.add_argument("--json", type=Path, help="file for the facts, one case a line")
    parser.add_argument("--write", type=Path, help="page to write, such as docs/coverage.md")
    parser.add_argument("--check", action="store_true", help="fail where the targets are not met")
    parser.add_argument("--verbose", action="store_true", help="print every fact")
    options = parser.parse_args(arguments)
    cases = {case.name: case for case in choose(catalogue(), options.only)}
    if not cases:
        parser.error(f"no case fits {options.only}")
    lines = options.json.open("w") if options.json else None
    width = max(map(len, cases))

    def report(name: str, facts: dict, seconds: float) -> None:
        print(f"{name:{width}}  {state(facts):16}  {seconds:5.1f} s  {reason(facts)[:300]}", flush=True)
        if options.verbose:
            for fact, found in facts.items():
                print(f"    {fact}: {json.dumps(found)}", flush=True)
        if lines is not None:
            lines.write(json.dumps({"case": name, "seconds": round(seconds, 2), "facts": facts}) + "\n")
            lines.flush()

    begin = time.perf_counter()
    results = measure_all(cases, options.jobs, report, options.limit)
    print(f"{len(results)} cases in {time.perf_counter() - begin:.0f} s")
    return _finish(options, cases, results)


def _finish(options, cases, results) -> int:
    from benchmarks.csv_table import write_beside
    from benchmarks.model_zoo.page import TITLES, page, rows
    from benchmarks.model_zoo.report import Summary

    summary = Summary(cases, results)
    print(summary.text())
    if options.write:
        options.write.write_text(page(summary))
        write_beside(options.write, TITLES, rows(summary))
    missed = summary.missed()
    if options.check and missed:
        print("\n".join(missed), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
