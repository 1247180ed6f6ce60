"""Adapt a model to new samples, and put the result into use if it is better.

MODEL is a folder of versions (see `ortlearn versions`), whose current version is replaced if the gate permits
it, or a model file, which is not changed. The exit status is 0 if the model is promoted, 3 if the old one is
kept, and 4 if the new one is refused because of a limit.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..evaluation.data_files import Table
from ..evaluation.messages import check_installed
from ..lifecycle import Adaptation, Gate, adapt
from ..lifecycle.cards import html_card, markdown_card
from .output_files import OutputFile
from .parser import add_data_options, add_max_samples, add_model, drawn
from .report import number, table

__all__ = ["add_arguments", "as_text", "run", "status"]

#: Exit statuses.
STATUSES = {"promoted": 0, "kept": 3, "refused": 4}
#: Columns whose drift is shown.
SHOWN = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    gate = Gate()
    add_model(parser, "model")
    add_data_options(parser, label_help="column with the labels (required)")
    parser.add_argument("--reference", metavar="DATA", help="samples from the time when the model was fitted")
    parser.add_argument("--test", metavar="DATA", help="samples of the gate, instead of --held-out")
    parser.add_argument(
        "--held-out",
        type=float,
        default=0.3,
        metavar="SHARE",
        help="share of DATA for the gate (default: 0.3)",
    )
    parser.add_argument(
        "--candidate",
        action="append",
        metavar="NAME",
        help="warm_start, refit or refit_both; may be repeated (default: all that are possible)",
    )
    add_max_samples(parser)
    parser.add_argument("--max-seconds", type=float, metavar="NUMBER", help="most seconds of a warm start")
    parser.add_argument("--metric", metavar="NAME", help="metric of the gate (default: accuracy or r2)")
    parser.add_argument(
        "--minimum-gain",
        type=float,
        default=gate.minimum_gain,
        metavar="NUMBER",
        help=f"smallest gain of the metric (default: {gate.minimum_gain:g})",
    )
    parser.add_argument("--by", metavar="COLUMN", help="column whose groups must not become much worse")
    parser.add_argument(
        "--largest-loss",
        type=float,
        default=gate.largest_loss,
        metavar="NUMBER",
        help=f"most that the metric of a group may become worse (default: {gate.largest_loss:g})",
    )
    parser.add_argument("--max-bytes", type=int, metavar="NUMBER", help="largest size of the ONNX file")
    parser.add_argument(
        "--max-latency", type=float, metavar="RATIO", help="largest ratio of the prediction times, new to old"
    )
    parser.add_argument(
        "--level", type=float, default=0.05, help="level of the tests of drift (default: 0.05)"
    )
    parser.add_argument("--random-state", type=int, default=0, help="seed (default: 0)")
    parser.add_argument("--dry-run", action="store_true", help="leave the folder of versions as it is")
    parser.add_argument("--out", metavar="FILE.onnx", help="write the model if it is promoted")
    parser.add_argument("--card", metavar="FILE", help="write a card, .html or .md")
    parser.add_argument("--force", action="store_true", help="replace files that exist")


def run(options: argparse.Namespace) -> dict:
    """Adapt, write the files, and return the results."""
    if options.label is None:
        raise ValueError("an adaptation needs labels. Name their column with --label COLUMN.")
    out = OutputFile.checked(options.out, (".onnx",), options.force, "--out")
    card = OutputFile.checked(options.card, (".html", ".md"), options.force, "--card")
    if (folder := Path(options.model)).is_dir():
        if not any(folder.iterdir()):
            raise ValueError(f"{folder} has no version. Add one with: ortlearn versions FOLDER --add MODEL.")
        check_installed("skops", "cli", "folders of versions")
    gate = Gate(
        options.metric, options.minimum_gain, options.largest_loss, options.max_bytes, options.max_latency
    )
    counts: dict[str, int] = {}

    def sample(path: str, by: str | None) -> Table:
        table, counts[path] = drawn(options, path, by=by)
        return table

    tested = None if options.test is None else sample(options.test, options.by)
    found = adapt(
        options.model,
        sample(options.data, options.by),
        None if options.reference is None else sample(options.reference, None),
        candidates=options.candidate,
        parameters=None if options.max_seconds is None else {"max_seconds": options.max_seconds},
        gate=gate,
        held_out=options.held_out if tested is None else tested,
        level=options.level,
        dry_run=options.dry_run,
        random_state=options.random_state,
        trusted=options.trust,
    )
    if options.card:
        text = html_card(found) if card.suffix == ".html" else markdown_card(found)
        card.write(text.encode())
    written = options.out if found.outcome == "promoted" else None
    if written:
        out.write(found.onnx)
    return {
        "model": options.model,
        "data": options.data,
        "out": written,
        "card": options.card,
        "sampled": {path: n_seen for path, n_seen in counts.items() if n_seen > options.max_samples},
        "max_samples": options.max_samples,
        **_facts(found),
    }


def status(result: dict) -> int:
    """Return the exit status."""
    return STATUSES[result["outcome"]]


def _facts(found: Adaptation) -> dict[str, Any]:
    """Return the result as JSON has it."""
    return {
        "outcome": found.outcome,
        "reasons": found.reasons,
        "candidate": found.candidate,
        "losses": found.losses,
        "version": found.version,
        "rows": found.n_samples,
        "held_out": found.n_held_out,
        "verdict": None if found.verdict is None else asdict(found.verdict),
        "drift": None if found.drift is None else asdict(found.drift),
    }


def as_text(result: dict) -> str:
    """Return a summary."""
    lines = [f"{result['outcome']}: {result['model']} ({result['candidate']})"]
    lines += [f"  {reason}" for reason in result["reasons"]]
    lines.append(f"{result['rows']} samples for training, {result['held_out']} held out")
    for path, n_seen in result["sampled"].items():
        lines.append(f"of the {n_seen} samples of {path}, {result['max_samples']} were drawn at random")
    losses = [(name, number(loss)) for name, loss in result["losses"].items()]
    lines += ["mean losses in cross-validation:", table(losses, "  ")]
    if result["verdict"] is not None:
        lines += ["scores on held-out samples:", table(_scores(result["verdict"]), "  ")]
        groups = [(name, number(gain, True)) for name, gain in result["verdict"]["groups"].items()]
        lines += ["gain of groups:", table(groups, "  ")] if groups else []
    if result["drift"] is not None:
        lines += _drift(result["drift"])
    if result["version"] is not None:
        lines.append(f"version {result['version']} of {result['model']}")
    return "\n".join(lines + [f"wrote {result[key]}" for key in ("out", "card") if result[key]])


def _scores(verdict: dict) -> list[tuple[str, ...]]:
    parts = ("old", "new", "difference")
    rows = [
        (name, *(number(values[part]["value"], part == "difference") for part in parts))
        for name, values in verdict["scores"].items()
    ]
    return [("metric", "old", "new", "new - old"), *rows]


def _drift(drift: dict) -> list[str]:
    """Return lines about drift."""
    drifted = [item for item in drift["columns"] if item["drifted"]]
    lines = [f"drift: {len(drifted)} of {len(drift['columns'])} columns"]
    if drifted:
        titles = ("column", "stability index", "adjusted p-value")
        rows = [
            (item["name"], number(item["stability"]), number(item["adjusted_p_value"]))
            for item in drifted[:SHOWN]
        ]
        lines.append(table([titles, *rows], "  "))
    return lines
