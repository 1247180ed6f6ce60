"""Memory at its peak, and the cost of starting: processes that do nothing else."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from benchmarks.cases import Case
from benchmarks.processes import Process
from benchmarks.team import Plan, Team

__all__ = ["memory", "start_up"]


def memory(team: Team, cases: tuple[Case, ...]) -> dict[str, dict[str, Any]]:
    """Return the peak of a process that trains one epoch, above its peak after a fit of a few samples.

    That first fit loads what a library puts off until it is needed.

    Parameters
    ----------
    team : Team
        Contenders.
    cases : tuple of Case
        Cases.

    Returns
    -------
    dict of str to dict
        For each case ``title``, ``data`` (bytes of X and y, which ``peaks`` include), ``libraries``
        (peak after the first fit) and ``peaks`` (what training adds).
    """
    results: dict[str, dict[str, Any]] = {}
    for case in cases:
        result: dict[str, Any] = {"title": case.title, "libraries": {}, "peaks": {}}
        for name in list(team.names):
            with team.processes(1, [name]) as processes:
                for process in processes.values():
                    found = team.attempt(name, case.name, partial(_peak, process, case))
                    if found:
                        result["libraries"][name], result["peaks"][name], result["data"] = found
        results[case.name] = result
    return results


def _peak(process: Process, case: Case) -> tuple[int, int, int] | None:
    few = replace(
        case, layers=(4, *(2 for _ in case.layers[1:-1]), case.layers[-1]), n_samples=100, batch_size=10
    )
    if not process.prepare(few)["supported"]:
        return None
    before = process.ask("fit", epochs=1)["memory"]
    size = process.prepare(case)["data"]
    return before, process.ask("fit", epochs=1)["memory"] - before, size


def start_up(team: Team, case: Case, plan: Plan) -> dict[str, Any]:
    """Return seconds to import, and of fits of one batch: the first, another network, the same again.

    Parameters
    ----------
    team : Team
        Contenders.
    case : Case
        Network; it is trained on one batch only.
    plan : Plan
        Rounds; each one starts new processes.

    Returns
    -------
    dict
        ``title``, and ``times``: contender to kind of start to one value per round.
    """
    case = replace(case, n_samples=case.batch_size)
    widths = case.layers
    other = replace(case, layers=(widths[0], *(width + 1 for width in widths[1:-1]), widths[-1]))
    times: dict[str, dict[str, list[float]]] = {}
    for _ in range(plan.rounds):
        for name in list(team.names):
            with team.processes(1, [name]) as processes:
                for process in processes.values():
                    found = team.attempt(name, "start-up", partial(_start, process, case, other))
                    for kind, seconds in (found or {}).items():
                        times.setdefault(name, {}).setdefault(kind, []).append(seconds)
    return {"title": case.title, "times": times}


def _start(process: Process, case: Case, other: Case) -> dict[str, float]:
    if not process.prepare(case)["supported"]:
        return {}
    found = {"sklearn": process.loaded["sklearn_import"], "import": process.loaded["import"]}
    found["first"] = process.seconds(1)
    process.prepare(other)
    found["other"] = process.seconds(1)
    found["again"] = process.seconds(1)
    return found
