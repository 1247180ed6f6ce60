"""Whole fits with default parameters, as a table of the page on performance."""

from __future__ import annotations

from benchmarks.bench_fits import ESTIMATORS, SIZES, Fit, measure
from benchmarks.figures import number
from benchmarks.machine import versions
from benchmarks.measures.programs import Sheet

__all__ = ["sheet_of", "sheets"]

TEXT = """\
Fits of scikit-learn's estimators by themselves (*own*), from fresh weights, and from those of the fitted
estimator on the same samples (*warm*), with the comparison of a warm start. Default parameters, 20 features,
processor time on one thread; sizes after a long fit are left out."""
#: Seconds of a fit after which larger numbers of samples are left out.
LONGEST = 2.0
HEADER = ["estimator", "samples", "own, s", "fresh, s", "fresh / own", "warm, s", "warm / own"]


def sheets(quick: bool) -> list[Sheet]:
    """Return the table of all estimators and sizes."""
    names, sizes = (("Ridge", "GaussianNB"), (60,)) if quick else (ESTIMATORS, SIZES[:3])
    return [sheet_of([fit for name in names for fit in measure(name, sizes, LONGEST)])]


def sheet_of(fits: list[Fit]) -> Sheet:
    """Return the table of some fits."""
    rows = [
        [
            *(fit.model, f"{fit.n_samples:,}", _seconds(fit.own)),
            *(_seconds(fit.fresh), _ratio(fit.fresh / fit.own)),
            *(_seconds(fit.warm), _ratio(fit.warm / fit.own)),
        ]
        for fit in fits
    ]
    installed = versions()
    tools = ", ".join(f"{name} {installed[name]}" for name in ("Python", "scikit-learn") if name in installed)
    return Sheet(f"{TEXT} {tools}.", HEADER, rows)


def _seconds(value: float) -> str:
    return f"{value:.3g}"


def _ratio(value: float) -> str:
    return number(value).replace(",", "")
