"""Write docs/onnx_files.md."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.machine import describe

from .attempt import LARGEST, Attempt
from .sources import WHEELS, Source

__all__ = ["page", "shortfalls"]

#: Minimum share of files in wheels with a right derivative, and minimum number of trained models.
RIGHT, TRAINED = 0.9, 8
INTRODUCTION = """# ONNX files from other sources

`make real-files` writes this page about the models in the wheels of {wheels}, the models and test
graphs in the wheel of onnx, models exported by skl2onnx and onnxmltools at several opsets, and graphs of
every opset from 7 to 25.

**derivative** compares the gradient of a random weighted sum of the outputs, with respect to weights and
inputs, with finite differences along random directions. It is "right" up to a relative error of 2 %;
**error** is the largest one. Weights with a single repeated value are replaced by random weights.

**trained** is "yes" if `OrtGradientOptimizer` trains the model for five epochs of Adam, and the exported
model has the inputs, outputs and types of the file and different predictions. Otherwise it is the reason.
Files with more than {largest:,} weights are not trained.

**step** is the time of forward and backward divided by the time of a forward pass.

{machine}.

{summary}

"""
HEADER = (
    "| file | source | licence | opset | operators | derivative | error | trained | step |",
    "|---|---|---|---|---|---|---|---|---|",
)


def page(found: Sequence[tuple[Source, Attempt]]) -> str:
    """Return the page, in Markdown."""
    rows = [_row(source, attempt) for source, attempt in found]
    text = INTRODUCTION.format(
        wheels=" and ".join(WHEELS), machine=describe(), summary=_summary(found), largest=LARGEST
    )
    return text + "\n".join([*HEADER, *rows]) + "\n"


def shortfalls(found: Sequence[tuple[Source, Attempt]]) -> list[str]:
    """Return a sentence for each missed target."""
    wheel = [attempt for source, attempt in found if source.is_from_a_wheel and _has_floats(attempt)]
    right, trained = sum(a.derivative == "right" for a in wheel), sum(a.trained == "yes" for _, a in found)
    wrong = [source.name for source, attempt in found if attempt.derivative == "wrong"]
    checks = [
        (right < RIGHT * len(wheel), f"{right} of {len(wheel)} files in wheels have a right derivative."),
        (trained < TRAINED, f"{trained} models are trained, fewer than {TRAINED}."),
        (bool(wrong), f"The derivatives of {wrong} are wrong."),
    ]
    return [text for fails, text in checks if fails]


def _has_floats(attempt: Attempt) -> bool:
    """Return whether a model has floating-point tensors to differentiate."""
    return "Nothing to differentiate" not in attempt.derivative


def _summary(found: Sequence[tuple[Source, Attempt]]) -> str:
    lines = []
    for title, own in (
        ("Files in wheels", [a for s, a in found if s.is_from_a_wheel and _has_floats(a)]),
        ("Exported and generated files", [a for s, a in found if not s.is_from_a_wheel]),
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
    return f"| {' | '.join(str(cell).replace('|', '/').strip() for cell in cells)} |"
