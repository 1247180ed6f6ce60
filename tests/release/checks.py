"""Long measurements before a release, and the page that records their outcomes with date and commit."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from tests.release.environments import ROOT, commit

__all__ = ["CHECKS", "PAGE", "record", "run"]

PAGE = ROOT / "docs" / "explanation" / "commands.md"
_BEGIN, _END = "<!-- checks -->", "<!-- end -->"
#: Commands of make by name, with their variables.
CHECKS = {
    "coverage": [],
    "mutation": ["MUTATION='*'"],
    "test-all": [],
    "test-rest": [],
    "matrix": [],
    "fuzz": ["FUZZ_SECONDS=600"],
    "faults": [],
    "test-openvino": [],
    "audit": [],
}


def run(names: Sequence[str], page: Path = PAGE) -> list[str]:
    """Run some checks, or all of them, and record each; return an error for each one that fails."""
    unknown = sorted({*names} - CHECKS.keys())
    if unknown:
        return [f"{', '.join(unknown)}: no such check. There are: {', '.join(CHECKS)}."]
    errors = []
    for name in names or CHECKS:
        start = time.perf_counter()
        status = subprocess.run(["make", name, *CHECKS[name]], cwd=ROOT).returncode
        record(name, "passed" if status == 0 else "failed", time.perf_counter() - start, page)
        errors += [f"make {name} fails."] if status else []
    return errors


def record(name: str, result: str, seconds: float, page: Path = PAGE) -> None:
    """Write the outcome of a check into its row of the page."""
    when, length = f"{date.today():%d %B %Y}", f"{seconds / 60:.0f} min"
    row = f"| `make {name}` | {when} | {commit()} | {result} | {length} |"
    head, _, rest = page.read_text(encoding="utf-8").partition(_BEGIN)
    table, _, tail = rest.partition(_END)
    rows = dict(re.findall(r"^(\| `make ([\w-]+)[^\n]*)$", table, re.MULTILINE))
    lines = {key: line for line, key in rows.items()} | {name: row}
    ordered = [lines[key] for key in CHECKS if key in lines]
    title = "| command | date | commit | result | duration |\n|---|---|---|---|---|"
    page.write_text("\n".join([f"{head}{_BEGIN}\n", title, *ordered, f"\n{_END}{tail}"]), encoding="utf-8")
