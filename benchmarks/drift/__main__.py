"""Measure every case: ``python -m benchmarks.drift [--jobs 2] [--only PATTERN] [--write FILE.json]``.

Prints a table, the cases where a warm start is furthest behind the best first, a table of means, and a
summary. ``--params`` sets parameters of our estimator: ``--params '{"learning_rate": 0.001}'``.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

from benchmarks.drift.cases import CASES
from benchmarks.drift.measurement import measure
from benchmarks.drift.report import TARGETS, means, summary, table
from benchmarks.table_command import run_table

if __name__ == "__main__":
    run_table(
        "Warm starts after a drift, against scikit-learn.", CASES, measure, [table, means], summary, TARGETS
    )
