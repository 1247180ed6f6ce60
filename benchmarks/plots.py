"""Pictures of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.contenders import CONTENDERS, OURS
from benchmarks.figures import is_resolved, median, ratio, slope

__all__ = ["plot_growth", "plot_ratios"]

COLOURS = dict(
    zip(
        CONTENDERS,
        ("#1f4e9c", "#6fa8dc", "#e08214", "#f4b266", "#c0392b", "#8e6bbf", "#2e8b57", "#86c5a4"),
        strict=True,
    )
)


def _pyplot():
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def plot_ratios(cases: dict[str, Any], path: Path) -> None:
    """Draw the time per batch of every contender over ours, one group of bars for each case.

    Parameters
    ----------
    cases : dict
        Results of ``per_batch`` for one number of threads.
    path : Path
        PNG file.
    """
    pyplot = _pyplot()
    cases = {
        name: found
        for name, found in cases.items()
        if OURS in found["times"] and is_resolved(found["times"][OURS])
    }
    others = [name for name in CONTENDERS if name != OURS and any(name in c["times"] for c in cases.values())]
    figure, axis = pyplot.subplots(figsize=(9, 4.5), layout="constrained")
    width = 0.8 / max(len(others), 1)
    for i, name in enumerate(others):
        pairs = [
            (at, 1 / ratio(case["times"][OURS], case["times"][name]))
            for at, case in enumerate(cases.values())
            if name in case["times"] and is_resolved(case["times"][name])
        ]
        places = [at + (i - (len(others) - 1) / 2) * width for at, _ in pairs]
        heights = [value - 1 for _, value in pairs]  # bars grow from the line
        axis.bar(places, heights, width, bottom=1, label=CONTENDERS[name].label, color=COLOURS[name])
    axis.axhline(1, color=COLOURS[OURS], linewidth=1.5)
    axis.set_yscale("log")
    axis.set_xticks(range(len(cases)), list(cases))
    axis.set_ylabel("time per batch / OrtGradientOptimizer's")
    figure.legend(*axis.get_legend_handles_labels(), fontsize="small", ncols=3, loc="outside lower center")
    axis.set_title("One thread; above the line: slower than OrtGradientOptimizer", fontsize="medium")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def plot_growth(growth: dict[str, Any], path: Path) -> None:
    """Draw cost against samples, features, size of a batch and depth, with slopes.

    Parameters
    ----------
    growth : dict
        Results of ``growth``.
    path : Path
        PNG file.
    """
    pyplot = _pyplot()
    from matplotlib.ticker import FuncFormatter, LogLocator

    figure, axes = pyplot.subplots(2, 2, figsize=(9, 7), layout="constrained")
    for axis, (what, found) in zip(axes.flat, growth.items(), strict=True):
        for name, rounds in found["times"].items():
            middle = [median(values) for values in rounds]
            below = [m - min(values) for m, values in zip(middle, rounds, strict=True)]
            above = [max(values) - m for m, values in zip(middle, rounds, strict=True)]
            label = f"{CONTENDERS[name].label.split(',')[0]}, slope {slope(found['values'], rounds):.2f}"
            axis.errorbar(
                found["values"],
                middle,
                (below, above),
                marker="o",
                capsize=3,
                label=label,
                color=COLOURS[name],
            )
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xticks(found["values"], [f"{value:,}" for value in found["values"]])
        axis.minorticks_off()
        axis.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.0f}"))
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_xlabel(what)
        axis.set_ylabel(f"microseconds per {'epoch' if what == 'samples' else 'batch'}")
        axis.legend(fontsize="small")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
