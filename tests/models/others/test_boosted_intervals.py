"""Intervals of boosters of other packages: distributions in the leaves of their own trees."""

import numpy as np
import pytest

from ortlearn import OrtIntervalRegressor
from tests.intervals.test_interval_regressor import X_NEW, Y_NEW, X, Y, inside, run_file

BOOSTERS = {
    "lightgbm": lambda package: package.LGBMRegressor(n_estimators=10, subsample=0.5, verbose=-1),
    "xgboost": lambda package: package.XGBRegressor(n_estimators=10, subsample=0.5),
    "catboost": lambda package: package.CatBoostRegressor(
        iterations=10, verbose=0, allow_writing_files=False
    ),
}


@pytest.mark.sweep(1)
@pytest.mark.parametrize("name", BOOSTERS)
def test_coverage_file_and_seed(name):
    model = BOOSTERS[name](pytest.importorskip(name))
    trained, again = (OrtIntervalRegressor(model, random_state=0).fit(X, Y) for _ in range(2))
    intervals = trained.predict_interval(X_NEW)[1]
    assert abs(inside(intervals, Y_NEW).mean() - 0.9) < 0.08
    assert np.corrcoef(np.diff(intervals[..., 0])[:, 0], X_NEW[:, 1])[0, 1] > 0.2  # as the spread of labels
    found = run_file(trained.get_trained_onnx(), X_NEW.astype(np.float32))
    np.testing.assert_allclose(found["lower"], intervals[:, 0, 0], rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(again.predict_interval(X_NEW)[1], intervals)
