"""The table and its summary."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.table import Table

from benchmarks.first_hour.measurement import Measured, Training

__all__ = ["TARGETS", "summary", "table"]

#: Difference of scores that counts as none.
CLOSE = 0.02
#: Share of the way to the optimum that may be left.
NEAR = 0.01
#: What the summary should reach.
TARGETS = {"fresh within 0.02 of scikit-learn": 0.9, "warm not worse than its start by 0.02": 0.98}


def difference(training: Training, reference: Training) -> float:
    """Return by how much a training is better than another; minus infinity for an error."""
    if training.error or np.isnan(training.score):
        return -np.inf
    return training.score - reference.score


def _share(found: list[bool]) -> float:
    return float(np.mean(found)) if found else float("nan")


def summary(rows: list[Measured]) -> dict[str, Any]:
    """Return the summary of the table.

    Parameters
    ----------
    rows : list of Measured
        Rows.

    Returns
    -------
    dict
        Shares of the pairs, numbers of errors and warnings, and median times.
    """
    fresh_gaps = [row.fresh.gap for row in rows if row.fresh.gap is not None]
    convex = sum(row.sklearn.gap is not None for row in rows)
    return {
        "pairs": len(rows),
        "fresh within 0.02 of scikit-learn": _share(
            [difference(row.fresh, row.sklearn) >= -CLOSE for row in rows]
        ),
        "warm not worse than its start by 0.02": _share(
            [difference(row.warm, row.sklearn) >= -CLOSE for row in rows]
        ),
        "errors of fresh": sum(bool(row.fresh.error) for row in rows),
        "errors of warm": sum(bool(row.warm.error) for row in rows),
        "fits from fresh weights that warn": sum(bool(row.fresh.warnings) for row in rows),
        "warm starts that warn": sum(bool(row.warm.warnings) for row in rows),
        "convex pairs": convex,
        "fresh within 1 % of the optimum": sum(gap <= NEAR for gap in fresh_gaps) / convex
        if convex
        else float("nan"),
        "median gap of fresh": float(np.median(fresh_gaps)) if fresh_gaps else float("nan"),
        "median seconds of fresh": float(np.median([row.fresh.seconds for row in rows])),
        "median seconds of warm": float(np.median([row.warm.seconds for row in rows])),
        "median time of fresh in fits of scikit-learn": float(
            np.median([row.fresh.seconds / row.sklearn.seconds for row in rows])
        ),
    }


def _result(training: Training) -> str:
    if training.error:
        return f"[red]{training.error.partition(':')[0]}[/red]"
    return f"{training.score:.3f}" if training.score > -1000 else f"{training.score:.1e}"


def table(rows: list[Measured]) -> Table:
    """Return the rows, the worst first, as a table."""
    found = Table(title="Default parameters: test scores")
    found.add_column("data, features, model", no_wrap=True)
    for name in ("score", "scikit-learn", "fresh", "warm", "gap fresh", "gap warm", "seconds", "rate"):
        found.add_column(name, justify="left" if name in ("score", "rate") else "right")
    for row in sorted(rows, key=lambda row: difference(row.fresh, row.sklearn)):
        gaps = ["" if training.gap is None else f"{training.gap:.1e}" for training in (row.fresh, row.warm)]
        scores = [_result(training) for training in (row.sklearn, row.fresh, row.warm)]
        seconds = f"{row.sklearn.seconds:.2f} {row.fresh.seconds:.2f} {row.warm.seconds:.2f}"
        found.add_row(row.name, row.metric, *scores, *gaps, seconds, row.fresh.rate)
    return found
