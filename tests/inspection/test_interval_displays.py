"""Displays of coverage, width and intervals."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.linear_model import Ridge

from ortlearn import OrtIntervalRegressor
from ortlearn.inspection import CoverageDisplay, IntervalDisplay
from tests.intervals.test_interval_regressor import X_NEW, Y_NEW, X, Y

MODEL = OrtIntervalRegressor(Ridge(), random_state=0).fit(X, Y)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_coverage_and_width():
    display = CoverageDisplay.from_estimator(MODEL, X_NEW, Y_NEW, coverages=[0.5, 0.8])
    ends = MODEL.predict_interval(X_NEW, [0.5, 0.8])[1]
    inside = ((ends[:, 0] <= Y_NEW[:, None]) & (Y_NEW[:, None] <= ends[:, 1])).mean(axis=0)
    np.testing.assert_array_equal(display.line_.get_xydata(), np.stack([[0.5, 0.8], inside], axis=1))
    other = CoverageDisplay.from_estimator(MODEL, X_NEW, Y_NEW, coverages=[0.5, 0.8], kind="width", name="a")
    widths = (ends[:, 1] - ends[:, 0]).mean(axis=0)
    np.testing.assert_array_equal(other.line_.get_xydata(), np.stack([inside, widths], axis=1))
    assert other.ax_.get_legend().get_texts()[0].get_text() == "a"
    with pytest.raises(ValueError, match="must be 'coverage' or 'width'"):
        CoverageDisplay([0.5], [0.5], [1.0], kind="both")


def test_intervals_on_a_line():
    display = IntervalDisplay.from_estimator(MODEL, X_NEW[:50], Y_NEW[:50], feature=1, color="red")
    order = np.argsort(X_NEW[:50, 1])
    np.testing.assert_array_equal(display.line_.get_xdata(), X_NEW[:50, 1][order])
    points, ends = MODEL.predict_interval(X_NEW[:50])
    np.testing.assert_array_equal(display.line_.get_ydata(), points[order])
    np.testing.assert_array_equal(display.lower, ends[order, 0, 0])
    own = plt.subplots()[1]
    by_prediction = IntervalDisplay.from_estimator(MODEL, X_NEW[:50], ax=own)
    assert by_prediction.ax_ is own and np.all(np.diff(by_prediction.line_.get_ydata()) >= 0)
    with pytest.raises(TypeError, match="ax must be a matplotlib Axes"):
        display.plot(ax=3)
