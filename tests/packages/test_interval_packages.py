"""Training packages of interval and set estimators, whose prediction graphs have intervals and sets."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from ortlearn import OrtIntervalRegressor, OrtSetClassifier
from ortlearn.exceptions import PackageError
from ortlearn.saving import export_training, load_training, merge_weights
from tests.intervals.test_interval_regressor import X_NEW, X, Y, run_file

ROWS = X_NEW[:50].astype(np.float32)


@pytest.mark.parametrize("method", ["cqr", "residual"])
def test_intervals(method, tmp_path):
    trained = OrtIntervalRegressor(Ridge(), method=method, random_state=0).fit(X, Y)
    export_training(trained, tmp_path, learning_rate="Adam")
    found = run_file(merge_weights(tmp_path), ROWS)
    points, intervals = trained.predict_interval(ROWS)
    np.testing.assert_allclose(found["prediction"], points, rtol=1e-5)
    np.testing.assert_allclose(found["lower"], intervals[:, 0, 0], rtol=1e-5, atol=1e-5)
    later = load_training(tmp_path)
    np.testing.assert_array_equal(later.predict_interval(ROWS)[1], intervals)
    # New weights of a program change the estimator; the calibration constants stay.
    weights = {name: 0 * array for name, array in trained.estimators_[0].get_weights().items()}
    merge_weights(tmp_path, weights)
    assert np.ptp(load_training(tmp_path).predict(ROWS)) == 0


def test_sets(tmp_path):
    trained = OrtSetClassifier(LogisticRegression(), random_state=0).fit(X, Y > 10)
    export_training(trained, tmp_path, learning_rate="Adam")
    found = run_file(merge_weights(tmp_path), ROWS)
    np.testing.assert_array_equal(found["set"], trained.predict_set(ROWS)[1][:, :, 0])


def test_several_models_are_refused(tmp_path):
    trained = OrtIntervalRegressor(Ridge(), method="cv+", random_state=0).fit(X, Y)
    with pytest.raises(PackageError, match="trains one model without groups"):
        export_training(trained, tmp_path, learning_rate="Adam")
