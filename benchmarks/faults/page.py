"""Table of faults in a documentation page."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path

import onnxruntime

from benchmarks.faults.fault import Outcome

__all__ = ["table", "write"]

_BEGIN, _END = "<!-- faults: begin -->", "<!-- faults: end -->"


def table(outcomes: Mapping[str, Outcome]) -> str:
    """Return a Markdown table of outcomes by the title of the fault."""
    lines = [
        "| fault | attempts | expected errors | correct results | other outcomes | lost state | hangs |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for title, found in outcomes.items():
        numbers = (found.tries, found.clean, found.right, found.other, found.lost, found.hung)
        lines.append(f"| {title} | {' | '.join(f'{number:,}' for number in numbers)} |")
    return "\n".join(lines)


def write(path: Path, outcomes: Mapping[str, Outcome], seconds: float) -> None:
    """Replace the table between the two marks of a page."""
    text = path.read_text()
    before, begin, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise ValueError(f"{path} has no marks for the table: add the lines {_BEGIN} and {_END}.")
    versions = f"Python {platform.python_version()}, onnxruntime {onnxruntime.__version__}"
    measured = f"Measured in {seconds:.0f} seconds on {platform.system()}, with {versions}."
    path.write_text(f"{before}{_BEGIN}\n{table(outcomes)}\n\n{measured}\n{_END}{after}")
