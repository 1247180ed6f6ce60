"""Tables of measured losses, written into a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.shards.strategies import SCALES

__all__ = [
    "Run",
    "losses_rows",
    "losses_table",
    "one_machine_table",
    "write_block",
]


@dataclass(frozen=True)
class Run:
    """A training.

    Attributes
    ----------
    problem, strategy, scale : str
        What was trained, and how.
    n_shards, seed : int
        Number of shards, seed.
    losses : list of float
        Loss on test samples after each pass.
    score : float
        Score after the last one.
    by_label : bool
        Whether samples were sorted by label.
    """

    problem: str
    strategy: str
    scale: str
    n_shards: int
    seed: int
    losses: list[float]
    score: float
    by_label: bool = False

    @property
    def key(self) -> tuple:
        """Key that identifies a run."""
        return self.problem, self.n_shards, self.seed, self.by_label, self.strategy, self.scale


def _only(runs: Sequence[Run], **values: object) -> list[Run]:
    return [run for run in runs if all(getattr(run, name) == value for name, value in values.items())]


def _names(runs: Sequence[Run], field: str) -> list:
    return list(dict.fromkeys(getattr(run, field) for run in runs))


def _one_machine(runs: Sequence[Run], run: Run) -> Run:
    """Return the training on one machine of the same problem and seed, with its own rate."""
    (found,) = _only(runs, problem=run.problem, seed=run.seed, n_shards=1, scale="1", by_label=False)
    return found


def _relative(runs: Sequence[Run], some: Sequence[Run]) -> str:
    """Return the mean of the last losses, as a multiple of one machine's."""
    if not some:
        return "not run"
    with np.errstate(invalid="ignore"):
        value = float(np.mean([run.losses[-1] / _one_machine(runs, run).losses[-1] for run in some]))
    return "diverges" if not np.isfinite(value) else f"{value:.2f}" if value < 99.995 else f"{value:.0f}"


def one_machine_table(runs: Sequence[Run]) -> str:
    """Return a table of one machine's last losses and scores, and its losses with higher rates.

    Parameters
    ----------
    runs : sequence of Run
        All runs; scales of one shard are those of four.

    Returns
    -------
    str
        Table in Markdown.
    """
    titles = ["problem", "passes", "loss", "score", "loss, rate times 2", "loss, rate times 4"]
    lines = [f"| {' | '.join(titles)} |", "|---|" + "---:|" * 5]
    for problem in _names(runs, "problem"):
        of_problem = _only(runs, problem=problem, n_shards=1)
        losses = [np.mean([run.losses[-1] for run in _only(of_problem, scale=scale)]) for scale in SCALES]
        score = np.mean([run.score for run in _only(of_problem, scale="1")])
        cells = [
            str(len(of_problem[0].losses)),
            f"{losses[0]:.3f}",
            f"{score:.3f}",
            f"{losses[1]:.3f}",
            f"{losses[2]:.3f}",
        ]
        lines.append(f"| {problem} | {' | '.join(cells)} |")
    return "\n".join(lines)


def losses_rows(runs: Sequence[Run]) -> list[list[str]]:
    """Return titles and rows of the file of last losses over one machine's.

    Parameters
    ----------
    runs : sequence of Run
        All runs.

    Returns
    -------
    list of list of str
        A row for each problem, order of samples, way to average, and number of shards.
    """
    shown = [run for run in runs if run.n_shards > 1]
    scales = _names(shown, "scale")
    rows = [["problem", "samples", "averages", "shards", *(f"rate times {scale}" for scale in scales)]]
    for by_label in (False, True):
        some = _only(shown, by_label=by_label)
        for problem in _names(some, "problem"):
            for strategy in _names(_only(some, problem=problem), "strategy"):
                found = _only(some, problem=problem, strategy=strategy)
                for count in _names(found, "n_shards"):
                    cells = [_relative(runs, _only(found, n_shards=count, scale=scale)) for scale in scales]
                    order = "sorted by label" if by_label else "shuffled"
                    rows.append([problem, order, strategy, str(count), *cells])
    return rows


def losses_table(runs: Sequence[Run], strategies: Sequence[str], by_label: bool = False) -> str:
    """Return a table of last losses over one machine's: a row for each way to average, by problem.

    Parameters
    ----------
    runs : sequence of Run
        All runs.
    strategies : sequence of str
        Ways to average that are shown.
    by_label : bool, default=False
        Whether to show the runs with samples sorted by label.

    Returns
    -------
    str
        Table in Markdown; a cell has a number for each scale of the rate.
    """
    shown = [
        run for run in runs if run.by_label == by_label and run.n_shards > 1 and run.strategy in strategies
    ]
    scales = _names(shown, "scale")

    def cell(found: list[Run]) -> str:
        return " / ".join(_relative(runs, _only(found, scale=scale)) for scale in scales)

    return _by_strategy(shown, f" shards: rate times {', '.join(scales)}", cell)


def _by_strategy(shown: Sequence[Run], title: str, cell: Callable[[list[Run]], str]) -> str:
    """Return a table with a line for each way to average, by problem, and a column for each number."""
    counts = _names(shown, "n_shards")
    lines = [
        f"| problem | averages | {' | '.join(f'{count}{title}' for count in counts)} |",
        "|---|---|" + "---:|" * len(counts),
    ]
    for problem in _names(shown, "problem"):
        for strategy in _names(_only(shown, problem=problem), "strategy"):
            row = _only(shown, problem=problem, strategy=strategy)
            cells = " | ".join(cell(_only(row, n_shards=count)) for count in counts)
            lines.append(f"| {problem} | {strategy} | {cells} |")
    return "\n".join(lines)


def write_block(path: Path, name: str, text: str) -> None:
    """Replace the text between two marks of a page, ``<!-- name: begin -->`` and ``<!-- name: end -->``.

    Parameters
    ----------
    path : pathlib.Path
        Page.
    name : str
        Name in the marks.
    text : str
        Text to write.

    Raises
    ------
    ValueError
        If the page has no such marks.
    """
    marks = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, begin, rest = path.read_text(encoding="utf-8").partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not begin or not end:
        raise ValueError(f"{path} has no place for the table: it needs the lines {marks[0]} and {marks[1]}.")
    path.write_text(f"{before}{marks[0]}\n{text}\n{marks[1]}{after}", encoding="utf-8")
