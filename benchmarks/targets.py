"""Performance targets on one core, and their values in a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.contenders import JAX, OURS
from benchmarks.figures import is_resolved, median, ratio, slope

__all__ = ["TARGETS", "Target", "evaluate"]

Find = Callable[[dict[str, Any]], float]


@dataclass(frozen=True)
class Target:
    """A figure with its bounds.

    Attributes
    ----------
    text : str
        Description.
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
        """Bounds as text."""
        return f"{self.low:g} to {self.high:g}" if self.low else f"at most {self.high:g}"

    def reached(self, value: float) -> bool:
        """Return whether a value is within the bounds."""
        return self.low <= value <= self.high


def _batch(case: str, theirs: str, ours: str = OURS) -> Find:
    def find(results):
        times = results["per_batch"]["1"][case]["times"]
        if not (is_resolved(times[ours]) and is_resolved(times[theirs])):
            raise KeyError(case)
        return ratio(times[ours], times[theirs])

    return find


def _fastest(case: str, theirs: tuple[str, ...]) -> Find:
    """Return the ratio to the fastest of some contenders."""

    def find(results):
        times = results["per_batch"]["1"][case]["times"]
        found = [_batch(case, name)(results) for name in theirs if name in times]
        if not found:
            raise KeyError(case)
        return max(found)

    return find


def _to_loss(case: str) -> Find:
    def find(results):
        found = results["to_loss"][case]
        return ratio(found["times"][OURS], found["times"][found["reference"]])

    return find


def _figure(section: str, name: str) -> Find:
    def find(results):
        figures = {key: value for sheet in results[section] for key, value in sheet["figures"].items()}
        return figures[name]

    return find


def _time(results, threads: str) -> float:
    return median(results["per_batch"][threads]["large"]["times"][OURS])


def _rows(results) -> float:
    found = results["growth"]["samples"]
    return slope(found["values"], found["times"][OURS])


GRID = "rates and penalties"
FOREST, CLASSES, TEXT = (
    "RandomForestRegressor, 100 trees of depth 12, 10,000 x 20",
    "RandomForestClassifier, 100 trees of depth 12, 10,000 x 20",
    "TfidfVectorizer, LogisticRegression, 10,000 documents, 20,000 words",
)

TARGETS = (
    Target("linear, batches of 10: time per batch / JAX's", _fastest("linear", JAX), 6.5),
    Target("logistic, batches of 256: time per batch / JAX's", _fastest("logistic", JAX), 1.15),
    Target("100-50-10-1, batches of 15: time per batch / JAX's", _fastest("mlp-15", JAX), 1.35),
    Target("100-50-10-1, batches of 200: time per batch / JAX's", _fastest("mlp-200", JAX), 1.02),
    Target("64-128-64-10: time per batch / JAX's", _fastest("classifier", JAX), 1.02),
    Target("784-512-256-10: time per batch / JAX's", _fastest("large", JAX), 1.02),
    Target(
        "100-50-10-1, batches of 15: time per batch / MLPRegressor's", _batch("mlp-15", "sklearn-mlp"), 0.135
    ),
    Target(
        "100-50-10-1, batches of 15: forward-backward / MLPRegressor's",
        _batch("mlp-15", "sklearn-mlp", "forward-backward"),
        0.6,
    ),
    *(
        Target(f"{name}: forward-backward / one graph", _batch(name, "ortlearn", "forward-backward"), 2.0)
        for name in ("linear", "mlp-15", "mlp-200", "classifier", "large", "logistic")
    ),
    Target("regression forest: first epoch / fit", _figure("models", f"{FOREST}: first epoch / fit"), 0.25),
    Target("classifier forest: first epoch / fit", _figure("models", f"{CLASSES}: first epoch / fit"), 0.25),
    Target("classifier forest: to_sklearn / fit", _figure("models", f"{CLASSES}: to_sklearn / fit"), 0.08),
    Target("text: first epoch / fit", _figure("models", f"{TEXT}: first epoch / fit"), 4.0),
    Target("text: to_sklearn / fit", _figure("models", f"{TEXT}: to_sklearn / fit"), 1.0),
    Target(
        "Ridge on 500 samples: seconds to the end of the first epoch",
        _figure("models", "Ridge, 500 x 20: seconds to the first epoch"),
        0.015,
    ),
    *(
        Target(f"27 candidates, {name}: time / GridSearchCV's", _figure("searches", f"{name}, {GRID}"), 0.25)
        for name in ("Ridge, SGD", "logistic regression, SGD", "100-50-10-1, SGD")
    ),
    Target(
        "exported files: time / (skl2onnx's file, or 1.5 of it for trees), largest",
        _figure("predictions", "exported files / limit, largest"),
        1.0,
    ),
    Target(
        "predictor(), one sample: microseconds above InferenceSession.run",
        _figure("predictions", "predictor, most microseconds"),
        5.0,
    ),
    Target("predict, one sample / Ridge's own", _figure("predictions", "predict, float32 / Ridge's"), 1.2),
    *(
        Target(
            f"from parquet, two cores, {model}: seconds of a pass / in memory",
            _figure("streams", f"{model}: seconds from parquet / in memory"),
            1 / 0.6,
        )
        for model in ("logistic regression", "network 50-50-10-1")
    ),
    Target("seconds to SGDRegressor's loss / its own", _to_loss("sgd-regressor"), 1.0),
    Target("seconds to SGDClassifier's loss / its own", _to_loss("sgd-classifier"), 1.0),
    Target("cost of an epoch against samples, log-log slope", _rows, 1.05, 0.95),
    Target(
        "1,000,000 x 100 float32: peak memory of a training / the data",
        lambda results: results["memory"]["million"]["peaks"][OURS] / results["memory"]["million"]["data"],
        1.5,
    ),
    Target(
        "import ortlearn, seconds on top of scikit-learn",
        lambda results: median(results["start_up"]["times"][OURS]["import"]),
        0.1,
    ),
    Target(
        "import ortlearn and fit a network for a batch in a new process, seconds on top of scikit-learn",
        lambda results: sum(median(results["start_up"]["times"][OURS][part]) for part in ("import", "first")),
        1.0,
    ),
    Target(
        "784-512-256-10, two threads: time per batch / one thread's",
        lambda results: _time(results, "2") / _time(results, "1"),
        0.6,
    ),
    Target(
        "first batch of another network in a warm interpreter, seconds",
        lambda results: median(results["start_up"]["times"][OURS]["other"]),
        0.06,
    ),
)


def evaluate(results: dict[str, Any]) -> list[tuple[Target, float | None]]:
    """Return each target with its value; None if it was not measured."""
    rows: list[tuple[Target, float | None]] = []
    for target in TARGETS:
        try:
            rows.append((target, target.find(results)))
        except KeyError:
            rows.append((target, None))
    return rows
