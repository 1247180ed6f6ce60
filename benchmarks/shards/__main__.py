"""Loss and passes of averaging over shards, against one machine with the same passes.

``python -m benchmarks.shards --write docs/explanation/scaling.md`` (half an hour on one core) trains six
problems over 1, 4, 16 and 64 shards, one shard after another on one machine, with three rates and nine ways
to average, and writes the tables of the page and a file of all losses beside it. ``--quick`` takes one seed,
two problems and fewer shards.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import json
import time
import warnings
from collections.abc import Container, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path

from benchmarks.csv_table import write_beside
from benchmarks.shards.problems import BATCH, PROBLEMS, Problem
from benchmarks.shards.report import (
    Run,
    losses_rows,
    losses_table,
    one_machine_table,
    write_block,
)
from benchmarks.shards.rounds import Shards
from benchmarks.shards.strategies import SCALES, STRATEGIES

__all__ = ["measure"]

SEEDS, COUNTS = (0, 1), (1, 4, 16, 64)
#: Problems that are also trained with samples sorted by label, over how many shards, and how.
SORTED, SORTED_COUNT = ("linear, SGD", "network, Adam", "sparse text, Adam"), 16
SORTED_STRATEGIES = ("once a pass", "4 times a pass", "16 times a pass", "none: one shard alone")
#: Ways to average whose losses are shown; a file beside the page has all of them.
SHOWN = ("once a pass", "once a pass, batches of 32 / k")
SORTED_SHOWN = ("once a pass", "16 times a pass")


def measure(
    problem: Problem, n_shards: int, seed: int, by_label: bool, done: Container[tuple]
) -> Iterator[Run]:
    """Yield the runs of a problem over some shards that are not done; one shard has the scales of four."""
    strategies = STRATEGIES[: 1 if n_shards == 1 else None]
    if by_label:
        strategies = tuple(s for s in strategies if s.name in SORTED_STRATEGIES)
    key = problem.name, n_shards, seed, by_label
    left = [given for given in product(strategies, SCALES) if (*key, given[0].name, given[1]) not in done]
    shards = Shards(problem, n_shards, seed, by_label) if left else None
    for strategy, scale in left:
        assert shards is not None
        losses, score = shards.train(
            strategy, SCALES[scale](n_shards if n_shards > 1 else 4), problem.n_passes
        )
        yield Run(problem.name, strategy.name, scale, n_shards, seed, losses.tolist(), score, by_label)


def measure_all(
    problems: Sequence[Problem], seeds: Sequence[int], counts: Sequence[int], path: Path | None
) -> list[Run]:
    """Return the runs of all seeds, problems and numbers of shards; a file keeps those that are done."""
    known = json.loads(path.read_text()) if path and path.exists() else []
    runs, begun = [Run(**record) for record in known], time.monotonic()
    done = {run.key for run in runs}
    for seed, problem, count in product(seeds, problems, counts):
        for by_label in (False, True)[: 1 + (count == SORTED_COUNT and problem.name in SORTED)]:
            for run in measure(problem, count, seed, by_label, done):
                runs.append(run)
                if path:
                    path.write_text(json.dumps([asdict(run) for run in runs]))
        seconds = time.monotonic() - begun
        print(f"{seconds:6.0f} s  {problem.name}, seed {seed}, {count} shards", flush=True)
    return runs


def _place(run: Run) -> tuple:
    """Return where a run is in the order of problems, ways to average and scales."""
    problems, strategies = [problem.name for problem in PROBLEMS], [strategy.name for strategy in STRATEGIES]
    return (
        problems.index(run.problem),
        strategies.index(run.strategy),
        run.n_shards,
        list(SCALES).index(run.scale),
    )


def page_part(runs: Sequence[Run]) -> str:
    """Return the tables, with their titles."""
    runs, seeds = sorted(runs, key=_place), len({run.seed for run in runs})
    figures = "one training each" if seeds == 1 else f"means of {seeds} seeds"
    parts = [
        f"One machine, batches of {BATCH}; figures are of {figures}:",
        one_machine_table(runs),
        "Loss on test samples after the last pass, as a multiple of one machine's ([all ways to "
        "average](scaling.csv)):",
        losses_table(runs, SHOWN),
    ]
    if any(run.by_label for run in runs):
        parts += [
            "Samples sorted by label, then cut into shards:",
            losses_table(runs, SORTED_SHOWN, by_label=True),
        ]
    return "\n\n".join(parts)


def main(given: Sequence[str] | None = None, problems: Sequence[Problem] = PROBLEMS) -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one seed, two problems, 4 shards, 4 passes")
    parser.add_argument("--write", type=Path, help="page to write, such as docs/explanation/scaling.md")
    parser.add_argument("--json", type=Path, help="file for all losses; runs that it has are not run again")
    arguments = parser.parse_args(given)
    warnings.simplefilter("ignore")
    seeds, counts = SEEDS, COUNTS
    if arguments.quick:
        problems = tuple(replace(problem, n_passes=4) for problem in problems[:2])
        seeds, counts = SEEDS[:1], COUNTS[:2]
    runs = measure_all(problems, seeds, counts, arguments.json)
    text = page_part(runs)
    print(text)
    if arguments.write:
        write_block(arguments.write, "shards", text)
        titles, *rows = losses_rows(sorted(runs, key=_place))
        write_beside(arguments.write, titles, rows)


if __name__ == "__main__":
    main()
