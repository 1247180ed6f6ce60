"""What the library is to reach on one core, and what a run found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.contenders import OURS
from benchmarks.figures import is_resolved, median, ratio, slope

__all__ = ["TARGETS", "Target", "evaluate"]

Find = Callable[[dict[str, Any]], float]


@dataclass(frozen=True)
class Target:
    """A figure with its bounds.

    Attributes
    ----------
    text : str
        What it is.
    find : callable
        Takes the results, returns the figure; KeyError where a contender did not take part, or
        its time was not resolved.
    high : float
        Largest value that will do.
    low : float, default=0
        Smallest one.
    """

    text: str
    find: Find
    high: float
    low: float = 0.0

    @property
    def bounds(self) -> str:
        """What is asked for, as text."""
        return f"{self.low:g} to {self.high:g}" if self.low else f"at most {self.high:g}"

    def reached(self, value: float) -> bool:
        """Tell whether a value will do."""
        return self.low <= value <= self.high


def _batch(case: str, theirs: str, ours: str = OURS) -> Find:
    def find(results):
        times = results["per_batch"]["1"][case]["times"]
        if not (is_resolved(times[ours]) and is_resolved(times[theirs])):
            raise KeyError(case)
        return ratio(times[ours], times[theirs])

    return find


def _to_loss(case: str) -> Find:
    def find(results):
        found = results["to_loss"][case]
        return ratio(found["times"][OURS], found["times"][found["reference"]])

    return find


def _rows(results) -> float:
    found = results["growth"]["rows"]
    return slope(found["values"], found["times"][OURS])


TARGETS = (
    Target(
        "100-50-10-1, batches of 15: time per batch / MLPRegressor's", _batch("mlp-15", "sklearn-mlp"), 0.17
    ),
    Target("100-50-10-1, batches of 15: time per batch / JAX's", _batch("mlp-15", "jax"), 1.3),
    Target("784-512-256-10: time per batch / MLPClassifier's", _batch("large", "sklearn-mlp"), 0.5),
    Target("784-512-256-10: time per batch / torch's", _batch("large", "torch"), 0.5),
    Target("784-512-256-10: time per batch / JAX's", _batch("large", "jax"), 1.1),
    Target(
        "linear, 10 features: microseconds per batch of 10",
        lambda results: median(results["per_batch"]["1"]["linear"]["times"][OURS]),
        6.0,
    ),
    Target(
        "100-50-10-1, batches of 15: forward-backward / MLPRegressor's",
        _batch("mlp-15", "sklearn-mlp", "forward-backward"),
        0.6,
    ),
    Target("seconds to SGDRegressor's loss / its own", _to_loss("sgd-regressor"), 1.0),
    Target("seconds to SGDClassifier's loss / its own", _to_loss("sgd-classifier"), 1.0),
    Target("cost of an epoch against rows, log-log slope", _rows, 1.05, 0.95),
    Target(
        "1,000,000 x 100 float32: peak memory of a training / the data",
        lambda results: results["memory"]["million"]["peaks"][OURS] / results["memory"]["million"]["data"],
        1.5,
    ),
    Target(
        "import ortlearn, seconds on top of scikit-learn",
        lambda results: median(results["start_up"]["times"][OURS]["import"]),
        0.15,
    ),
    Target(
        "first batch of another network in a warm interpreter, seconds",
        lambda results: median(results["start_up"]["times"][OURS]["other"]),
        0.06,
    ),
)


def evaluate(results: dict[str, Any]) -> list[tuple[Target, float | None]]:
    """Return every target with its figure, None where something needed did not take part."""
    rows: list[tuple[Target, float | None]] = []
    for target in TARGETS:
        try:
            rows.append((target, target.find(results)))
        except KeyError:
            rows.append((target, None))
    return rows
