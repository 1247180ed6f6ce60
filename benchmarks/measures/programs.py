"""Benchmarks with their own module, each run in a process restricted to some cores."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from importlib import import_module

from benchmarks.processes import ROOT, Failed, environment
from benchmarks.tables import table

__all__ = ["PROGRAMS", "Sheet", "print_sheets", "sheets"]

#: Module and cores of each; a module has a function ``sheets(quick)``.
PROGRAMS = {
    "fits": ("measures.fits", 1),
    "models": ("bench_models", 1),
    "predictions": ("bench_predict", 1),
    "searches": ("bench_search", 1),
    "streams": ("bench_streams", 2),
}


@dataclass
class Sheet:
    """A table of a page, and the figures that other places quote.

    Attributes
    ----------
    text : str
        What the table shows, in sentences.
    header : list of str
        Names of the columns.
    rows : list of list of str
        Cells.
    figures : dict of str to float
        Figures by name.
    left : int
        Columns that are aligned to the left.
    """

    text: str
    header: list[str]
    rows: list[list[str]]
    figures: dict[str, float] = field(default_factory=dict)
    left: int = 1

    def markdown(self) -> str:
        """Return sentences and table."""
        return f"{self.text}\n\n{table(self.header, self.rows, self.left)}"


def sheets(name: str, quick: bool) -> list[dict]:
    """Return the sheets of a program as dictionaries.

    Raises
    ------
    Failed
        If it ends with an error.
    """
    module, cores = PROGRAMS[name]
    command = [sys.executable, "-m", "benchmarks.measures.programs", module, str(cores), str(int(quick))]
    done = subprocess.run(command, cwd=ROOT, env=environment(cores), capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"{module}: {done.stderr.strip().rpartition(chr(10))[2]}")
    return json.loads(done.stdout.splitlines()[-1])


def print_sheets(description: str | None, measure: Callable[[bool], Iterable[Sheet]]) -> None:
    """Read the command line of a program, measure, and print."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="a few small cases, to see that it runs")
    for sheet in measure(parser.parse_args().quick):
        print(sheet.markdown())


if __name__ == "__main__":
    name, cores, quick = sys.argv[1:]
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(cores)])
    found = import_module(f"benchmarks.{name}").sheets(bool(int(quick)))
    print(json.dumps([asdict(sheet) for sheet in found]))
