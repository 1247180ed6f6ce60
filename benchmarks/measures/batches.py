"""Microseconds per batch, the cost of starting up taken off."""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.cases import Case
from benchmarks.processes import Process
from benchmarks.team import Plan, Team

__all__ = ["calibrate", "measure_case", "per_batch", "round_of"]

MOST = 2_000
#: How often a round is repeated whose long fit took no longer than its short one.
REPEATS = 3


def epochs_for(process: Process, seconds: float) -> int:
    """Return the number of epochs after the first that take about so long; this also warms up."""
    process.seconds(1)
    short, epochs = process.seconds(1), 1
    while True:
        spent = process.seconds(1 + epochs) - short
        if spent > seconds / 4 or 4 * epochs > MOST:
            return max(1, min(MOST, round(epochs * seconds / max(spent, 1e-6))))
        epochs *= 4


def calibrate(team: Team, ready: dict[str, Process], case: Case, seconds: float) -> dict[str, int]:
    """Return the number of epochs of every contender that survives them."""
    found = {
        name: team.attempt(name, case.name, partial(epochs_for, process, seconds))
        for name, process in ready.items()
    }
    return {name: epochs for name, epochs in found.items() if epochs is not None}


def round_of(process: Process, epochs: int, n_batches: int) -> float:
    """Return the microseconds of a batch, from a long fit and a short one; nan where noise was larger."""
    for _ in range(REPEATS):
        short, long = process.seconds(1), process.seconds(1 + epochs)
        if long > short:
            return (long - short) / (epochs * n_batches) * 1e6
    return float("nan")


def measure_case(team: Team, processes: dict[str, Process], case: Case, plan: Plan) -> dict[str, Any]:
    """Return the microseconds per batch of every contender in every round."""
    ready = team.prepare(processes, case)
    epochs = calibrate(team, ready, case, plan.seconds)
    times: dict[str, list[float]] = {name: [] for name in epochs}
    for _ in range(plan.rounds):
        for name in times:
            times[name].append(round_of(ready[name], epochs[name], case.n_batches))
    return {"title": case.title, "times": times, "epochs": epochs}


def per_batch(team: Team, cases: tuple[Case, ...], threads: int, plan: Plan) -> dict[str, dict[str, Any]]:
    """Return the microseconds per batch of every case.

    Parameters
    ----------
    team : Team
        Contenders.
    cases : tuple of Case
        Cases.
    threads : int
        Threads of each contender.
    plan : Plan
        How long to measure.

    Returns
    -------
    dict of str to dict
        For each case its ``title``, and ``times``: contender to one value per round.
    """
    with team.processes(threads) as processes:
        results = {}
        for case in cases:
            results[case.name] = measure_case(team, processes, case, plan)
            print(f"{case.title}, {threads} thread(s): done", flush=True)
        return results
