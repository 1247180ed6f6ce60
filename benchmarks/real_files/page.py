"""The page about ONNX files of other origin."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.machine import describe

from .attempt import LARGEST, Attempt
from .sources import WHEELS, Source

__all__ = ["page", "shortfalls"]

#: Share of the files in wheels with a right derivative, and number of models trained.
RIGHT, TRAINED = 0.9, 8
INTRODUCTION = """# ONNX files of other origin

This page is written by `make real-files`. It downloads the wheels of {wheels}, and takes the models
inside, the models and test graphs in onnx's own wheel, models that skl2onnx and onnxmltools export at
several opsets, and graphs of every opset from 7 to 25. Each one is read, differentiated with respect to
its weights and inputs, and trained where it has a batch dimension.

**Derivative.** The gradient of a random sum of the outputs is compared with differences of outputs along
random directions, in float32, and is right within 2 %. The smallest step counts whose difference is a
hundred times the rounding error, and agrees with that of half the step: the slope is then clearly not
zero. Where a file holds placeholders, one number repeated, weights are drawn.

**Trained** means five epochs of Adam through `OrtGradientOptimizer`, and that the file which comes back has
its own inputs, outputs and types, and other numbers; otherwise it is the reason why not. Files with more
than {largest:,} weights are left out. An input without rows of samples, such as an initial state, is zero.

**Step** is the time of forward and backward over the time of a forward, for one or two rows.

{machine}.

{summary}

"""
HEADER = (
    "| file | source | licence | opset | operators | derivative | error | trained | step |",
    "|---|---|---|---|---|---|---|---|---|",
)


def page(found: Sequence[tuple[Source, Attempt]]) -> str:
    """Return the text of the page."""
    rows = [_row(source, attempt) for source, attempt in found]
    text = INTRODUCTION.format(
        wheels=" and ".join(WHEELS), machine=describe(), summary=_summary(found), largest=LARGEST
    )
    return text + "\n".join([*HEADER, *rows]) + "\n"


def shortfalls(found: Sequence[tuple[Source, Attempt]]) -> list[str]:
    """Return the figures below their targets as text."""
    wheel = [attempt for source, attempt in found if source.is_from_a_wheel and _has_floats(attempt)]
    right, trained = sum(a.derivative == "right" for a in wheel), sum(a.trained == "yes" for _, a in found)
    wrong = [source.name for source, attempt in found if attempt.derivative == "wrong"]
    checks = [
        (right < RIGHT * len(wheel), f"{right} of {len(wheel)} files of wheels have a right derivative."),
        (trained < TRAINED, f"{trained} models are trained, fewer than {TRAINED}."),
        (bool(wrong), f"The derivatives of {wrong} are wrong."),
    ]
    return [text for fails, text in checks if fails]


def _has_floats(attempt: Attempt) -> bool:
    """Return whether there is anything to differentiate."""
    return "Nothing to differentiate" not in attempt.derivative


def _summary(found: Sequence[tuple[Source, Attempt]]) -> str:
    lines = []
    for title, own in (
        ("Files of wheels", [a for s, a in found if s.is_from_a_wheel and _has_floats(a)]),
        ("Exported and written here", [a for s, a in found if not s.is_from_a_wheel]),
    ):
        right, trained = sum(a.derivative == "right" for a in own), sum(a.trained == "yes" for a in own)
        bare = sum(a.trained == "has no weights" for a in own)
        without = f", {bare} without weights" if bare else ""
        lines.append(f"- {title}: {len(own)}{without}, {right} with a right derivative, {trained} trained.")
    return "\n".join(lines)


def _row(source: Source, attempt: Attempt) -> str:
    often = sorted(attempt.operators, key=lambda name: (-attempt.operators[name], name))
    operators = ", ".join(often[:6]) + (f" and {len(often) - 6} more" if len(often) > 6 else "")
    numbers = [f"{attempt.error:.0e}" if attempt.error == attempt.error else "", f"{attempt.ratio:.1f}"]
    cells = (
        source.name, source.origin, source.licence, attempt.opset, operators, attempt.derivative, numbers[0],
        attempt.trained, numbers[1] if attempt.ratio == attempt.ratio else "",
    )  # fmt: skip
    return f"| {' | '.join(str(cell).replace('|', '/') for cell in cells)} |"
