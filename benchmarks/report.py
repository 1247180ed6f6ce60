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

A *ratio* is the time of `OrtGradientOptimizer` divided by that of the other package: below 1, it is faster.
Compare ratios rather than microseconds: the packages take turns in one run ([method](#method)).
"""

SUMMARY = """\
## Summary

Ratios of the main cases.
"""

HOW = f"""\
## Method

Each contender runs in a separate process, with the same number of threads, and trains the same network from
the same weights on the same float32 samples, with the same rate and momentum. The time per batch is the time
of a long fit minus that of a fit of one epoch, divided by the number of additional batches: it includes
shuffling and selecting samples, but not conversion and compilation. Times and ratios are medians over the
rounds. "Not resolved" means that the noise was larger than the time of the batches.

- torch selects samples by `index_select` and uses its fused optimizer, without a DataLoader. The other
  contenders cannot import it.
- skorch runs with its defaults, but without validation and printing.
- JAX runs an epoch as one jitted `lax.scan` over sample indices; weights are donated.
- SGDRegressor and SGDClassifier update after every sample: their time is that of one batch of samples.

Trained for {EPOCHS} epochs without shuffling, all contenders reach the same loss:
"""

WRITTEN = "---\n\n`make bench` writes this page from one run; manual edits are overwritten.\n"

#: Alternative texts of the figures.
BARS = "Bars: time per batch of every package in every case, divided by that of OrtGradientOptimizer"
CURVES = "Cost of an epoch over samples, and of a batch over features, batch size and depth, log-log scales"


def _head(results: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    text = f"{HEAD}\n{results['machine']}; {versions}. {results['rounds']} rounds.\n"
    for name, why in results.get("left_out", {}).items():
        text += f"\nLeft out: {CONTENDERS[name].label}: {why}.\n"
    return f"{text}\n{SUMMARY}\n{tables.summary_table(results)}"


def _targets(results: dict[str, Any]) -> str:
    return f"## Targets\n\nTargets on one core, set before the run:\n\n{tables.target_table(results)}"


def _per_batch(results: dict[str, Any]) -> str:
    text = f"## Time per batch\n\n![{BARS}](images/per_batch.png)\n"
    for threads, cases in results["per_batch"].items():
        for case in cases.values():
            many = "one thread" if threads == "1" else f"{threads} threads"
            text += f"\n{case['title']}; {many}:\n\n{tables.per_batch_table(case)}"
    return text


def _to_loss(results: dict[str, Any]) -> str:
    text = (
        "## Time to scikit-learn's loss\n\nSeconds of a fit on one thread, including conversion and start-up."
        " The loss is that of scikit-learn's estimator: SGDRegressor and SGDClassifier with their own "
        "stopping rule and schedule, without penalty; MLPRegressor after 100 epochs. The others run the "
        "smallest number of epochs that reaches this loss, determined beforehand.\n"
    )
    for case in results["to_loss"].values():
        text += f"\n{case['title']}, to a loss of {case['loss']:.5f}:\n\n{tables.to_loss_table(case)}"
    return text


def _batch_sizes(results: dict[str, Any]) -> str:
    text = (
        "## Batch size\n\nEach batch has the overhead of one call per operator, so small batches take longer "
        "per sample; large batches need more epochs. Seconds to the same losses as above, with the rate that "
        "needs the fewest epochs for each size:\n"
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
    return text + "\nFor linear models on many samples, use `batch_size=256` and increase the rate with it.\n"


def _growth(results: dict[str, Any]) -> str:
    return (
        "## Growth of the time\n\nA network 100-50-10-1 on 6,000 samples in batches of 15, with one quantity "
        "varied (hidden layers have 50 units if it is the depth). One thread. "
        "Slopes on a log-log scale: 1 is proportional, 0 is no growth.\n\n"
        f"![{CURVES}](images/growth.png)\n\n" + tables.growth_table(results["growth"])
    )


def _memory(results: dict[str, Any]) -> str:
    text = (
        "## Memory\n\nPeak memory of a process: *libraries* after a fit of 100 samples, which loads what a "
        "library needs, and *training* in addition to that, for reading the data and training one epoch.\n"
    )
    for case in results["memory"].values():
        text += f"\n{case['title']}, {case['data'] / 2**20:.1f} MiB:\n\n{tables.memory_table(case)}"
    return text


def _start_up(results: dict[str, Any]) -> str:
    found = results["start_up"]
    own = [value for times in found["times"].values() for value in times.get("sklearn", [])]
    text = (
        "## Start-up\n\nSeconds in new processes: the import in addition to that of scikit-learn, then three "
        "fits of one batch: the first one, a network with other widths, and the same network again.\n\n"
        + tables.start_up_table(found)
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
    "models": _sheets("Models compared with their scikit-learn fit", "models"),
    "searches": _sheets("Searches", "searches"),
    "predictions": _sheets("Predictions", "predictions"),
    "streams": _sheets("Streaming from parquet", "streams"),
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
