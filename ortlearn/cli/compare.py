"""Compare the predictions of two models on a data file.

Scores have percentile intervals of a paired bootstrap: both models are measured on the same samples, drawn
with replacement. An interval of the difference that excludes 0 means that the models differ by more than the
choice of these samples explains (Efron and Tibshirani, An Introduction to the Bootstrap, 1993). DATA is read
in parts, and may be larger than memory: only labels and predictions are kept.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..evaluation.bootstrap import Bootstrap
from ..evaluation.data_files import TableParts, column_options
from ..evaluation.metrics import model_metrics
from ..evaluation.model_files import load_model
from ..evaluation.predictions import Model, Predictions, used_columns
from ..evaluation.scored_samples import ScoredSamples, scored_samples
from .output_files import OutputFile
from .parser import add_data_options, add_model
from .report import number, table

__all__ = ["add_arguments", "as_text", "run"]

MAX_GROUPS = 100
#: Smallest change of a number that counts by default, in standard deviations of the old predictions.
SMALL_CHANGE = 1e-3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_model(parser, "old", "new")
    add_data_options(parser, label_help="column with the labels; without it, only changes are reported")
    parser.add_argument("--by", metavar="COLUMN", help="compare for each value of this column, too")
    parser.add_argument("--changed", metavar="FILE.csv", help="write the samples whose prediction changed")
    parser.add_argument("--force", action="store_true", help="replace a file that exists")
    parser.add_argument(
        "--tolerance",
        type=float,
        metavar="NUMBER",
        help="change of a predicted number that does not count (default: 0.001 standard deviations of the "
        "old predictions)",
    )
    parser.add_argument("--resamples", type=int, default=1000, help="bootstrap samples (default: 1000)")
    parser.add_argument("--level", type=float, default=0.95, help="level of the intervals (default: 0.95)")
    parser.add_argument("--random-state", type=int, default=0, help="seed of the bootstrap (default: 0)")


@dataclass(frozen=True)
class Comparison:
    """Predictions of two models for the same samples, and their differences."""

    models: tuple[Model, Model]
    samples: ScoredSamples
    is_changed: np.ndarray

    def part(self, numbers: np.ndarray, bootstrap: Bootstrap) -> dict:
        """Return the comparison of some samples, by their numbers."""
        changed = int(self.is_changed[numbers].sum())
        result: dict[str, Any] = {
            "rows": len(numbers),
            "changed": changed,
            "changed_share": changed / len(numbers),
        }
        if self.samples.labels is None:
            return result
        labels, weights = self.samples.labels[numbers], self.samples.weights[numbers]
        before, after = [
            model_metrics(model, labels, predictions.take(numbers))
            for model, predictions in zip(self.models, self.samples.predictions, strict=True)
        ]
        if weights.sum() > 0:
            result["scores"] = bootstrap.compare(before, after, weights)
        if self.models[0].task == "classification":
            right = [found.values[numbers] == labels for found in self.samples.predictions]
            result["now_right"] = int((~right[0] & right[1]).sum())
            result["now_wrong"] = int((right[0] & ~right[1]).sum())
        return result


def run(options: argparse.Namespace) -> dict:
    """Return scores and changes, overall and by group; write the changed samples."""
    bootstrap = Bootstrap(options.resamples, options.level, options.random_state)
    if options.tolerance is not None and not options.tolerance >= 0:
        raise ValueError(f"--tolerance {options.tolerance}: must be 0 or more.")
    output = OutputFile.checked(options.changed, (".csv",), options.force, "--changed")
    found = _compare(options)
    if options.changed:
        output.write(_changed_samples(found, options))
    everything = np.arange(len(found.samples))
    result = {
        "old": options.old,
        "new": options.new,
        "data": options.data,
        "task": found.models[0].task,
        "level": options.level,
        **found.part(everything, bootstrap),
    }
    if options.by is not None:
        result["by"] = options.by
        result["groups"] = {
            group: found.part(np.flatnonzero(found.samples.groups == group), bootstrap)
            for group in _groups(found.samples, options.by)
        }
    return result


def _compare(options: argparse.Namespace) -> Comparison:
    old, new = (load_model(path, options.trust) for path in (options.old, options.new))
    if old.task != new.task:
        raise ValueError(
            f"{old.path} is for {old.task} and {new.path} for {new.task}. Compare models of the same task."
        )
    parts = TableParts(options.data, by=options.by, used=used_columns(old, new), **column_options(options))
    samples = scored_samples(parts, (old, new))
    first, second = samples.predictions
    return Comparison((old, new), samples, _changes(old, first, second, options.tolerance))


def _changes(model: Model, old: Predictions, new: Predictions, tolerance: float | None) -> np.ndarray:
    if model.task == "classification":
        return np.asarray(old.values != new.values)
    if tolerance is None:
        tolerance = SMALL_CHANGE * float(np.std(old.values))
    return np.abs(new.values - old.values) > tolerance


def _groups(samples: ScoredSamples, name: str) -> list[str]:
    assert samples.groups is not None
    groups = sorted(set(samples.groups.tolist()))
    if len(groups) > MAX_GROUPS:
        raise ValueError(
            f"column {name!r} has {len(groups)} values. Choose a column with at most {MAX_GROUPS} for --by."
        )
    return groups


def _changed_samples(found: Comparison, options: argparse.Namespace) -> bytes:
    """Return the samples that changed as csv; the first row of the data has the number 0."""
    from pandas import DataFrame

    numbers = np.flatnonzero(found.is_changed)
    old, new = (predictions.values[numbers] for predictions in found.samples.predictions)
    frame = DataFrame({"row": numbers, "old": old, "new": new})
    if found.samples.labels is not None:
        frame["label"] = found.samples.labels[numbers]
    if found.samples.groups is not None:
        frame[f"by {options.by}"] = found.samples.groups[numbers]
    return frame.to_csv(index=False).encode()


def as_text(result: dict) -> str:
    """Return tables of scores and changes."""
    about = f"{result['rows']} samples of {result['data']} ({result['task']})"
    if "scores" in result:
        about += f", intervals of level {result['level']:g}"
    lines = [f"old: {result['old']}", f"new: {result['new']}", about, ""]
    titles = ("metric", "old", "", "new", "", "new - old", "")
    if "scores" in result:
        lines += [table([titles, *_score_rows(result)], "  "), ""]
    lines.append(_changes_line(result))
    for group, part in result.get("groups", {}).items():
        lines += ["", f"{result['by']} = {group}: {part['rows']} samples; {_changes_line(part)}"]
        if "scores" in part:
            lines.append(table([titles, *_score_rows(part)], "  "))
    return "\n".join(lines)


def _score_rows(part: dict) -> list[tuple[str, ...]]:
    rows = []
    for name, values in part["scores"].items():
        cells = []
        for key in ("old", "new", "difference"):
            sign = key == "difference"
            cells += [number(values[key]["value"], sign), _interval(values[key]["interval"], sign)]
        rows.append((name, *cells))
    return rows


def _interval(interval: list[float] | None, sign: bool) -> str:
    return "" if interval is None else f"[{number(interval[0], sign)}, {number(interval[1], sign)}]"


def _changes_line(part: dict) -> str:
    text = f"predictions changed: {part['changed']} ({part['changed_share']:.1%})"
    if "now_right" in part:
        text += f", {part['now_right']} now right, {part['now_wrong']} now wrong"
    return text
