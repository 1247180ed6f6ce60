"""Cost of a round on a Dask cluster, speed-up of two processes, and estimates for larger clusters.

``python -m benchmarks.bench_dask --write docs/explanation/scaling.md`` (5 minutes) starts a cluster of two
processes of one thread, measures rounds against bytes and shards, passes over two shards on one process and
on two, and the time of a sample, fits the model of ``benchmarks/shards/cost_model.py`` to them, writes the
tables of the page. ``--address tcp://...`` measures rounds on an existing cluster.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import json
from dataclasses import asdict
from datetime import date
from pathlib import Path

from benchmarks.figures import number
from benchmarks.machine import describe
from benchmarks.shards.cluster import BATCH, ROWS_OF_SHARD, SCALED, Times, measure, n_weights
from benchmarks.shards.cost_model import Costs, estimate, fit_rounds, fit_samples
from benchmarks.shards.report import write_block

__all__ = ["costs_of", "page_part", "plans_table", "rounds_table"]

#: Load average above which two processes are not compared with one.
CALM = 1.0
#: Trainings to estimate: samples, columns, layers, numbers of workers.
PLANS = (
    (1e7, 100, (100, 50), (2, 16, 64, 256)),
    (1e9, 100, (100, 50), (2, 64, 1024, 4096)),
    (1e9, 500, (512, 256), (2, 64, 1024, 4096)),
)


def table(titles: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown; all columns but the first are numbers."""
    lines = [f"| {' | '.join(titles)} |", "|---|" + "---:|" * (len(titles) - 1)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def rounds_table(rounds: list[tuple[int, int, float]]) -> str:
    """Return a table of milliseconds with a row per size and a column per number of shards."""
    cells = {(count, size): seconds for count, size, seconds in rounds}
    counts, sizes = sorted({count for count, _ in cells}), sorted({size for _, size in cells})
    rows = [[f"{size:,}", *(number(1e3 * cells[count, size]) for count in counts)] for size in sizes]
    return table(["bytes of a model", *(f"{count} shards" for count in counts)], rows)


def time_text(seconds: float) -> str:
    """Return a time with at most three digits and a suitable unit."""
    for unit, size in (("h", 3600.0), ("min", 60.0), ("s", 1.0)):
        if seconds >= 2 * size:
            return f"{number(seconds / size)} {unit}"
    return f"{number(1e3 * seconds)} ms"


def plans_table(costs: Costs) -> str:
    """Return a table of the estimates for ``PLANS``, with the quantities that are extrapolated."""
    rows = []
    for n_samples, columns, layers, counts in PLANS:
        weights = n_weights(columns, layers)
        for workers in counts:
            found = estimate(costs, n_samples, columns, weights, workers)
            rows.append(
                [
                    f"{n_samples:,.0f} × {columns}, {weights:,} weights",
                    f"{workers:,}",
                    time_text(found.compute),
                    time_text(found.communication),
                    f"{found.sent / 1e6:,.0f} MB",
                    f"{number(found.speedup)}",
                    f"{found.updates:,.0f}",
                    "; ".join(text.partition(" (")[0] for text in found.extrapolated) or "nothing",
                ]
            )
    titles = [
        "samples × columns",
        "workers",
        "training",
        "rounds",
        "sent",
        "speed-up",
        "updates",
        "extrapolated",
    ]
    return table(titles, rows)


def costs_of(times: Times) -> Costs:
    """Return costs fitted to measured times."""
    counts, sizes, seconds = zip(*times.rounds, strict=True)
    columns, weights, of_sample = zip(*times.samples, strict=True)
    # If other programs use the second core, two processes are not faster.
    efficiency = min(1.0, min(times.one) / min(times.two) / 2) if times.load < CALM else 1.0
    return Costs(fit_rounds(counts, sizes, seconds), fit_samples(columns, weights, of_sample), efficiency)


def ratio_text(times: Times) -> str:
    """Return a sentence on the speed-up of two processes, if the load was low enough."""
    if times.load >= CALM:
        return (
            f"Two processes were not compared with one: other programs kept the cores busy (load average "
            f"{times.load:.1f}). The model takes workers not to slow one another."
        )
    one, two = min(times.one), min(times.two)
    ratios = [a / b for a, b in zip(times.one, times.two, strict=True)]
    network = f"{SCALED[0]}-{'-'.join(map(str, SCALED[1]))}-1"
    return (
        f"A pass of `DaskOrtGradientOptimizer` over two shards of {ROWS_OF_SHARD:,} samples (network "
        f"{network}, batches of {BATCH}) takes {one:.2f} s on one process and {two:.2f} s on two, rounds "
        f"included: a ratio of **{one / two:.2f}**, of the fastest passes. Ratios of {len(ratios)} trainings "
        f"in turns are {min(ratios):.2f} to {max(ratios):.2f}."
    )


def page_part(times: Times, day: str) -> str:
    """Return the tables with their titles."""
    costs = costs_of(times)
    fixed, per_shard, per_byte = (1e3 * term for term in costs.rounds.terms)
    constant, per_column, per_weight = (1e6 * term for term in costs.samples.terms)
    rows = [[f"{columns:,}", f"{weights:,}", number(1e6 * s)] for columns, weights, s in times.samples]
    return "\n\n".join(
        [
            f"Measured on {day}: {describe()}, load average {times.load:.1f} before it, two worker processes "
            "of one thread. Milliseconds of the fastest round, without training:",
            rounds_table(times.rounds),
            f"A sum of {fixed:.2f} ms, {per_shard:.2f} ms for each shard and {1e6 * per_byte:.2f} ms for "
            f"each megabyte of each shard is within {100 * costs.rounds.error:.0f} % of them.",
            ratio_text(times),
            f"Microseconds of a sample of a pass, one thread, Adam, batches of {BATCH}:",
            table(["columns", "weights", "µs"], rows),
            f"A sum of {constant:.2f} µs, {1e3 * per_column:.2f} ns for each column and "
            f"{1e3 * per_weight:.3f} ns for each weight is within {100 * costs.samples.error:.0f} % of them.",
            "A pass with one average and one shard a worker, by the model (computed, not measured):",
            plans_table(costs),
        ]
    )


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", help="scheduler of a cluster to measure rounds on")
    parser.add_argument(
        "--json", type=Path, help="file for all times; read, and nothing measured, where it exists"
    )
    parser.add_argument("--write", type=Path, help="page to write, such as docs/explanation/scaling.md")
    arguments = parser.parse_args()
    if arguments.json and arguments.json.exists():
        record = json.loads(arguments.json.read_text())
    else:
        record = {"day": f"{date.today():%Y-%m-%d}", **asdict(measure(arguments.address))}
    if arguments.json:
        arguments.json.write_text(json.dumps(record))
    text = page_part(Times(**{name: value for name, value in record.items() if name != "day"}), record["day"])
    print(text)
    if arguments.write:
        write_block(arguments.write, "rounds", text)


if __name__ == "__main__":
    main()
