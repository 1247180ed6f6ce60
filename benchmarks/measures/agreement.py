"""Check that contenders agree: without shuffling, from equal weights, losses must be equal."""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.cases import Case
from benchmarks.team import Team

__all__ = ["EPOCHS", "TOLERANCE", "agreement"]

EPOCHS, TOLERANCE = 3, 1e-3


def agreement(team: Team, cases: tuple[Case, ...]) -> dict[str, dict[str, Any]]:
    """Return the final losses of every case, and whether they agree.

    Parameters
    ----------
    team : Team
        Contenders; those that update after every sample are not asked.
    cases : tuple of Case
        Cases.

    Returns
    -------
    dict of str to dict
        For each case ``losses`` by contender, ``spread`` (largest over smallest, less one) and
        ``agree``.
    """
    results: dict[str, dict[str, Any]] = {}
    with team.processes(threads=1) as processes:
        same = {name: process for name, process in processes.items() if process.loaded["same_updates"]}
        for case in cases:
            losses = {}
            for name, process in team.prepare(same, case).items():
                question = partial(process.ask, "fit", epochs=EPOCHS, shuffle=False, loss=True)
                answer = team.attempt(name, case.name, question)
                if answer is not None:
                    losses[name] = answer["loss"]
            spread = max(losses.values()) / min(losses.values()) - 1
            results[case.name] = {"losses": losses, "spread": spread, "agree": spread <= TOLERANCE}
    return results
