"""Worker process: measures the requested cases and prints a JSON line for every fact."""

from __future__ import annotations

import json
import os
import resource
import sys
import warnings

__all__ = ["main"]

MEMORY = 6 * 2**30


def main() -> int:
    """Read names of cases, write facts.

    The first line is ``{"ready": true}``. Then come ``{"fact": name}`` before a fact is looked for,
    ``{"fact": name, "found": {...}}`` after, and ``{"done": case}`` at the end of a case.
    """
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print must not come between the answers
    warnings.simplefilter("ignore")

    from benchmarks.model_zoo.cases import catalogue
    from benchmarks.model_zoo.measure import measure

    cases = catalogue()
    answers.write(json.dumps({"ready": True}) + "\n")

    def announce(name: str, fact: dict | None) -> None:
        answers.write(json.dumps({"fact": name} if fact is None else {"fact": name, "found": fact}) + "\n")

    for line in sys.stdin:
        name = line.strip()
        measure(cases[name], announce)
        answers.write(json.dumps({"done": name}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
