"""``make real-files``: test ONNX files from other sources and write docs/onnx_files.md and its table."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from benchmarks.csv_table import write_beside

from .attempt import Attempt
from .page import TITLES, page, rows, shortfalls
from .sources import Source, sources

#: Time limit of a file in seconds.
LIMIT = 600


def main() -> int:
    """Test each file in a separate process, print the results, and write the page."""
    parser = argparse.ArgumentParser(prog="benchmarks.real_files", description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=Path("build/real_files"), help="folder for downloaded wheels"
    )
    parser.add_argument("--write", type=Path, help="page to write")
    parser.add_argument("--only", default="", help="test files whose names contain this text")
    parser.add_argument("--results", type=Path, help="file of results, to resume an interrupted run")
    options = parser.parse_args()
    known = json.loads(options.results.read_text()) if options.results and options.results.exists() else {}
    found: list[tuple[Source, Attempt]] = []
    for source in sources(options.folder):
        if options.only not in f"{source.origin}/{source.name}":
            continue
        key = f"{source.origin}/{source.name}"
        if key not in known:
            known[key] = _tested(source)
            print(key, known[key]["derivative"], "|", known[key]["trained"], flush=True)
            if options.results:
                options.results.write_text(json.dumps(known))
        found.append((source, Attempt(**known[key])))
    if options.write:
        options.write.write_text(page(found), encoding="utf-8")
        write_beside(options.write, TITLES, rows(found))
    failed = [] if options.only else shortfalls(found)
    print("\n".join(failed) or f"{len(found)} files")
    return bool(failed)


def _tested(source: Source) -> dict:
    """Return the results of a file, tested in a process that may terminate."""
    command = [sys.executable, "-m", "benchmarks.real_files.attempt", str(source.path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return {"derivative": f"no result within {LIMIT} s", "trained": "not tried"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines:
        return {"derivative": f"the process ended with {done.returncode}", "trained": "not tried"}
    return json.loads(lines[-1].removeprefix("RESULT "))


if __name__ == "__main__":
    sys.exit(main())
