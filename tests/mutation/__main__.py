"""Change plugins by 1 %, report the changes that no test notices: ``python -m tests.mutation 'rule:*'``."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import pytest
from threadpoolctl import threadpool_limits

from tests.mutation.search import Finding, Search
from tests.mutation.subjects import Subject, find_subjects
from tests.mutation.survivors import SURVIVORS

__all__ = ["main"]

ARGUMENTS = ["-q", "-s", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist"]


class _Loop:
    """A pytest plugin that searches instead of running the tests."""

    def __init__(self, subjects: Sequence[Subject], verbose: bool):
        self.subjects = subjects
        self.verbose = verbose
        self.findings: list[Finding] = []
        self.broken: dict[str, str] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> bool:
        search = Search(session.items)
        for finding in search.run(self.subjects):
            self.findings.append(finding)
            if self.verbose or not finding.test:
                print(f"{finding!s:60} {finding.test or 'NOT NOTICED'}  {finding.message[:80]}", flush=True)
        self.broken = search.broken
        if session.testsfailed:
            self.broken["collection"] = f"{session.testsfailed} files cannot be collected"
        return True


def main(arguments: list[str] | None = None) -> int:
    """Search, print, and return 1 where a change goes unnoticed without a reason, or is noticed with one."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="GLOB", help="plugins, such as 'loss:*'")
    parser.add_argument("--sample", type=int, help="number of plugins, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--verbose", action="store_true", help="print every change")
    parser.add_argument("--tests", nargs="+", default=["tests"], metavar="PATH", help="files or folders")
    options = parser.parse_args(arguments)
    subjects = [
        s for s in find_subjects() if any(fnmatchcase(str(s), name) for name in options.names or ["*"])
    ]
    if not subjects:
        parser.error(f"no plugin fits {options.names}")
    if options.sample:
        subjects = random.Random(options.seed).sample(subjects, min(options.sample, len(subjects)))
    begin, loop = time.perf_counter(), _Loop(subjects, options.verbose)
    with threadpool_limits(1):  # a forked process cannot use the threads of its parent
        pytest.main([*ARGUMENTS, *options.tests], plugins=[loop])
    print(f"{len(loop.findings)} changes of {len(subjects)} plugins in {time.perf_counter() - begin:.0f} s")
    for name, message in loop.broken.items():
        print(f"fails without any change: {name}  {message[:200]}", file=sys.stderr)
    return 1 if loop.broken else _judge(loop.findings)


def _judge(findings: list[Finding]) -> int:
    missed = [str(f) for f in findings if not f.test and str(f) not in SURVIVORS]
    wrong = [str(f) for f in findings if f.test and str(f) in SURVIVORS]
    for name in missed:
        print(f"no test notices: {name}", file=sys.stderr)
    for name in wrong:
        print(f"noticed, so no longer a survivor: {name}", file=sys.stderr)
    return 1 if missed or wrong or not findings else 0


if __name__ == "__main__":
    sys.exit(main())
