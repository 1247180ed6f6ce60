"""Intervals equal scikit-learn's, including bounds and NaN."""

import itertools

import numpy as np
import pytest
from sklearn._loss.link import Interval as Expected

from ortlearn.losses import Interval

ENDS = [(0.0, 1.0), (0.0, np.inf), (-np.inf, 2.5), (-np.inf, np.inf), (-3.0, -3.0)]
VALUES = np.array([-np.inf, -3.0, -2.9, 0.0, 0.5, 1.0, 2.5, 7.0, np.inf, np.nan])


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("closed", list(itertools.product([False, True], repeat=2)))
def test_contains(ends, closed):
    interval, expected = Interval(*ends, *closed), Expected(*ends, *closed)
    found = interval.contains(VALUES)
    assert found.dtype == bool and found.shape == VALUES.shape
    assert found.tolist() == [expected.includes(np.array([value])) for value in VALUES]


def test_text():
    assert str(Interval()) == "(-inf, inf)"
    assert str(Interval(0, 1.5, True, False)) == "[0, 1.5)"
    assert str(Interval(-1, np.inf, False, True)) == "(-1, inf]"
