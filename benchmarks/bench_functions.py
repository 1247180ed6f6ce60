"""Gradients of every model of the zoo against central differences of scikit-learn.

``python -m benchmarks.bench_functions --write docs/differentiable.md`` writes the page and
``docs/differentiable.csv``; ``--only 'SVC*'`` chooses cases.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.csv_table import write_beside
from benchmarks.model_zoo.cases import catalogue, choose
from benchmarks.model_zoo.data import load
from ortlearn.exceptions import OrtlearnError
from ortlearn.functions import differentiable
from ortlearn.functions.outputs import METHODS

__all__ = ["Outcome", "gradient_error", "main", "outcomes"]

#: Samples, step of the differences relative to the spread of a column, and the largest error, relative to the
#: largest slope of a sample.
SAMPLES, STEP, TOLERANCE = 4, 1e-5, 1e-4
SECONDS = 60
#: Estimators that the page names for each reason; the file has all.
NAMED = 8
#: States of outcomes that must not occur; columns of the file beside the page.
FAULTS = ("wrong", "failed")
TITLES = ("model", "variant", "output", "state", "error or reason")


class Outcome(NamedTuple):
    """Results for one output of a case."""

    case: str
    output: str
    state: str  # "gradient", "excluded", "wrong" or "failed"
    error: float = np.nan
    reason: str = ""


def _columns(X: Any) -> list[Any]:
    """Return the columns of floats: names of a frame, or positions."""
    if hasattr(X, "dtypes"):
        return [name for name, kind in X.dtypes.items() if getattr(kind, "kind", "O") == "f"]
    return list(range(X.shape[1]))


def _moved(X: Any, column: Any, step: float) -> Any:
    moved = X.copy()
    if hasattr(X, "dtypes"):
        moved[column] = moved[column] + step
    else:
        moved[:, column] += step
    return moved


def gradient_error(model: Any, f: Any, output: str, X: Any) -> float:
    """Return the largest difference of gradients and differences of scikit-learn, relative to the slopes."""

    def value(samples: Any) -> np.ndarray:
        found = getattr(model, output)(samples)
        parts = found if isinstance(found, list) else [found]
        dense = [part.toarray() if hasattr(part, "toarray") else np.asarray(part) for part in parts]
        return np.concatenate([part.reshape(len(part), -1) for part in dense], axis=1).astype(np.float64)

    first, own = value(X), f(X)
    own = own.reshape(len(own), -1)
    scale = np.abs(first).max() + 1e-12
    if not np.allclose(own, first, rtol=1e-4, atol=1e-5 * scale):
        return np.inf
    jacobian, worst = f.jacobian(X), 0.0
    for column in _columns(X):
        part = jacobian[column] if isinstance(jacobian, dict) else jacobian[..., column]
        slopes = part.reshape(first.shape)
        values = np.asarray(X[column] if hasattr(X, "dtypes") else X[:, column], dtype=float)
        step = STEP * max(np.ptp(values), 0.1)
        high, low = value(_moved(X, column, step)), value(_moved(X, column, -step))
        sides = np.stack([(high - low) / 2, high - first, first - low]) / step  # a side, at a kink
        size = max(np.abs(part).max(), scale * 1e-3)
        errors = np.abs(sides - slopes).min(axis=0) / size
        worst = max(worst, float(errors.max()))
    return worst


def outcomes(case: Any, differentiate: Callable[..., Any] = differentiable) -> Iterator[Outcome]:
    """Yield the outcome of each output of a case."""
    data = load(case.data)
    X, y = data.X, data.y
    model = case.make()
    model = model.fit(X) if y is None else model.fit(X, y)
    samples = X[:SAMPLES]
    if isinstance(samples, np.ndarray) and samples.dtype.kind == "f":  # off the training samples
        spread = np.ptp(np.nan_to_num(X), axis=0)
        samples = samples + 0.01 * spread * np.random.default_rng(0).uniform(0.2, 1, samples.shape)
    if hasattr(samples, "dtypes"):  # differences would be rounded to float32
        samples = samples.astype(dict.fromkeys(_columns(samples), np.float64))
    plain = isinstance(X, np.ndarray) and hasattr(model, "n_features_in_")
    for output in METHODS:
        if not hasattr(model, output) or output == "predict_log_proba":
            continue
        try:
            getattr(model, output)(samples)
        except Exception as error:
            yield Outcome(case.name, output, "excluded", reason=f"scikit-learn: {_first(error)}")
            continue
        try:
            f = differentiate(model, output, X=None if plain else X)
            error = gradient_error(model, f, output, samples)
        except OrtlearnError as refused:
            yield Outcome(case.name, output, "excluded", reason=_first(refused))
        except Exception as failure:
            yield Outcome(case.name, output, "failed", reason=f"{type(failure).__name__}: {_first(failure)}")
        else:
            yield Outcome(case.name, output, "gradient" if error <= TOLERANCE else "wrong", error)


def _first(error: BaseException) -> str:
    """Return the first sentence of a message."""
    text = " ".join(str(error).split())
    return text.partition(". ")[0][:160]


def measured(case: Any, differentiate: Callable[..., Any] = differentiable) -> list[Outcome]:
    """Return the outcomes of a case, within a limit of time."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"more than {SECONDS} s")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    found: list[Outcome] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for outcome in outcomes(case, differentiate):
                found.append(outcome)
    except Exception as error:
        found.append(Outcome(case.name, "fit", "failed", reason=f"{type(error).__name__}: {_first(error)}"))
    finally:
        signal.alarm(0)
    return found


def page(found: list[Outcome]) -> str:
    """Return the page."""
    cases = list(dict.fromkeys(outcome.case for outcome in found))
    right = [outcome for outcome in found if outcome.state == "gradient"]
    left = [outcome for outcome in found if outcome.state == "excluded"]
    bad = [outcome for outcome in found if outcome.state in FAULTS]
    worst = max(right, key=lambda outcome: outcome.error)
    reasons: dict[str, list[Outcome]] = {}
    for outcome in left:
        reasons.setdefault(_kind(outcome.reason), []).append(outcome)
    lines = [
        "# Outputs with gradients",
        "",
        "After this page you know which outputs of which models",
        "[`differentiable`](guide/functions.md#outputs) differentiates. It is written by",
        "`python -m benchmarks.bench_functions --write docs/differentiable.md`, from the cases of",
        "[the table of models](coverage.md). [All outputs](differentiable.csv).",
        "",
        f"{len(right)} outputs of {len({o.case for o in right})} of {len(cases)} models and variants have",
        f"gradients that equal central differences of scikit-learn in float64, on {SAMPLES} samples each,",
        f"for every numeric column. The largest error is {worst.error:.1g} of the largest slope",
        f"({worst.case}, `{worst.output}`); at a kink, a one-sided difference is",
        f"compared. {len(left)} outputs are excluded, for the reasons below; {len(bad)} are wrong or fail.",
        "",
        "| reason | outputs | of all or some variants of |",
        "|---|---|---|",
        *(
            f"| {reason} | {len(those)} | {_estimators(reason, those)} |"
            for reason, those in sorted(reasons.items(), key=lambda i: -len(i[1]))
        ),
        *(f"\n**{o.case}, `{o.output}`: {o.state} {o.reason}**" for o in bad),
    ]
    return "\n".join(lines) + "\n"


def _estimators(reason: str, found: list[Outcome]) -> str:
    """Return some estimators of outcomes; those that predict classes or indices are not listed."""
    if reason == KINDS["returns classes or"]:
        return "`predict` of classifiers, clusterers and outlier detectors"
    names = list(dict.fromkeys(_cell(outcome.case.partition(":")[0]) for outcome in found))
    more = f" and {len(names) - NAMED} others" if len(names) > NAMED + 1 else ""
    return ", ".join(names[:NAMED] if more else names) + more


def rows(found: list[Outcome]) -> list[list[str]]:
    """Return a row of the file for each output: model, variant, output, state, error or reason."""
    return [
        [
            *outcome.case.partition(":")[::2],
            outcome.output,
            outcome.state,
            f"{outcome.error:.1g}" if outcome.state == "gradient" else _kind(outcome.reason),
        ]
        for outcome in found
    ]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


#: Reasons by a part of the message.
KINDS = {
    "returns classes or": "classes or indices",
    "piecewise constant": "piecewise constant",
    "text": "text",
    "stay in scikit-learn": "steps that stay in scikit-learn",
    "skl2onnx cannot convert": "a Python function in the pipeline",
    "is not fitted": "no fitted attribute, so that it counts as not fitted",
    "does not compute": "not in the graph",
    "scikit-learn:": "scikit-learn raises an error for new samples",
}


def _kind(reason: str) -> str:
    return next((kind for part, kind in KINDS.items() if part in reason), _cell(reason[:90]))


def main(arguments: list[str] | None = None) -> int:
    """Measure, print and write; return 1 if a gradient is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_functions", description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], metavar="GLOB")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args(arguments)
    begin, found = time.perf_counter(), []
    for case in choose(catalogue(), options.only):
        for outcome in measured(case):
            found.append(outcome)
            if outcome.state != "gradient" or options.only:
                print(
                    outcome.case,
                    outcome.output,
                    outcome.state,
                    f"{outcome.error:.2g}",
                    outcome.reason,
                    flush=True,
                )
    print(f"{len(found)} outputs in {time.perf_counter() - begin:.0f} s")
    if options.write:
        options.write.write_text(page(found), encoding="utf-8")
        write_beside(options.write, TITLES, rows(found))
    return int(any(outcome.state in FAULTS for outcome in found))


if __name__ == "__main__":
    sys.exit(main())
