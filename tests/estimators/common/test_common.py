"""Common checks of all estimators with all installed losses and learning rates."""

from collections import Counter

import pytest

from .cases import LEARNING_RATES, LOSSES, OPTIMIZERS, all_cases, covering_pairs
from .checks import CHECKS

QUICK = list(covering_pairs(list(CHECKS)))


def _pairs():
    for case in all_cases():
        for name in CHECKS:
            marks = [] if (case, name) in QUICK else [pytest.mark.slow]
            yield pytest.param(case, name, marks=marks, id=f"{case}-{name}")


@pytest.mark.sweep(8)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # solvers are stopped early
@pytest.mark.parametrize("case, check", list(_pairs()))
def test_common(case, check):
    CHECKS[check](case)


def test_pairs_cover_all_cases():
    for kind, known in (("loss", LOSSES), ("rate", LEARNING_RATES), ("step", OPTIMIZERS)):
        counts = Counter(getattr(case, kind) for case, _ in QUICK)
        assert counts.keys() == known.keys() and min(counts.values()) >= 2
    counts = Counter(name for _, name in QUICK)
    assert counts.keys() == CHECKS.keys() and min(counts.values()) >= 2
