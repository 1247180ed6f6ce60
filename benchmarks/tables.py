"""Tables of a run."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.contenders import CONTENDERS, OURS
from benchmarks.csv_table import write_beside
from benchmarks.figures import is_resolved, median, number, ratio, slope, spread
from benchmarks.targets import evaluate

__all__ = [
    "Table",
    "agreement_table",
    "batch_size_table",
    "growth_table",
    "memory_table",
    "per_batch_table",
    "read_tables",
    "start_up_table",
    "table",
    "target_table",
    "to_loss_table",
    "write_tables",
]

#: Columns of the file of all tables, which has a line for each cell.
TITLES = ("section", "table", "row", "column", "value")


@dataclass
class Table:
    """A table of the file of all results.

    Attributes
    ----------
    section : str
        Section of the page.
    title : str
        What the table shows.
    header : list of str
        Names of the columns.
    rows : list of list of str
        Cells.
    """

    section: str
    title: str
    header: list[str]
    rows: list[list[str]]

    def column(self, title: str) -> list[str]:
        """Return the cells of a column."""
        place = self.header.index(title)
        return [row[place] for row in self.rows]

    def markdown(self) -> str:
        """Return the table; columns after the first one are aligned to the right if they have numbers."""
        numbers = [all(row[i][:1] in "0123456789-*" for row in self.rows) for i in range(len(self.header))]
        left = next((i for i in range(1, len(numbers)) if numbers[i]), len(numbers))
        return table(self.header, self.rows, left)


def write_tables(page: Path, tables: list[Table]) -> Path:
    """Write the file of all results beside a page; row 0 of a table has its title."""
    cells: list[tuple[str, int, int, str, str]] = []
    for place, each in enumerate(tables, 1):
        cells.append((each.section, place, 0, "title", each.title))
        cells += [
            (each.section, place, number, title, cell)
            for number, row in enumerate(each.rows, 1)
            for title, cell in zip(each.header, row, strict=True)
        ]
    return write_beside(page, TITLES, cells)


def read_tables(path: Path) -> list[Table]:
    """Return the tables of a file of all results."""
    found: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for cell in csv.DictReader(file):
            rows = found.setdefault((cell["section"], cell["table"]), {})
            rows.setdefault(cell["row"], {})[cell["column"]] = cell["value"]
    return [
        Table(section, title["title"], list(rows[0]), [list(row.values()) for row in rows])
        for (section, _), (title, *rows) in ((key, found[key].values()) for key in found)
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


def target_table(results: dict[str, Any]) -> Table:
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
    return Table("Targets", "", ["quantity", "target", "measured", "reached"], rows)


def per_batch_table(case: dict[str, Any], threads: str) -> Table:
    """Return microseconds per batch of one case with a number of threads."""
    times = case["times"]
    rows = [
        [_label(name), number(median(values)), spread(values), _over(times, name)]
        if is_resolved(values)
        else [_label(name), "not resolved", "-", "-"]
        for name, values in times.items()
    ]
    title = f"{case['title']}; {'one thread' if threads == '1' else f'{threads} threads'}"
    header = ["contender", "microseconds per batch", "smallest to largest", "ratio"]
    return Table("Time per batch", title, header, rows)


def to_loss_table(case: dict[str, Any]) -> Table:
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
    header = ["contender", "epochs", "seconds", "smallest to largest", "ratio"]
    title = f"{case['title']}, to a loss of {case['loss']:.5f}"
    return Table("Time to scikit-learn's loss", title, header, rows)


def batch_size_table(title: str, rows: list[dict[str, Any]]) -> Table:
    """Return our seconds for every size of a batch."""
    lines = []
    for row in rows:
        if not row["times"]:
            lines.append([str(row["batch_size"]), "-", "-", "not reached", "-"])
            continue
        seconds = [number(median(row["times"])), spread(row["times"])]
        lines.append([str(row["batch_size"]), f"{row['rate']:g}", str(row["epochs"]), *seconds])
    header = ["batch size", "best rate", "epochs", "seconds", "smallest to largest"]
    return Table("Batch size", title, header, lines)


def memory_table(case: dict[str, Any]) -> Table:
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
    title = f"{case['title']}, {case['data'] / 2**20:.1f} MiB"
    return Table("Memory", title, ["contender", "libraries, MiB", "training, MiB", "training / data"], rows)


def start_up_table(found: dict[str, Any]) -> Table:
    """Return the start-up times."""
    kinds = ["import", "first", "other", "again"]
    rows = [
        [_label(name), *(f"{median(times[kind]):.3f}" for kind in kinds)]
        for name, times in found["times"].items()
        if times
    ]
    header = ["contender", "import", "first fit", "another network", "the same again"]
    return Table("Start-up", "", header, rows)


def growth_table(growth: dict[str, Any]) -> Table:
    """Return the slopes of cost."""
    names = list(next(iter(growth.values()))["times"])
    rows = []
    for what, found in growth.items():
        unit = "an epoch" if what == "samples" else "a batch"
        slopes = [f"{slope(found['values'], found['times'][name]):.2f}" for name in names]
        rows.append([f"{unit} against {what}", f"{found['values'][0]} to {found['values'][-1]}", *slopes])
    return Table("Growth of the time", "", ["cost of", "values", *map(_label, names)], rows)


def agreement_table(found: dict[str, Any]) -> Table:
    """Return the differences of final losses."""
    rows = [
        [name, str(len(case["losses"])), f"{max(case['losses'].values()):.6f}", f"{case['spread']:.1e}"]
        for name, case in found.items()
    ]
    return Table("Method", "", ["case", "contenders", "largest loss", "relative difference"], rows)
