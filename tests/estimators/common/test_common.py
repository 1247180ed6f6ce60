"""Common checks of all estimators with all installed losses and learning rates."""

import pytest

from .cases import all_cases
from .checks import CHECKS


@pytest.mark.sweep(24)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # solvers are stopped early
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("case", all_cases(), ids=str)
def test_common(case, check):
    CHECKS[check](case)
