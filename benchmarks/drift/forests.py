"""Measure the cases of forests: ``python -m benchmarks.drift.forests``, with the options of the others."""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

from benchmarks.drift.cases import FORESTS
from benchmarks.drift.measurement import measure
from benchmarks.drift.report import TARGETS, means, summary, table
from benchmarks.table_command import run_table

if __name__ == "__main__":
    run_table(
        "Warm starts of forests after a drift, against scikit-learn.",
        FORESTS,
        measure,
        [table, means],
        summary,
        TARGETS,
    )
