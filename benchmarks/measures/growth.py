"""Growth of the cost with samples, features, size of a batch and depth: slopes on a log-log scale."""

from __future__ import annotations

from typing import Any

from benchmarks.cases import scaling_cases
from benchmarks.measures.batches import calibrate, round_of
from benchmarks.team import Plan, Team

__all__ = ["growth"]


def growth(team: Team, names: list[str], plan: Plan) -> dict[str, dict[str, Any]]:
    """Return microseconds per epoch (samples) or per batch (the others), one thread.

    Parameters
    ----------
    team : Team
        Contenders.
    names : list of str
        Those that are measured.
    plan : Plan
        How long to measure.

    Returns
    -------
    dict of str to dict
        For what changes: ``values``, and ``times``: contender to one list of rounds per value.
    """
    results: dict[str, dict[str, Any]] = {}
    with team.processes(1, names) as processes:
        for what, cases in scaling_cases(plan.quick).items():
            epochs = [
                calibrate(team, team.prepare(processes, case), case, plan.seconds / 2) for _, case in cases
            ]
            runners = [name for name in processes if all(name in found for found in epochs)]
            times: dict[str, list[list[float]]] = {name: [[] for _ in cases] for name in runners}
            # Each round has all values, so that a slower machine does not change the slope.
            for _ in range(plan.rounds):
                for i, (_, case) in enumerate(cases):
                    ready = team.prepare(processes, case)
                    batches = 1 if what == "samples" else case.n_batches
                    for name in runners:
                        times[name][i].append(round_of(ready[name], epochs[i][name], batches))
            results[what] = {"values": [value for value, _ in cases], "times": times}
    return results
