"""Loss and passes of averaging over shards, against one machine with the same passes.

``python -m benchmarks.shards --write docs/explanation/scaling.md`` (25 minutes on one core) trains five
problems over 1, 4, 16 and 64 shards, one shard after another on one machine, with three rates and eight ways
to average, and writes the tables of the page. ``--quick`` takes one seed, two problems and fewer shards.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import json
import time
import warnings
from collections.abc import Container, Iterator, Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path

from benchmarks.shards.problems import BATCH, N_TRAIN, PROBLEMS, Problem
from benchmarks.shards.report import Run, losses_table, one_machine_table, passes_table, write_block
from benchmarks.shards.rounds import Shards
from benchmarks.shards.strategies import SCALES, STRATEGIES

__all__ = ["measure"]

PASSES, SEEDS, COUNTS = 20, (0, 1), (1, 4, 16, 64)
#: Problems that are also trained with rows sorted by label, over so many shards.
SORTED, SORTED_COUNT = ("linear, SGD", "network, Adam", "sparse text, Adam"), 16


def measure(
    problem: Problem, n_shards: int, seed: int, n_passes: int, by_label: bool, done: Container[tuple]
) -> Iterator[Run]:
    """Yield the runs of a problem over some shards that are not done; one shard has the scales of four."""
    given = product(STRATEGIES if n_shards > 1 else STRATEGIES[:1], SCALES)
    left = [
        (s, scale)
        for s, scale in given
        if (problem.name, s.name, scale, n_shards, seed, by_label) not in done
    ]
    shards = Shards(problem, n_shards, seed, by_label) if left else None
    for strategy, scale in left:
        assert shards is not None
        losses, score = shards.train(strategy, SCALES[scale](n_shards if n_shards > 1 else 4), n_passes)
        yield Run(problem.name, strategy.name, scale, n_shards, seed, losses.tolist(), score, by_label)


def measure_all(
    problems: Sequence[Problem], seeds: Sequence[int], counts: Sequence[int], n_passes: int, path: Path | None
) -> list[Run]:
    """Return the runs of all seeds, problems and numbers of shards; a file keeps those that are done."""
    known = json.loads(path.read_text()) if path and path.exists() else []
    runs, begun = [Run(**record) for record in known], time.monotonic()
    done = {run.key for run in runs}
    for seed, problem, count in product(seeds, problems, counts):
        runs += measure(problem, count, seed, n_passes, False, done)
        if count == SORTED_COUNT and problem.name in SORTED:
            runs += measure(problem, count, seed, n_passes, True, done)
        if path:
            path.write_text(json.dumps([asdict(run) for run in runs]))
        seconds = time.monotonic() - begun
        print(f"{seconds:6.0f} s  {problem.name}, seed {seed}, {count} shards", flush=True)
    return runs


def page_part(runs: Sequence[Run]) -> str:
    """Return the tables, with their titles."""
    n_passes, seeds = len(runs[0].losses), {run.seed for run in runs}
    about = f"{N_TRAIN:,} rows, batches of {BATCH}, {n_passes} passes, means of {len(seeds)} seeds"
    parts = [
        f"One machine: {about}.",
        one_machine_table(runs),
        "Loss on test rows after the last pass, as a multiple of one machine's:",
        losses_table(runs),
        f"Passes to the loss that one machine has after {n_passes // 4}, at the best of the rates:",
        passes_table(runs),
    ]
    if any(run.by_label for run in runs):
        parts += ["Rows sorted by label before they are cut into shards:", losses_table(runs, by_label=True)]
    return "\n\n".join(parts)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one seed, two problems, 4 shards, 4 passes")
    parser.add_argument("--write", type=Path, help="page to write, such as docs/explanation/scaling.md")
    parser.add_argument("--json", type=Path, help="file for all losses; runs that it has are not run again")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    problems, seeds, counts, n_passes = PROBLEMS, SEEDS, COUNTS, PASSES
    if arguments.quick:
        problems, seeds, counts, n_passes = PROBLEMS[:2], SEEDS[:1], COUNTS[:2], 4
    runs = measure_all(problems, seeds, counts, n_passes, arguments.json)
    text = page_part(runs)
    print(text)
    if arguments.write:
        write_block(arguments.write, "shards", text)


if __name__ == "__main__":
    main()
