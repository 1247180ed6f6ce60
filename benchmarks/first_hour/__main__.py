"""Measure every pair: ``python -m benchmarks.first_hour [--jobs 2] [--only PATTERN] [--write FILE.json]``.

Prints a table, the largest losses against scikit-learn first, and a summary. ``--params`` sets parameters of
our estimator: ``--params '{"learning_rate": "LBFGS"}'``.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

from benchmarks.first_hour.measurement import measure
from benchmarks.first_hour.pairs import PAIRS
from benchmarks.first_hour.report import TARGETS, summary, table
from benchmarks.table_command import run_table

if __name__ == "__main__":
    run_table("Default parameters, against scikit-learn.", PAIRS, measure, [table], summary, TARGETS)
