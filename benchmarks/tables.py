"""Tables of a run, in Markdown."""

from __future__ import annotations

from typing import Any

from benchmarks.contenders import CONTENDERS, OURS
from benchmarks.figures import is_resolved, median, number, ratio, slope, spread
from benchmarks.targets import SUMMARY, evaluate

__all__ = [
    "agreement_table",
    "batch_size_table",
    "growth_table",
    "memory_table",
    "per_batch_table",
    "start_up_table",
    "summary_table",
    "target_table",
    "to_loss_table",
]


def table(header: list[str], rows: list[list[str]], left: int = 1) -> str:
    """Return a Markdown table; columns after the first ones are aligned to the right."""
    marks = ["---"] * left + ["---:"] * (len(header) - left)
    lines = [header, marks, *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _label(name: str) -> str:
    return CONTENDERS[name].label


def _over(times: dict[str, list[float]], name: str) -> str:
    """Return our time over a contender's."""
    if OURS not in times or not is_resolved(times[OURS]):
        return "-"
    return f"{ratio(times[OURS], times[name]):.2f}"


def target_table(results: dict[str, Any]) -> str:
    """Return the targets, and whether they were reached."""
    rows = []
    for target, value in evaluate(results):
        if value is None:
            rows.append([target.text, target.bounds, "-", "not measured"])
            continue
        bound = target.low if value < target.low else target.high
        missed = f"{abs(value / bound - 1):.0%}" if bound else f"{abs(value):.3g}"
        verdict = "yes" if target.reached(value) else f"no, by {missed}"
        rows.append([target.text, target.bounds, f"{value:.3g}", verdict])
    return table(["quantity", "target", "measured", "reached"], rows)


def summary_table(results: dict[str, Any]) -> str:
    """Return the summary of the measured figures."""
    rows, title = [], ""
    for text, other, find in SUMMARY:
        title = text or title
        try:
            rows.append([title, other, f"{find(results):.2f}"])
        except KeyError:
            continue
        title = ""
    return table(["what", "compared with", "ratio"], rows, left=2)


def per_batch_table(case: dict[str, Any]) -> str:
    """Return microseconds per batch of one case."""
    times = case["times"]
    rows = [
        [_label(name), number(median(values)), spread(values), _over(times, name)]
        if is_resolved(values)
        else [_label(name), "not resolved", "-", "-"]
        for name, values in times.items()
    ]
    return table(["contender", "microseconds per batch", "smallest to largest", "ratio"], rows)


def to_loss_table(case: dict[str, Any]) -> str:
    """Return seconds to scikit-learn's loss of one case."""
    rows = []
    for name in [case["reference"], *case["epochs"]]:
        label = _label(name)
        if name not in case["times"]:
            rows.append([label, "-", "not reached", "-", "-"])
            continue
        values = case["times"][name]
        epochs = "its own" if name == case["reference"] else str(case["epochs"][name])
        rows.append([label, epochs, number(median(values)), spread(values), _over(case["times"], name)])
    return table(["contender", "epochs", "seconds", "smallest to largest", "ratio"], rows)


def batch_size_table(rows: list[dict[str, Any]]) -> str:
    """Return our seconds for every size of a batch."""
    lines = []
    for row in rows:
        if not row["times"]:
            lines.append([str(row["batch_size"]), "-", "-", "not reached", "-"])
            continue
        seconds = [number(median(row["times"])), spread(row["times"])]
        lines.append([str(row["batch_size"]), f"{row['rate']:g}", str(row["epochs"]), *seconds])
    return table(["batch size", "best rate", "epochs", "seconds", "smallest to largest"], lines, left=0)


def memory_table(case: dict[str, Any]) -> str:
    """Return the peak memory of one case."""
    rows = [
        [
            _label(name),
            f"{case['libraries'][name] / 2**20:.0f}",
            f"{peak / 2**20:.0f}",
            f"{peak / case['data']:.2f}",
        ]
        for name, peak in case["peaks"].items()
    ]
    return table(["contender", "libraries, MiB", "training, MiB", "training / data"], rows)


def start_up_table(found: dict[str, Any]) -> str:
    """Return the start-up times."""
    kinds = ["import", "first", "other", "again"]
    rows = [
        [_label(name), *(f"{median(times[kind]):.3f}" for kind in kinds)]
        for name, times in found["times"].items()
        if times
    ]
    header = ["contender", "import", "first fit", "another network", "the same again"]
    return table(header, rows)


def growth_table(growth: dict[str, Any]) -> str:
    """Return the slopes of cost."""
    names = list(next(iter(growth.values()))["times"])
    rows = []
    for what, found in growth.items():
        unit = "an epoch" if what == "samples" else "a batch"
        slopes = [f"{slope(found['values'], found['times'][name]):.2f}" for name in names]
        rows.append([f"{unit} against {what}", f"{found['values'][0]} to {found['values'][-1]}", *slopes])
    return table(["cost of", "values", *map(_label, names)], rows, left=2)


def agreement_table(found: dict[str, Any]) -> str:
    """Return the differences of final losses."""
    rows = [
        [name, str(len(case["losses"])), f"{max(case['losses'].values()):.6f}", f"{case['spread']:.1e}"]
        for name, case in found.items()
    ]
    return table(["case", "contenders", "largest loss", "relative difference"], rows)
