"""Model cards: what was done to a model, as one HTML file without external resources, and as Markdown.

Markdown has the sections of skops' model cards if skops is installed.
"""

from __future__ import annotations

import io
import platform
from collections.abc import Callable, Sequence
from functools import partial
from html import escape
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from ..inspection.changed_weights import WeightChange, weight_changes
from ..inspection.weight_display import WeightChangesDisplay
from .drift import ColumnDrift
from .results import Adaptation

__all__ = ["cards", "html_card", "markdown_card"]

#: Largest number of columns and weights in a table.
SHOWN = 20
#: Packages whose versions a card names.
PACKAGES = ("ortlearn", "onnx", "onnxruntime", "onnxruntime-training-cpu", "scikit-learn", "numpy")
STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;margin:.5em 0 1.5em}
td,th{border-bottom:1px solid #ddd;padding:.2em .8em;text-align:left}
td+td,th+th{text-align:right}.promoted{color:#17692b}.kept{color:#555}.refused{color:#a12}svg{max-width:100%}"""

Rows = Sequence[Sequence[str]]
#: Title, sentences, the rows of a table, the first one of titles, and the function that draws a picture.
Sections = list[tuple[str, list[str], Rows, Callable[[Any], Any] | None]]
#: Places of sections in skops' model cards; others are below the first one.
DESCRIPTION = "Model description"
PLACES = {
    "Outcome": DESCRIPTION,
    "Scores on held-out samples": f"{DESCRIPTION}/Evaluation Results",
    "Groups": f"{DESCRIPTION}/Evaluation Results/Groups",
    "Candidates": f"{DESCRIPTION}/Training Procedure",
    "Parameters": f"{DESCRIPTION}/Training Procedure/Hyperparameters",
}


def sections(found: Adaptation) -> Sections:
    """Return the parts of a card."""
    result: Sections = [("Outcome", _outcome(found), [], None)]
    if found.verdict is not None:
        result.append(("Scores on held-out samples", [], _scores(found.verdict), None))
        if found.verdict.groups:
            rows = [(group, _number(gain)) for group, gain in found.verdict.groups.items()]
            result.append(("Groups", [], [("group", f"gain of {found.verdict.metric}"), *rows], None))
    losses = [("candidate", "loss"), *((name, _number(loss)) for name, loss in found.losses.items())]
    result.append(("Candidates", ["Mean loss in cross-validation."], losses, None))
    if found.drift is not None:
        result += _drift(found.drift)
    if found.candidate == "warm_start":
        changes = weight_changes(found.old.source, found.new.source, found.old.features(found.samples))
        result.append(("Changed weights", [], _changes(changes[:SHOWN]), partial(_draw_changes, changes)))
    parameters = [(name, repr(value)) for name, value in found.parameters.items()]
    result.append(("Parameters", [], [("parameter", "value"), *parameters], None))
    result.append(("Versions", [], [("package", "version"), *_versions()], None))
    return result


def cards(found: Adaptation) -> dict[str, str]:
    """Return the texts of both cards by their suffix."""
    parts = sections(found)
    return {"html": html_card(found, parts), "md": markdown_card(found, parts)}


def html_card(found: Adaptation, known: Sections | None = None) -> str:
    """Return a card as an HTML file; it has pictures if matplotlib is installed."""
    parts = []
    for title, sentences, rows, draw in sections(found) if known is None else known:
        parts.append(f"<h2>{escape(title)}</h2>")
        parts += [f"<p>{escape(sentence)}</p>" for sentence in sentences]
        if rows:
            lines = [
                "<tr>" + "".join(f"<{kind}>{escape(cell)}</{kind}>" for cell in row) + "</tr>"
                for kind, row in zip(["th"] + ["td"] * (len(rows) - 1), rows, strict=True)
            ]
            parts.append(f"<table>{''.join(lines)}</table>")
        if draw is not None:
            parts.append(_picture(draw, len(rows) - 1))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(_title(found))}</title>'
        f"<style>{STYLE}</style></head><body><h1>{escape(_title(found))}: "
        f'<span class="{found.outcome}">{found.outcome}</span></h1>{"".join(parts)}</body></html>'
    )


def markdown_card(found: Adaptation, known: Sections | None = None) -> str:
    """Return a card as Markdown, with the metadata that model hubs read."""
    lines = ["---", "library_name: ortlearn", "tags:", "- onnx", f"- {found.old.task}", "---", ""]
    lines += [f"# {_title(found)}: {found.outcome}", ""]
    texts = {
        title: _markdown(sentences, rows)
        for title, sentences, rows, _ in (sections(found) if known is None else known)
    }
    try:
        from skops.card import Card
    except ImportError:
        return "\n".join(lines + [f"## {title}\n\n{text}\n" for title, text in texts.items()])
    card = Card(None, template=None, model_diagram=False)
    for title, text in texts.items():
        card.add(**{PLACES.get(title, f"{DESCRIPTION}/{title}"): text})
    return "\n".join(lines) + card.render()


def _markdown(sentences: list[str], rows: Rows) -> str:
    """Return sentences and a table."""
    lines = [line for sentence in sentences for line in (_plain(sentence), "")]
    if rows:
        cells = [[_plain(cell) for cell in row] for row in rows]
        lines += [f"| {' | '.join(row)} |" for row in cells]
        lines.insert(len(lines) - len(cells) + 1, f"|{'---|' * len(cells[0])}")
    return "\n".join(lines)


def _title(found: Adaptation) -> str:
    return f"Adaptation of {found.old.path}"


def _plain(text: str) -> str:
    """Return a text without marks of Markdown tables and HTML."""
    return escape(text, quote=False).replace("|", "\\|").replace("\n", " ")


def _number(value: float) -> str:
    return f"{value:.4g}"


def _outcome(found: Adaptation) -> list[str]:
    sentences = [
        f"The model is {found.outcome} ({found.candidate}); {found.n_samples} new samples for training, "
        f"{found.n_held_out} held out."
    ]
    sentences += [f"Reason: {reason}." for reason in found.reasons]
    if found.verdict is not None and found.verdict.size is not None:
        old, new = (1000 * found.verdict.latency[name] for name in ("old", "new"))
        sentences.append(
            f"ONNX file of {found.verdict.size} bytes; predictions of the held-out samples take {new:.3g} ms "
            f"({old:.3g} ms before)."
        )
    return sentences


def _scores(verdict: Any) -> Rows:
    rows = [("metric", "old", "new", "difference")]
    for name, parts in verdict.scores.items():
        cells = []
        for part in ("old", "new", "difference"):
            interval = parts[part]["interval"]
            bounds = "" if interval is None else f" [{_number(interval[0])}, {_number(interval[1])}]"
            cells.append(_number(parts[part]["value"]) + bounds)
        rows.append((name, *cells))
    return rows


def _drift(drift: Any) -> Sections:
    """Return the parts about drift."""
    titles = ("column", "test", "adjusted p-value", "stability index", "missing before", "missing now")
    rows = [
        (
            item.name + (" (drifted)" if item.drifted else ""),
            item.test,
            _number(item.adjusted_p_value),
            _number(item.stability),
            f"{item.missing[0]:.1%}",
            f"{item.missing[1]:.1%}",
        )
        for item in drift.columns[:SHOWN]
    ]
    n_drifted = sum(item.drifted for item in drift.columns)
    sentences = [f"{n_drifted} of {len(drift.columns)} columns have drifted."]
    prediction = drift.prediction
    sentences.append(
        f"Predictions: {prediction.test} test, p-value {_number(prediction.p_value)}, stability index "
        f"{_number(prediction.stability)}."
    )
    test = drift.two_samples
    if test is not None:
        first = ", ".join(f"{name} ({share:.0%})" for name, share in list(test.columns.items())[:5])
        sentences.append(
            f"A classifier tells new samples from the reference with accuracy {test.accuracy:.3f} (p-value "
            f"{_number(test.p_value)}), by the columns {first}."
        )
    picture = partial(_draw_drift, drift.columns[:SHOWN])
    result: Sections = [("Drift of columns", sentences, [titles, *rows], picture)]
    if drift.scores:
        names = list(next(iter(drift.scores.values())))
        table = [
            (
                name,
                *(_number(drift.scores[part][name]) for part in drift.scores if name in drift.scores[part]),
            )
            for name in names
        ]
        result.append(("Scores of the old model", [], [("metric", *drift.scores), *table], None))
    return result


def _changes(changes: list[WeightChange]) -> Rows:
    """Return the table of changed weights."""
    titles = ("weight", "norm of the change", "relative to the weight", "largest change")
    rows = [
        (change.name, _number(change.norm), _number(change.relative), _number(change.largest))
        for change in changes
    ]
    return [titles, *rows]


def _versions() -> list[tuple[str, str]]:
    rows = [("Python", platform.python_version())]
    for package in PACKAGES:
        try:
            rows.append((package, version(package)))
        except PackageNotFoundError:
            continue
    return rows


def _picture(draw: Callable[[Any], Any], n_bars: int) -> str:
    """Return a picture with bars as SVG; empty without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return ""
    figure = Figure(figsize=(7, 0.6 + 0.28 * n_bars), layout="constrained")
    draw(figure.subplots())
    content = io.StringIO()
    figure.savefig(content, format="svg", metadata={"Date": None})
    text = content.getvalue()
    return text[text.index("<svg") :]


def _draw_drift(columns: list[ColumnDrift], axes: Any) -> None:
    """Draw bars of the stability index."""
    places = np.arange(len(columns))
    colors = ["#c44" if item.drifted else "#999" for item in columns]
    axes.barh(places, [item.stability for item in columns], color=colors)
    axes.set_yticks(places, [item.name[:30] for item in columns])
    axes.invert_yaxis()
    axes.set_xlabel("population stability index (red: drifted)")


def _draw_changes(changes: list[WeightChange], axes: Any) -> None:
    """Draw bars of the changes of weights."""
    WeightChangesDisplay(changes).plot(axes, most=SHOWN, color="#69c")
