"""Seconds to the loss that scikit-learn's estimator ends with, everything included."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from benchmarks.cases import Case
from benchmarks.contenders import OURS
from benchmarks.processes import Failed, Process
from benchmarks.team import Plan, Team

__all__ = ["batch_sizes", "epochs_to", "to_loss"]

REFERENCES = ("sklearn-mlp", "sklearn-sgd")


def epochs_to(process: Process, target: float, most: int = 256) -> int | None:
    """Return the first number of epochs whose loss is small enough, None if too many are needed.

    Longer fits are taken to end with smaller losses: the number is doubled, then bisected.
    """

    def reached(epochs: int) -> bool:
        return process.ask("fit", epochs=epochs, loss=True)["loss"] <= target

    good = 1
    while not reached(good):
        good *= 2
        if good > most:
            return None
    bad = good // 2
    while good - bad > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if reached(middle) else (good, middle)
    return good


def _race(team: Team, processes: dict[str, Process], case: Case, plan: Plan) -> dict[str, Any]:
    ready = team.prepare(processes, case)
    reference = next((name for name in REFERENCES if name in ready), None)
    if reference is None:
        raise Failed(f"{case.name}: scikit-learn's estimator does not take part")
    target = ready[reference].ask("fit", epochs=None, loss=True)["loss"]
    epochs: dict[str, int | None] = {}
    for name, process in ready.items():
        if name != reference:
            epochs[name] = team.attempt(name, case.name, partial(epochs_to, process, target))
    runners = [reference, *(name for name, count in epochs.items() if count is not None)]
    times: dict[str, list[float]] = {name: [] for name in runners}
    for _ in range(plan.rounds):
        for name in runners:
            times[name].append(ready[name].ask("fit", epochs=epochs.get(name))["seconds"])
    return {"title": case.title, "loss": target, "epochs": epochs, "times": times, "reference": reference}


def to_loss(team: Team, cases: tuple[Case, ...], plan: Plan) -> dict[str, dict[str, Any]]:
    """Return the seconds of fits that end with scikit-learn's loss or a smaller one, on one thread.

    Parameters
    ----------
    team : Team
        Contenders.
    cases : tuple of Case
        Cases; each has a reference, which trains as it does by default.
    plan : Plan
        How long to measure.

    Returns
    -------
    dict of str to dict
        For each case ``title``, ``loss``, ``reference``, ``epochs`` (None: not reached) and ``times``.
    """
    with team.processes(threads=1) as processes:
        return {case.name: _race(team, processes, case, plan) for case in cases}


def batch_sizes(
    team: Team, case: Case, target: float, sizes: tuple[int, ...], rates: tuple[float, ...], plan: Plan
) -> list[dict[str, Any]]:
    """Return our own seconds to a loss for every size of a batch, each at the rate that is fastest.

    Parameters
    ----------
    team : Team
        Contenders; only OrtGradientOptimizer is asked.
    case : Case
        What is trained.
    target : float
        Loss to reach.
    sizes : tuple of int
        Sizes of a batch.
    rates : tuple of float
        Learning rates to try.
    plan : Plan
        How long to measure.

    Returns
    -------
    list of dict
        ``batch_size``, ``rate``, ``epochs`` and ``times``; the last three None or empty where no
        rate reaches the loss.
    """
    rows = []
    with team.processes(threads=1, names=[OURS]) as processes:
        if OURS not in processes:
            raise Failed(team.left_out.get(OURS, f"{OURS} is not among the contenders"))
        process = processes[OURS]
        for size in sizes:
            best: tuple[int, float] | None = None
            for rate in rates:
                process.prepare(replace(case, batch_size=size, rate=rate))
                try:
                    epochs = epochs_to(process, target, most=8 if best is None else best[0])
                except Failed:  # it diverges
                    continue
                if epochs is not None and (best is None or epochs < best[0]):
                    best = epochs, rate
            times = []
            if best is not None:
                process.prepare(replace(case, batch_size=size, rate=best[1]))
                times = [process.seconds(best[0]) for _ in range(plan.rounds + 1)][1:]
            rows.append(
                {"batch_size": size, "epochs": best and best[0], "rate": best and best[1], "times": times}
            )
    return rows
