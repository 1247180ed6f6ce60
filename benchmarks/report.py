"""Write performance.md and its pictures from the results of a run: ``python -m benchmarks.report``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import tables
from benchmarks.contenders import CONTENDERS
from benchmarks.figures import median
from benchmarks.measures.agreement import EPOCHS
from benchmarks.measures.programs import Sheet
from benchmarks.plots import plot_growth, plot_ratios

__all__ = ["write_report"]

HEAD = """\
# Performance

What a batch, a whole fit, memory and start-up cost, here and in other packages. "Ours" is
`OrtGradientOptimizer`: where "ours / it" is below 1, it is faster. Compare ratios rather than microseconds:
they come from one run, in which contenders take turns.
"""

SUMMARY = """\
## In short

Our time over that of others: below 1 we are faster.
"""

HOW = f"""\
## How it is measured

Each contender is a process of its own, kept to one core, or two, with as many threads. In every round each
one has its turn while the others are stopped. All train the same network from the same weights on the same
float32 rows, with the same rate and momentum. Time per batch is that of a long fit less that of a fit of one
epoch, over the batches in between: it holds shuffling, picking rows, forward, gradient and update, not
conversion or compilation. Medians are of the rounds, ratios are medians of the ratios of each round. Not
resolved: in some round the long fit took no longer than the short one, as the machine's noise was larger than
the time of the batches.

- torch picks rows by `index_select` and updates with its fused optimizer; no DataLoader.
- torch is hidden from the contenders that do not need it: onnxruntime-training imports it where it can, which
  adds a second to the first fit.
- skorch runs as it comes, with its DataLoader, without validation and printing.
- JAX runs an epoch as one jitted `lax.scan` over row numbers; weights are donated.
- SGDRegressor and SGDClassifier update after every row: their time is that of as many rows as a batch has.

Trained for {EPOCHS} epochs with rows in their order, contenders end with the same loss:
"""

WRITTEN = "---\n\n`make bench` writes this page from one run; an edit by hand is lost with the next.\n"

#: Alternative texts of the figures.
BARS = "Bars: time per batch of every package in every case, divided by that of OrtGradientOptimizer"
CURVES = "Cost of an epoch over rows, and of a batch over features, batch size and depth, log-log scales"


def _head(results: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    text = f"{HEAD}\n{results['machine']}; {versions}. {results['rounds']} rounds.\n"
    for name, why in results.get("left_out", {}).items():
        text += f"\nLeft out: {CONTENDERS[name].label}: {why}.\n"
    return f"{text}\n{SUMMARY}\n{tables.summary_table(results)}"


def _targets(results: dict[str, Any]) -> str:
    return (
        "## What was to be reached, on one core\n\nTargets set before the run:\n\n"
        f"{tables.target_table(results)}"
    )


def _per_batch(results: dict[str, Any]) -> str:
    text = f"## Microseconds per batch\n\n![{BARS}](images/per_batch.png)\n"
    for threads, cases in results["per_batch"].items():
        for case in cases.values():
            many = "one thread" if threads == "1" else f"{threads} threads"
            text += f"\n{case['title']}; {many}:\n\n{tables.per_batch_table(case)}"
    return text


def _to_loss(results: dict[str, Any]) -> str:
    text = (
        "## Seconds to scikit-learn's loss\n\nThe whole of a fit, conversion and start-up included, on one "
        "thread. scikit-learn's estimator decides what is to be reached: SGDRegressor and SGDClassifier stop "
        "themselves, with their own schedules and without penalty; MLPRegressor trains for 100 epochs. The "
        "others run the smallest number of epochs that ends with that loss or a smaller one, found before.\n"
    )
    for case in results["to_loss"].values():
        text += f"\n{case['title']}, to a loss of {case['loss']:.5f}:\n\n{tables.to_loss_table(case)}"
    return text


def _batch_sizes(results: dict[str, Any]) -> str:
    text = (
        "## Which batch size\n\nA batch costs a call of each operator, whatever its size: small batches pay "
        "for calls, large ones need more epochs. Seconds to the same losses as above, each size at the rate "
        "that needs the fewest epochs:\n"
    )
    for name, rows in results["batch_sizes"].items():
        title = results["to_loss"][name]["title"].rpartition(",")[0]
        text += f"\n{title}:\n\n{tables.batch_size_table(rows)}"
        reached = [row for row in rows if row["times"]]
        if reached:
            best = min(reached, key=lambda row: median(row["times"]))
            close = [
                str(row["batch_size"])
                for row in reached
                if median(row["times"]) <= 1.25 * median(best["times"])
            ]
            text += (
                f"\nFastest: batches of {best['batch_size']} at a rate of {best['rate']:g}; "
                f"at most a quarter slower: {', '.join(close)}.\n"
            )
    return text + "\nFor linear models on many rows take `batch_size=256` and raise the rate with it.\n"


def _growth(results: dict[str, Any]) -> str:
    return (
        "## How the cost grows\n\nA network 100-50-10-1 on 6,000 rows and batches of 15, of which one thing "
        "changes (hidden layers are 50 wide where depth does). One thread. "
        "Slopes on a log-log scale: 1 is proportional, 0 is no growth.\n\n"
        f"![{CURVES}](images/growth.png)\n\n" + tables.growth_table(results["growth"])
    )


def _memory(results: dict[str, Any]) -> str:
    text = (
        "## Memory\n\nPeaks of a process: after a fit of 100 rows, which loads all that a library needs, and "
        "what reading the data and training one epoch add to that; the data are part of it.\n"
    )
    for case in results["memory"].values():
        text += f"\n{case['title']}, {case['data'] / 2**20:.1f} MiB:\n\n{tables.memory_table(case)}"
    return text


def _start_up(results: dict[str, Any]) -> str:
    found = results["start_up"]
    own = [value for times in found["times"].values() for value in times.get("sklearn", [])]
    text = (
        "## Start-up\n\nSeconds, in new processes: the import on top of scikit-learn's, then fits of one "
        "batch: the first, that of a network of other widths in the interpreter which is warm now, and the "
        "same network again.\n\n" + tables.start_up_table(found)
    )
    return text + (f"\nImporting scikit-learn itself takes {median(own):.2f} seconds.\n" if own else "")


def _sheets(title: str, name: str) -> Callable[[dict[str, Any]], str]:
    def write(results: dict[str, Any]) -> str:
        return "\n".join([f"## {title}\n", *(Sheet(**sheet).markdown() for sheet in results[name])])

    return write


def _how(results: dict[str, Any]) -> str:
    return f"{HOW}\n{tables.agreement_table(results['agreement'])}"


#: Parts of the page in their order, and the sections of a run they need.
PARTS = {
    "per_batch": _per_batch,
    "to_loss": _to_loss,
    "batch_sizes": _batch_sizes,
    "models": _sheets("Models beside their own fit", "models"),
    "searches": _sheets("Searches", "searches"),
    "predictions": _sheets("Predictions", "predictions"),
    "streams": _sheets("Rows from parquet", "streams"),
    "growth": _growth,
    "memory": _memory,
    "start_up": _start_up,
    "agreement": _how,
}


def write_report(results: dict[str, Any], folder: Path) -> Path:
    """Write the page and its figures from the sections that were measured.

    Parameters
    ----------
    results : dict
        What ``benchmarks.run.measure`` returns.
    folder : Path
        Where ``performance.md`` and ``images/`` go.

    Returns
    -------
    Path
        The page.
    """
    (folder / "images").mkdir(parents=True, exist_ok=True)
    parts = [_head(results)]
    parts += [write(results) for section, write in PARTS.items() if results.get(section)]
    parts += [_targets(results), WRITTEN]
    if results.get("per_batch"):
        plot_ratios(results["per_batch"]["1"], folder / "images" / "per_batch.png")
    if results.get("growth"):
        plot_growth(results["growth"], folder / "images" / "growth.png")
    page = folder / "performance.md"
    page.write_text("\n".join(parts))
    return page


if __name__ == "__main__":
    root = Path(__file__).parent.parent
    print(write_report(json.loads((root / "bench-output" / "results.json").read_text()), root / "docs"))
