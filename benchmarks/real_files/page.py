"""Text of docs/onnx_files.md, by source and with the exceptions, and rows of docs/onnx_files.csv."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.machine import describe

from .attempt import LARGEST, Attempt
from .sources import WHEELS, Source

__all__ = ["TITLES", "page", "rows", "shortfalls"]

#: Minimum share of files in wheels with a right derivative, and minimum number of trained models.
RIGHT, TRAINED = 0.9, 8
INTRODUCTION = """# ONNX files from other sources

`make real-files` writes this page about the models in the wheels of {wheels}, the models and test
graphs in the wheel of onnx, models exported by skl2onnx and onnxmltools at several opsets, and graphs of
every opset from 7 to 25. [All files](onnx_files.csv).

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
#: Columns of the file.
TITLES = (
    "file", "source", "licence", "opset", "operators", "derivative", "error", "trained", "step"
)  # fmt: skip
#: Values of "trained" that need no explanation.
EXPECTED = ("yes", "has no weights")


def page(found: Sequence[tuple[Source, Attempt]]) -> str:
    """Return the page, in Markdown."""
    text = INTRODUCTION.format(
        wheels=" and ".join(WHEELS), machine=describe(), summary=_summary(found), largest=LARGEST
    )
    header = "| source | files | right | trained | without weights | largest error | step |"
    lines = [header, "|---|---:|---:|---:|---:|---:|---:|"]
    groups: dict[str, list[Attempt]] = {}
    for source, attempt in found:
        groups.setdefault(_group(source), []).append(attempt)
    lines += [f"| {name} | {' | '.join(_counts(own))} |" for name, own in groups.items()]
    limited = [
        f"| {source.name} | {_cell(attempt.derivative)} | {_cell(attempt.trained)} |"
        for source, attempt in found
        if attempt.derivative != "right" or attempt.trained not in EXPECTED
    ]
    if limited:
        lines += ["", "Exceptions:", "", "| file | derivative | trained |", "|---|---|---|", *limited]
    return text + "\n".join(lines) + "\n"


def rows(found: Sequence[tuple[Source, Attempt]]) -> Iterator[list[str]]:
    """Yield a row of the file for each ONNX file."""
    for source, attempt in found:
        often = sorted(attempt.operators, key=lambda name: (-attempt.operators[name], name))
        operators = ", ".join(often[:6]) + (f" and {len(often) - 6} more" if len(often) > 6 else "")
        error = f"{attempt.error:.0e}" if attempt.error == attempt.error else ""
        step = f"{attempt.ratio:.1f}" if attempt.ratio == attempt.ratio else ""
        yield [
            source.name, source.origin, source.licence, str(attempt.opset), operators,
            attempt.derivative, error, attempt.trained, step,
        ]  # fmt: skip


def _group(source: Source) -> str:
    """Return the wheel and the folder of a file, or the converter that wrote it."""
    folder = source.name.partition("/")[0] if source.origin == "onnx" and "/" in source.name else ""
    return f"{source.origin}, {folder}" if folder else source.origin


def _counts(own: Sequence[Attempt]) -> list[str]:
    """Return counts of files, right derivatives, trained models and files without weights; error; steps."""
    counts = [
        len(own),
        sum(a.derivative == "right" for a in own),
        sum(a.trained == "yes" for a in own),
        sum(a.trained == "has no weights" for a in own),
    ]
    errors = [a.error for a in own if a.error == a.error]
    steps = [a.ratio for a in own if a.ratio == a.ratio]
    return [
        *map(str, counts),
        f"{max(errors):.0e}" if errors else "",
        f"{min(steps):.1f} to {max(steps):.1f}" if steps else "",
    ]


def _cell(text: str) -> str:
    return text.replace("|", "/").strip()


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
