"""Write ``docs/trust.md`` from the results of all cases, and a CSV file of them to which splits are added."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import shorten

import numpy as np
from scipy.stats import t

from benchmarks.csv_table import write_beside
from benchmarks.trust.datasets import CHOSEN
from benchmarks.trust.measurement import STARTS

__all__ = ["Result", "read", "read_table", "row_of", "write_page"]

#: Gains that are lost without a mention, for fresh weights and for warm starts.
CLOSE, SMALL = 0.02, 0.01
#: A fit may take this many fits of the estimator, or seconds.
TIMES, SECONDS = 5.0, 1.0
#: Names of starts as the page shows them.
NAMES = {
    "fresh": "fresh weights",
    "same": "warm, on the samples of the fit",
    "new": "warm, on new samples of the same kind",
    "drifted": "warm, on samples after a drift",
}
#: Longest list of cases on the page; a CSV file beside it has all of them.
MOST = 8
#: Columns of this file; the last one has the gains of the splits in units of 0.00001.
TITLES = ("case", "start", "splits", "own score", "gain", "median seconds", "at most", "error", "gains")
PAGE = Path(__file__).parents[2] / "docs" / "trust.md"


@dataclass
class Result:
    """Results of a case and a start, over splits."""

    name: str
    start: str
    gains: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    limits: list[float] = field(default_factory=list)
    own: list[float] = field(default_factory=list)
    error: str = ""
    splits: set[int] = field(default_factory=set)  # some may have no score

    @property
    def mean(self) -> float:
        """Mean gain; rounded, so that a loss of exactly the limit is within it."""
        return round(float(np.mean(self.gains)), 9)

    @property
    def highest(self) -> float:
        """Upper end of the 95 % interval of the mean gain; the mean for one split."""
        n = len(self.gains)
        if n < 2:
            return self.mean
        return self.mean + float(t.ppf(0.975, n - 1) * np.std(self.gains, ddof=1) / np.sqrt(n))

    @property
    def is_low(self) -> bool:
        """Whether the mean gain is below the limit of the start."""
        return bool(self.gains) and self.mean < -(CLOSE if self.start == "fresh" else SMALL)

    def repeats(self) -> list[float]:
        """Return the gains of the splits without which the mean is below -0.01, limited to -1 and 1."""
        gains = np.clip(self.gains, -1, 1)
        others = (gains.sum() - gains) / max(1, len(gains) - 1)
        return gains[others < -SMALL].tolist() if len(gains) > 2 else []

    @property
    def slowness(self) -> float:
        """Seconds by which the median fit exceeds its limit."""
        return float(np.median(np.subtract(self.seconds, self.limits))) if self.seconds else -np.inf

    @property
    def is_slow(self) -> bool:
        """Whether the median fit takes longer than its limit."""
        return self.slowness > 0


def read(lines: Iterable[str], known: Iterable[Result] = ()) -> dict[str, list[Result]]:
    """Return results by start, from the lines that ``python -m benchmarks.trust --write`` has written.

    They are added to ``known`` results of other splits. Times are those of the lines where a case has both:
    times of two machines have no median.
    """
    found = {(own.name, own.start): own for own in known}
    known_splits = {key: set(own.splits) for key, own in found.items()}
    is_timed: set[tuple[str, str]] = set()
    for line in lines:
        row = json.loads(line)
        if row["skipped"]:
            continue
        for start in STARTS:
            fits, key = row["fits"][start], (row["name"], start)
            if "NoTrainableWeightError" in fits["error"] or not (fits["gains"] or fits["error"]):
                continue
            if known_splits.get(key, set()).intersection(row["splits"]):
                continue
            result = found.setdefault(key, Result(*key))
            if fits["seconds"] and key not in is_timed:
                is_timed.add(key)
                result.seconds, result.limits = [], []
            result.splits.update(row["splits"])
            result.gains += fits["gains"]
            result.own += row["own"]
            result.seconds += fits["seconds"]
            result.limits += [max(TIMES * own, SECONDS) for own in fits["own_seconds"]]
            result.error = result.error or fits["error"]
    by_start: dict[str, list[Result]] = defaultdict(list)
    for (_, start), result in found.items():
        by_start[start].append(result)
    return by_start


def read_table(path: Path) -> list[Result]:
    """Return the results in the CSV file of the page, with a median time for all splits."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [_result(row) for row in csv.DictReader(file)]


def _result(row: dict[str, str]) -> Result:
    gains = [int(own) / 100_000 for own in row["gains"].split()]
    splits = set(map(int, row["splits"].split()))
    times = float(row["median seconds"]), float(row["at most"])
    own, seconds, limits = ([value] * len(splits) for value in (float(row["own score"]), *times))
    start = next(key for key, name in NAMES.items() if name == row["start"])
    return Result(row["case"], start, gains, seconds, limits, own, row["error"], splits)


def row_of(own: Result) -> tuple[object, ...]:
    """Return the line of a result in the CSV file."""
    gains = " ".join(f"{100_000 * gain:.0f}" for gain in own.gains)
    times = f"{np.median(own.seconds):.2f}", f"{np.median(own.limits):.2f}"
    mean = f"{own.mean:+.3f}" if own.gains else ""
    splits = " ".join(map(str, sorted(own.splits)))
    return own.name, NAMES[own.start], splits, f"{np.mean(own.own):.3f}", mean, *times, own.error, gains


def _share(found: Iterable[bool]) -> str:
    values = list(found)
    return f"{np.mean(values):.3f}" if values else "-"


def _summary(results: list[Result], start: str) -> str:
    measured = [own for own in results if own.gains]
    counts, repeats = (
        [len(own.gains) for own in measured],
        [gain for own in measured for gain in own.repeats()],
    )
    parts = [
        NAMES[start],
        f"{len(results)} in {max(counts)}",
        _share(bool(own.gains) and own.mean >= -CLOSE for own in results),
        _share(bool(own.gains) and own.mean >= -SMALL for own in results),
        str(sum(len(own.gains) > 1 and own.highest < -CLOSE for own in measured)),
        f"{np.mean([np.clip(own.mean, -1, 1) for own in measured]):+.3f}",
        f"{np.mean(repeats):+.3f}" if repeats else "-",
        str(sum(bool(own.error) for own in results)),
        str(sum(own.is_slow for own in results)),
    ]
    return "| " + " | ".join(parts) + " |"


HEAD = (
    "| start | cases, splits | within 0.02 | within 0.01 | worse for sure | mean gain | repeated | errors |"
    " slow |\n"
    "|---|---|---:|---:|---:|---:|---:|---:|---:|"
)
TEXT = """# Trust: default parameters for every estimator

What a fit with default parameters, from fresh weights or from those of a fitted model, gains or loses against
the own fit of each classifier and regressor of scikit-learn, XGBoost, LightGBM and CatBoost.

## Measurement

`python -m benchmarks.trust --splits 20 --write FILE` trains every estimator that has trainable weights,
and `--page FILE` adds further splits to this page. A *case* is a data set, raw or standardised features, and
an estimator; trees have raw features only. It has at most 200 samples for the first fit, 100 new ones, and
300 for the test. The *gain* is the test score minus that of the fitted model on the same samples, a mean over
splits. After a drift, half of the features have moved and the labels depend on the first feature in another
way.

*Worse for sure* counts cases whose 95 % interval lies below -0.02. *Repeated* is the mean gain in one split
of cases that lose over 0.01 in the mean of their other splits: near zero, losses are chance. *Slow* fits
take more processor time than five own fits and than one second. Gains are limited to -1 and 1.

The defaults were chosen with {chosen}, in other splits. Of the others
({others}), friedman2 and noisy decided
single questions.

### All data sets

{all}

### Data sets that were not used for the choice

{apart}

## Worst cases

The {most} lowest of {n_worst} means below -0.02 from fresh weights, and below -0.01 for warm starts
([all cases](trust.csv), with the gain of each split):

{worst}

{reasons}

## Slow cases and errors

Times of the newest splits, with two processes on two cores. The {most} slowest of {n_slow} cases:

| case | start | median seconds | at most |
|---|---|---:|---:|
{slow}

Errors:

{errors}
"""
REASONS = """Known reasons:

- *Networks*: a tenth of the samples decides when to stop, 20 of 200 here.
- *iris*: 33 new samples and 50 of the test, where one is 0.02; hard samples are in one or the other."""


def _table(results: list[Result]) -> str:
    lines = ["| case | start | own score | gain | splits |", "|---|---|---:|---:|---:|"]
    for own in sorted(results, key=lambda own: own.mean)[:MOST]:
        score = np.mean(own.own)
        lines.append(
            f"| {own.name} | {NAMES[own.start]} | {score:.3f} | {own.mean:+.3f} | {len(own.gains)} |"
        )
    return "\n".join(lines) if results else "None."


def write_page(paths: Iterable[Path]) -> None:
    """Add the results of files to those of the CSV file, and write it and the page."""
    lines = (line for path in paths for line in path.read_text().splitlines())
    by_start = read(lines, read_table(PAGE.with_suffix(".csv")))
    everything = [own for start in STARTS for own in by_start[start]]
    names = sorted({own.name.split()[0] for own in everything})

    def table(keep) -> str:
        kept = {start: [own for own in by_start[start] if keep(own)] for start in STARTS}
        return "\n".join([HEAD, *(_summary(results, start) for start, results in kept.items() if results)])

    low = sorted((own for own in everything if own.is_low), key=lambda own: own.mean)
    slow = sorted((own for own in everything if own.is_slow), key=lambda own: -own.slowness)
    failed = [own for own in everything if own.error]
    errors = [f"- {own.name}, {NAMES[own.start]}: {shorten(own.error, 100)}" for own in failed]
    text = TEXT.format(
        chosen=", ".join(name for name in names if name in CHOSEN),
        others=", ".join(name for name in names if name not in CHOSEN),
        all=table(lambda own: True),
        apart=table(lambda own: own.name.split()[0] not in CHOSEN),
        worst=_table(low),
        most=MOST,
        n_worst=len(low),
        n_slow=len(slow),
        reasons=REASONS,
        slow="\n".join("| {0} | {1} | {5} | {6} |".format(*row_of(own)) for own in slow[:MOST]),
        errors="\n".join(errors) or "None.",
    )
    PAGE.write_text(text)
    write_beside(PAGE, TITLES, map(row_of, sorted(everything, key=lambda own: (own.name, own.start))))
