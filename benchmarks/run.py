"""Run the benchmark: ``python -m benchmarks.run``, or ``--quick`` to see that everything works.

Every contender is a separate process; they take turns, round by round, and only one works at a
time. Results go to bench-output/results.json; a run that is not quick also writes docs/performance.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.cases import CASES, LARGE, TINY, TO_LOSS
from benchmarks.contenders import CONTENDERS
from benchmarks.measures.agreement import agreement
from benchmarks.measures.batches import per_batch
from benchmarks.measures.footprint import memory, start_up
from benchmarks.measures.growth import growth
from benchmarks.measures.programs import PROGRAMS, sheets
from benchmarks.measures.to_loss import batch_sizes, to_loss
from benchmarks.processes import ROOT, Failed
from benchmarks.report import write_report
from benchmarks.team import Plan, Team

__all__ = ["SECTIONS", "main", "measure"]

OUTPUT = ROOT / "bench-output"
GROWTH = ["ortlearn", "sklearn-mlp"]
SIZES, RATES = (16, 32, 64, 128, 256, 512, 1024), (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


def _threads(team: Team, plan: Plan) -> dict[str, Any]:
    counts = [1, 2] if machine.cores() > 1 else [1]
    cases = TINY[:2] if plan.quick else CASES
    return {str(count): per_batch(team, cases, count, plan) for count in counts}


def _to_loss(team: Team, plan: Plan) -> dict[str, Any]:
    return to_loss(team, (TINY[1], TINY[-1]) if plan.quick else TO_LOSS, plan)


def _batch_sizes(team: Team, plan: Plan, results: dict[str, Any]) -> dict[str, Any]:
    """Return our seconds for every size of a batch, on the linear models that have a loss to reach."""
    sizes, rates = (SIZES[:2], RATES[-2:]) if plan.quick else (SIZES, RATES)
    reached = results.get("to_loss", {})
    cases = [case for case in (*TINY, *TO_LOSS) if case.name in reached and len(case.layers) == 2]
    return {
        case.name: batch_sizes(team, case, reached[case.name]["loss"], sizes, rates, plan) for case in cases
    }


#: Parts of a run, in their order; each takes the team, the plan and the results so far.
SECTIONS: dict[str, Callable[[Team, Plan, dict[str, Any]], Any]] = {
    "agreement": lambda team, plan, _: agreement(team, TINY if plan.quick else CASES),
    "per_batch": lambda team, plan, _: _threads(team, plan),
    "to_loss": lambda team, plan, _: _to_loss(team, plan),
    "batch_sizes": _batch_sizes,
    "memory": lambda team, plan, _: memory(team, TINY[1:2] if plan.quick else LARGE),
    "start_up": lambda team, plan, _: start_up(team, TINY[1] if plan.quick else CASES[1], plan),
    "growth": lambda team, plan, _: growth(team, GROWTH, plan),
    **{name: lambda _team, plan, _, name=name: sheets(name, plan.quick) for name in PROGRAMS},
}


def measure(names: list[str], sections: list[str], plan: Plan, path: Path) -> dict[str, Any]:
    """Measure.

    Parameters
    ----------
    names : list of str
        Contenders.
    sections : list of str
        Parts of the run.
    plan : Plan
        How long to measure.
    path : Path
        JSON file, written after every section.

    Returns
    -------
    dict
        Results by section, and where they were measured.
    """
    begin = time.perf_counter()
    results: dict[str, Any] = {"machine": machine.describe(), "versions": machine.versions()}
    results["rounds"] = plan.rounds
    with tempfile.TemporaryDirectory() as folder:
        team = Team.of(names, Path(folder))
        for section in sections:
            print(f"{section}, after {time.perf_counter() - begin:.0f} s", flush=True)
            try:
                results[section] = SECTIONS[section](team, plan, results)
            except Failed as error:  # the other sections may still be of use
                print(f"{section} is given up: {error}", file=sys.stderr)
                results.setdefault("given_up", []).append(section)
            results["left_out"] = team.left_out
            results["seconds"] = time.perf_counter() - begin
            path.write_text(json.dumps(results, indent=1) + "\n")
    return results


def main(arguments: list[str] | None = None) -> int:
    """Measure, write, and return 1 if a section failed, or contenders that should agree do not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny cases, two rounds, no docs/performance.md")
    parser.add_argument("--rounds", type=int, help="rounds of every measurement")
    parser.add_argument("--sections", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--output", type=Path, default=OUTPUT, help="folder of results.json")
    options = parser.parse_args(arguments)
    plan = Plan(rounds=5) if not options.quick else Plan(rounds=2, seconds=0.02, quick=True)
    plan = Plan(options.rounds or plan.rounds, plan.seconds, plan.quick)
    options.output.mkdir(parents=True, exist_ok=True)
    results = measure(options.contenders, options.sections, plan, options.output / "results.json")
    whole = not options.quick and set(options.sections) == set(SECTIONS)
    print(f"written: {write_report(results, ROOT / 'docs' if whole else options.output)}")
    differ = [name for name, found in results.get("agreement", {}).items() if not found["agree"]]
    for name in differ:
        losses = results["agreement"][name]["losses"]
        print(f"{name}: the contenders do not train the same model: {losses}", file=sys.stderr)
    return 1 if differ or results.get("given_up") else 0


if __name__ == "__main__":
    sys.exit(main())
