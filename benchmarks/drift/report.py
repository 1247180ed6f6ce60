"""The table and its summary."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from rich import box
from rich.table import Table

from benchmarks.drift.measurement import CONTENDERS, Row

__all__ = ["TARGETS", "behind_best", "below_old", "means", "summary", "table"]

#: Difference of accuracies that counts as none.
CLOSE = 0.01
#: Loss of accuracy that counts as harm.
HARM = 0.02
#: What the summary should reach.
TARGETS = {"warm best or within 0.01 of it": 0.9, "warm not below the old model by 0.02": 0.98}


def _accuracy(row: Row, contender: str) -> float:
    accuracy = row.adapted[contender].accuracy
    return -np.inf if np.isnan(accuracy) else accuracy


def behind_best(row: Row) -> float:
    """Return how far the warm start's accuracy is below the best one."""
    return max(_accuracy(row, contender) for contender in CONTENDERS) - _accuracy(row, "warm start")


def below_old(row: Row) -> float:
    """Return how far the warm start's accuracy is below that of the old model."""
    return _accuracy(row, "old model") - _accuracy(row, "warm start")


def _share(found: Iterable[bool]) -> float:
    return float(np.mean(list(found)))


def summary(rows: list[Row]) -> dict[str, Any]:
    """Return shares of the cases, and means of each contender over the cases in which it did not fail."""
    found = {
        "cases": len(rows),
        "warm best or within 0.01 of it": _share(behind_best(row) <= CLOSE for row in rows),
        "warm not below the old model by 0.02": _share(below_old(row) <= HARM for row in rows),
        "warm Brier score not above the old model's": _share(
            row.adapted["warm start"].brier <= row.adapted["old model"].brier for row in rows
        ),
        "errors of warm": sum(bool(row.adapted["warm start"].error) for row in rows),
    }
    for part, title in (_drift, "{} drift"), (_scaling, "{} features"), (_n_new, "{} new samples"):
        for value, group in _groups(rows, part).items():
            name = f"warm best or within 0.01, {title.format(value)}"
            found[name] = _share(behind_best(row) <= CLOSE for row in group)
    for contender in CONTENDERS:
        for what in ("accuracy", "brier", "seconds"):
            found[f"mean {what}, {contender}"] = _mean(rows, contender, what)
    return found


def _drift(row: Row) -> str:
    return row.drift


def _scaling(row: Row) -> str:
    return row.scaling


def _n_new(row: Row) -> int:
    return row.n_new


def _groups(rows: list[Row], key: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    return {value: [row for row in rows if key(row) == value] for value in dict.fromkeys(map(key, rows))}


def _mean(rows: list[Row], contender: str, what: str) -> float:
    return float(np.nanmean([getattr(row.adapted[contender], what) for row in rows]))


def means(rows: list[Row]) -> Table:
    """Return the means by drift and number of new samples: the table of docs/howto/adapt_to_new_data.md."""
    found = Table("drift", "new samples", *CONTENDERS, box=box.MARKDOWN, title="Mean accuracy (Brier score)")
    for (drift, n_new), group in _groups(rows, lambda row: (row.drift, row.n_new)).items():
        cells = [
            f"{_mean(group, contender, 'accuracy'):.3f} ({_mean(group, contender, 'brier'):.3f})"
            for contender in CONTENDERS
        ]
        found.add_row(drift, str(n_new), *cells)
    return found


def table(rows: list[Row]) -> Table:
    """Return the table, sorted by how far the warm start is behind."""
    found = Table(title="Models after a drift: accuracy and Brier score on new test samples")
    found.add_column("data, drift, features, model, seed", no_wrap=True)
    found.add_column("new samples", justify="right")
    for contender in CONTENDERS:
        found.add_column(contender, justify="right", no_wrap=True)
    found.add_column("seconds", justify="right")
    for row in sorted(rows, key=behind_best, reverse=True):
        cells = []
        for contender in CONTENDERS:
            result = row.adapted[contender]
            error = result.error.partition(":")[0]
            cells.append(f"[red]{error}[/red]" if error else f"{result.accuracy:.3f}  {result.brier:.3f}")
        seconds = "  ".join(f"{row.adapted[contender].seconds:.2f}" for contender in CONTENDERS[1:])
        found.add_row(row.name, str(row.n_new), *cells, seconds)
    return found
