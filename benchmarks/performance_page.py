"""docs/performance.md from the tables of a run.

``python -m benchmarks.performance_page docs/performance.csv`` writes the page again from its file.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median

from benchmarks.tables import Table, read_tables, table

__all__ = ["OTHER", "one_thread", "page"]

HEAD = """\
# Performance

A *ratio* is the time of `OrtGradientOptimizer` divided by that of the other package: below 1, it is faster.
Compare ratios, not microseconds: the packages take turns in one run ([method](#method)). [A
file](performance.csv) has all times, and the spread of rounds.
"""

CHOICE = """\
## When to choose ortlearn

For small and middle networks on a CPU, linear models in batches of hundreds of samples, further training of
fitted forests, and searches. A compiled training loop of JAX is as fast or faster, but takes longer to start;
on large networks torch is about as fast. Models with a direct solver, such as Ridge, are fitted faster by
scikit-learn.

"""

METHOD = """\
Each contender runs in a separate process, with the same number of threads, and trains the same network from
the same weights on the same float32 samples, with the same rate and momentum. The time per batch is the time
of a long fit minus that of a fit of one epoch, divided by the number of additional batches: it includes
shuffling and selecting samples, but not conversion and compilation. Times and ratios are medians over the
rounds; "-" is noise above the time, or no such model.

- torch uses `index_select` and its fused optimizer, without a DataLoader. Other contenders do not load it.
- skorch runs with its defaults, but without validation and printing.
- JAX runs an epoch as one jitted `lax.scan` over sample indices; weights are donated.
- SGDRegressor and SGDClassifier update after every sample: their time is that of one batch of samples.
"""

#: Explanation where an older version of JAX took part.
VERSIONS = """
Ratios to JAX are to the faster of two versions: the newest, or 0.4.31 where it is named, which has JAX's
former runtime on CPUs.
"""

WRITTEN = "---\n\n`make bench` writes this page from one run; manual edits are overwritten.\n"

#: Alternative texts of the figures.
BARS = "Bars: time per batch of every package in every case, divided by that of OrtGradientOptimizer"
CURVES = "Cost of an epoch over samples, and of a batch over features, batch size and depth, log-log scales"

#: Columns of ratios, and the beginnings of the labels of their contenders.
OTHERS = {
    "forward-backward": ("OrtGradientForwardBackwardOptimizer",),
    "scikit-learn": ("scikit-learn",),
    "torch": ("torch",),
    "skorch": ("skorch",),
    "JAX": ("JAX",),
}
OURS = "OrtGradientOptimizer"
#: Section with the times per batch of a former run.
OTHER = "Time per batch on another processor"
#: Ratios between these limits count as equal.
EQUAL = (0.9, 1.1)
#: Sheets with more rows are summarised.
LONG = 12
#: A fit from fresh weights is slow above this many own fits and seconds.
SLOW = (2.0, 0.15)


def page(tables: Iterable[Table]) -> str:
    """Return the page, in Markdown, from all tables of a run."""
    sections: dict[str, list[Table]] = {}
    for each in tables:
        sections.setdefault(each.section, []).append(each)
    parts = [f"{HEAD}\n{_machine(sections['Machine'][0])}"]
    if "Time per batch" in sections:
        parts.append(CHOICE + _choice(sections))
    parts += [
        f"## {section}\n\n{WRITERS.get(section, _sheets)(found)}"
        for section, found in sections.items()
        if section != "Machine"
    ]
    return "\n".join([*parts, WRITTEN])


def _machine(found: Table) -> str:
    return "\n".join(f"{cell}\n" for (cell,) in found.rows)


def _ratios(found: Table) -> dict[str, float]:
    """Return the ratios by contender, without our own, those not resolved, and the slower versions of JAX."""
    pairs = zip(found.column("contender"), found.column("ratio"), strict=True)
    ratios = {name: float(cell) for name, cell in pairs if name != OURS and cell != "-"}
    versions = [name for name in ratios if name.startswith(OTHERS["JAX"])]
    fastest = max(versions, key=lambda name: ratios[name], default=None)
    return {name: value for name, value in ratios.items() if name not in versions or name == fastest}


def _cell(label: str, value: float) -> str:
    """Return a ratio, and the version of an older contender."""
    version = label.partition(",")[0].partition(" ")[2] if label.startswith("JAX ") else ""
    return f"{value:.2f} ({version})" if version else f"{value:.2f}"


def _short(label: str, classes: bool) -> str:
    """Return the name of a package, or the class of scikit-learn."""
    name, _, other = label.removeprefix("scikit-learn ").partition(", ")
    return other if classes and label.startswith("scikit-learn") else name


def _choice(sections: dict[str, list[Table]]) -> str:
    """Return the table of the first section: which packages are faster and slower, by task."""
    rows = []
    for found in one_thread(sections["Time per batch"]):
        classes = "regression," not in found.title or "logistic" in found.title
        ratios = {_short(name, classes): value for name, value in _ratios(found).items() if "Ort" not in name}
        rows.append([_case(found), *_by_speed(ratios)])
    for title, column in (("Searches", "ratio"), ("Models compared with their scikit-learn fit", "/ fit")):
        for found in sections.get(title, []):
            cells = list(zip(found.column(found.header[0]), found.column(column), strict=True))
            if title == "Searches":
                values = [float(cell) for _, cell in cells]
                peer = next(name for name in found.header if "SearchCV" in name).removesuffix(", s")
                kind = "successive halving" if "Halving" in peer else "a grid search"
                rows.append([kind, f"{peer} {min(values)} to {max(values)}", "", ""])
            else:
                rows += [
                    [f"warm start of {name.split(',')[0]}, first epoch", *_by_speed({"own fit": float(cell)})]
                    for name, cell in cells
                ]
    return table(
        ["task, one thread", "ortlearn is faster than", "equal", "faster than ortlearn"], rows, left=4
    )


def one_thread(found: Iterable[Table]) -> list[Table]:
    """Return the tables of times with one thread."""
    return [each for each in found if each.title.endswith("; one thread")]


def _case(found: Table) -> str:
    """Return network and batch size of a title."""
    network, *_, batches = found.title.partition(";")[0].split(", ")
    return f"{network}, {batches}"


def _by_speed(ratios: dict[str, float]) -> list[str]:
    low, high = EQUAL
    groups = (
        [f"{name} {value:g}" for name, value in ratios.items() if first <= value < last]
        for first, last in ((0, low), (low, high), (high, float("inf")))
    )
    return [", ".join(group) for group in groups]


def _wide(found: Sequence[Table], column: str, name: Callable[[Table], str]) -> str:
    """Return a table with a row for each case: our own time, and the ratios."""
    shown = [
        other
        for other, labels in OTHERS.items()
        if any(label.startswith(labels) for each in found for label in _ratios(each))
    ]
    rows = []
    for each in found:
        own = [row for row in each.rows if row[0] == OURS]
        ratios = _ratios(each)
        cells = [
            next((_cell(label, ratios[label]) for label in ratios if label.startswith(OTHERS[other])), "-")
            for other in shown
        ]
        rows.append([name(each), own[0][each.header.index(column)] if own else "-", *cells])
    return table(["", column.replace("microseconds", "µs"), *shown], rows)


def _per_batch(found: list[Table]) -> str:
    threads, *others = dict.fromkeys(each.title.rpartition("; ")[2] for each in found)
    some = [each for each in found if each.title.endswith(f"; {threads}")]
    beside = f" (the file has those of {', '.join(others)})" if others else ""
    text = f"![{BARS}](images/per_batch.png)\n\nRatios, {threads}{beside}:\n\n"
    text += _wide(some, "microseconds per batch", _case)
    older = any(label.startswith("JAX ") for each in found for label in each.column("contender"))
    return text + VERSIONS if older else text


def _other(found: list[Table]) -> str:
    machine, *cases = found
    text = f"Ratios on one thread of another machine, {machine.rows[0][0].partition(';')[0]}:\n\n"
    return text + _wide(cases, "microseconds per batch", _case)


def _to_loss(found: list[Table]) -> str:
    text = (
        "Seconds and ratios of a fit on one thread, including conversion and start-up, to the loss of "
        "scikit-learn's estimator: SGDRegressor and SGDClassifier with their own stopping rule and schedule, "
        "without penalty; MLPRegressor after 100 epochs. The others run the smallest number of epochs that "
        "reaches this loss.\n\n"
    )
    return text + _wide(found, "seconds", lambda each: each.title.partition(",")[0])


def _batch_sizes(found: list[Table]) -> str:
    text = (
        "Each batch costs a call per operator; large batches need more epochs. Seconds to the same losses, "
        "at the best rate for each size:\n\n"
    )
    for each in found:
        rows = [row for row in each.rows if row[3] != "not reached"]
        if rows:
            best = min(rows, key=lambda row: float(row[3]))
            close = ", ".join(row[0] for row in rows if float(row[3]) <= 1.25 * float(best[3]))
            text += (
                f"- {each.title}: {best[3]} s in batches of {best[0]} at a rate of {best[1]}; at most a "
                f"quarter slower: {close}.\n"
            )
    return text + "\nFor linear models on many samples, use `batch_size=256` and increase the rate with it.\n"


def _growth(found: list[Table]) -> str:
    return (
        "A network 100-50-10-1 on 6,000 samples in batches of 15, with one quantity varied, on one thread. "
        "Slopes on a log-log scale: 1 is proportional, 0 is no growth.\n\n"
        f"![{CURVES}](images/growth.png)\n\n{found[0].markdown()}"
    )


def _memory(found: list[Table]) -> str:
    text = (
        "Peak memory of a process in MiB: *libraries* after a fit of 100 samples, which loads what a library "
        "needs; then in addition to that, for reading the data and training one epoch:\n\n"
    )
    text += "".join(f"- *{_network(each)}*: {each.title}.\n" for each in found)
    names = list(dict.fromkeys(name for each in found for name in each.column("contender")))
    rows = []
    for name in names:
        of_name = [next((row for row in each.rows if row[0] == name), None) for each in found]
        libraries = next(row[1] for row in of_name if row)
        rows.append([name, libraries, *(row[2] if row else "-" for row in of_name)])
    return f"{text}\n{table(['contender', 'libraries', *map(_network, found)], rows)}"


def _network(found: Table) -> str:
    return found.title.partition(" ")[0]


def _start_up(found: list[Table]) -> str:
    return (
        "Seconds in new processes: the import in addition to that of scikit-learn, then three fits of one "
        "batch: the first one, a network with other widths, and the same network again.\n\n"
        + found[0].markdown()
    )


def _fits(found: list[Table]) -> str:
    (fits,) = found
    text = f"{fits.title}\n\n"
    rows = []
    for size in dict.fromkeys(fits.column("samples")):
        some = [dict(zip(fits.header, row, strict=True)) for row in fits.rows if row[1] == size]
        middle = [
            f"{median(float(row[name]) for row in some):.3g}"
            for name in ("own, s", "fresh, s", "fresh / own", "warm, s", "warm / own")
        ]
        faster = sum(float(row["fresh / own"]) < 1 for row in some)
        rows.append([size, str(len(some)), *middle, str(faster), str(len(_slow(some)))])
    times, seconds = SLOW
    header = ["samples", "estimators", *fits.header[2:], "fresh: faster", "fresh: slow"]
    text += "Medians over estimators:\n\n" + table(header, rows, left=0)
    every = [dict(zip(fits.header, row, strict=True)) for row in fits.rows]
    largest = rows[-1][0]
    fast = [row for row in every if row["samples"] == largest and float(row["fresh / own"]) < 1]
    if fast:
        names = ", ".join(f"{row['estimator']} {row['fresh / own']}" for row in fast)
        text += f"\nFaster than their own fit on {largest} samples: {names}.\n"
    slow = _slow(every)
    cases: dict[str, list[str]] = {}
    for row in slow:
        cases.setdefault(row["estimator"], []).append(f"{row['samples']} ({row['fresh / own']})")
    named = ", ".join(f"{name} on {' and '.join(found)}" for name, found in cases.items())
    text += f"\n*Slow* is more than {times:g} own fits and {seconds:g} s: {named or 'none'}.\n"
    return text


def _slow(rows: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    times, seconds = SLOW
    return [row for row in rows if float(row["fresh / own"]) > times and float(row["fresh, s"]) > seconds]


def _sheets(found: list[Table]) -> str:
    return "\n".join(f"{each.title}\n\n{_sheet(each)}" for each in found)


def _sheet(found: Table) -> str:
    """Return a table, or the smallest, median and largest ratios of a long one."""
    if len(found.rows) <= LONG:
        return found.markdown()
    rows = []
    for title in found.header:
        if title == "ratio" or " / " in title:
            values = sorted(float(cell.partition(" ")[0]) for cell in found.column(title))
            rows.append([title, *(f"{value:.3g}" for value in (values[0], median(values), values[-1]))])
    return table([f"{len(found.rows)} cases", "smallest", "median", "largest"], rows)


def _agreement(found: list[Table]) -> str:
    (each,) = found
    largest = max(map(float, each.column("relative difference")))
    return (
        f"{METHOD}\nTrained for a few epochs without shuffling, all contenders reach the same loss: relative "
        f"differences are at most {largest:.1e} in {len(each.rows)} cases.\n"
    )


def _targets(found: list[Table]) -> str:
    (each,) = found
    missed = [row for row in each.rows if row[3].startswith("no, ")]
    unknown = sum(row[3] == "not measured" for row in each.rows)
    reached = len(each.rows) - len(missed) - unknown
    text = f"{reached} of {len(each.rows)} targets on one core, set before the run, are reached"
    text += f"; {unknown} were not measured" if unknown else ""
    if not missed:
        return text + ".\n"
    return f"{text}. Missed:\n\n{Table('', '', each.header, missed).markdown()}"


#: Writers of sections; the others show their tables.
WRITERS: dict[str, Callable[[list[Table]], str]] = {
    "Whole fits": _fits,
    "Time per batch": _per_batch,
    OTHER: _other,
    "Time to scikit-learn's loss": _to_loss,
    "Batch size": _batch_sizes,
    "Growth of the time": _growth,
    "Memory": _memory,
    "Start-up": _start_up,
    "Method": _agreement,
    "Targets": _targets,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="tables, such as docs/performance.csv")
    file = parser.parse_args().file
    file.with_suffix(".md").write_text(page(read_tables(file)), encoding="utf-8")
