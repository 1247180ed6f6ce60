"""Write performance.md, its file of tables and its pictures from a run: ``python -m benchmarks.report``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import tables
from benchmarks.contenders import CONTENDERS
from benchmarks.measures.programs import Sheet
from benchmarks.performance_page import OTHER, one_thread, page
from benchmarks.plots import plot_growth, plot_ratios
from benchmarks.tables import Table

__all__ = ["write_report"]


def _machine(results: dict[str, Any]) -> Table:
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    rows = [[f"{results['machine']}; {versions}. {results['rounds']} rounds."]]
    for name, why in results.get("left_out", {}).items():
        rows.append([f"Left out: {CONTENDERS[name].label}: {why}."])
    return Table("Machine", "", ["machine"], rows)


def _elsewhere(path: Path, machine: Table) -> list[Table]:
    """Return the times per batch of a former run on another kind of processor, with its machine."""
    if not path.exists():
        return []
    sections: dict[str, list[Table]] = {}
    for each in tables.read_tables(path):
        sections.setdefault(each.section, []).append(each)
    runs = [sections["Machine"][:1] + one_thread(sections.get("Time per batch", [])), sections.get(OTHER, [])]
    for known in runs:
        if len(known) > 1 and _processor(known[0]) != _processor(machine):
            return [
                Table(OTHER, each.title, each.header, each.rows[:1] if each is known[0] else each.rows)
                for each in known
            ]
    return []


def _processor(machine: Table) -> str:
    return machine.rows[0][0].partition(",")[0]


def _per_batch(results: dict[str, Any]) -> list[Table]:
    return [
        tables.per_batch_table(case, threads)
        for threads, cases in results["per_batch"].items()
        for case in cases.values()
    ]


def _batch_sizes(results: dict[str, Any]) -> list[Table]:
    titles = {name: case["title"].rpartition(",")[0] for name, case in results["to_loss"].items()}
    return [tables.batch_size_table(titles[name], found) for name, found in results["batch_sizes"].items()]


def _sheets(section: str, name: str) -> Callable[[dict[str, Any]], list[Table]]:
    def tables_of(results: dict[str, Any]) -> list[Table]:
        found = [Sheet(**sheet) for sheet in results[name]]
        return [Table(section, sheet.text, sheet.header, sheet.rows) for sheet in found]

    return tables_of


#: Sections of a run in the order of the page, and their tables.
PARTS: dict[str, Callable[[dict[str, Any]], list[Table]]] = {
    "fits": _sheets("Whole fits", "fits"),
    "per_batch": _per_batch,
    "to_loss": lambda results: [tables.to_loss_table(case) for case in results["to_loss"].values()],
    "batch_sizes": _batch_sizes,
    "models": _sheets("Models compared with their scikit-learn fit", "models"),
    "searches": _sheets("Searches", "searches"),
    "predictions": _sheets("Predictions", "predictions"),
    "streams": _sheets("Streaming from parquet", "streams"),
    "growth": lambda results: [tables.growth_table(results["growth"])],
    "memory": lambda results: [tables.memory_table(case) for case in results["memory"].values()],
    "start_up": lambda results: [tables.start_up_table(results["start_up"])],
    "agreement": lambda results: [tables.agreement_table(results["agreement"])],
}


def write_report(results: dict[str, Any], folder: Path) -> Path:
    """Write the page, its file and its figures from the sections that were measured.

    Parameters
    ----------
    results : dict
        What ``benchmarks.run.measure`` returns.
    folder : Path
        Where ``performance.md``, ``performance.csv`` and ``images/`` go.

    Returns
    -------
    Path
        The page.
    """
    (folder / "images").mkdir(parents=True, exist_ok=True)
    path = folder / "performance.md"
    found = [_machine(results)]
    for section, tables_of in PARTS.items():
        found += tables_of(results) if results.get(section) else []
        if section == "per_batch":
            found += _elsewhere(path.with_suffix(".csv"), found[0])
    found.append(tables.target_table(results))
    if results.get("per_batch"):
        plot_ratios(results["per_batch"]["1"], folder / "images" / "per_batch.png")
    if results.get("growth"):
        plot_growth(results["growth"], folder / "images" / "growth.png")
    tables.write_tables(path, found)
    path.write_text(page(found), encoding="utf-8")
    return path


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    root = Path(__file__).parent.parent
    print(write_report(json.loads((root / "bench-output" / "results.json").read_text()), root / "docs"))
