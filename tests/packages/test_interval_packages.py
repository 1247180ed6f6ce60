"""Training packages of interval and set estimators, whose prediction graphs have intervals and sets."""

import json

import numpy as np
import onnxruntime
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from ortlearn import OrtIntervalRegressor, OrtSetClassifier
from ortlearn.exceptions import PackageError
from ortlearn.saving import export_training, load_training, merge_weights
from ortlearn.saving.tensors import unpack_tensors
from tests.intervals.test_interval_regressor import X_NEW, X, Y, run_file

SAMPLES = X_NEW[:50].astype(np.float32)


@pytest.mark.parametrize("method", ["cqr", "residual"])
def test_intervals(method, tmp_path):
    trained = OrtIntervalRegressor(Ridge(), method=method, random_state=0).fit(X, Y)
    export_training(trained, tmp_path, learning_rate="Adam")
    found = run_file(merge_weights(tmp_path), SAMPLES)
    points, intervals = trained.predict_interval(SAMPLES)
    np.testing.assert_allclose(found["prediction"], points, rtol=1e-5)
    np.testing.assert_allclose(found["lower"], intervals[:, 0, 0], rtol=1e-5, atol=1e-5)
    later = load_training(tmp_path)
    np.testing.assert_array_equal(later.predict_interval(SAMPLES)[1], intervals)
    # New weights of a program change the estimator; the calibration constants stay.
    weights = {name: 0 * array for name, array in trained.estimators_[0].get_weights().items()}
    merge_weights(tmp_path, weights)
    assert np.ptp(load_training(tmp_path).predict(SAMPLES)) == 0


def test_programs_give_labels_as_python_does(tmp_path):
    trained = OrtIntervalRegressor(Ridge(), random_state=0).fit(X, Y)
    export_training(trained, tmp_path, learning_rate="Adam", example=(X[:50], Y[:50]))
    manifest = json.loads((tmp_path / "training.json").read_text())
    assert manifest["label"]["shape"][1:] == [1]
    session = onnxruntime.InferenceSession(tmp_path / "evaluate.onnx")
    weights = unpack_tensors((tmp_path / "values.safetensors").read_bytes())[0]

    def loss(labels):
        feeds = {"X": SAMPLES, manifest["label"]["name"]: labels.reshape(-1, 1).astype(np.float32), **weights}
        return session.run(["ortlearn_mean_loss"], {i.name: feeds[i.name] for i in session.get_inputs()})[0]

    quantiles = trained.predict_quantiles(SAMPLES)
    near = quantiles[:, 1]
    assert loss(near) < loss(near + np.ptp(Y)) and loss(near) < loss(near - np.ptp(Y))


def test_sets(tmp_path):
    trained = OrtSetClassifier(LogisticRegression(), random_state=0).fit(X, Y > 10)
    export_training(trained, tmp_path, learning_rate="Adam")
    found = run_file(merge_weights(tmp_path), SAMPLES)
    np.testing.assert_array_equal(found["set"], trained.predict_set(SAMPLES)[1][:, :, 0])


def test_several_models_are_refused(tmp_path):
    trained = OrtIntervalRegressor(Ridge(), method="cv+", random_state=0).fit(X, Y)
    with pytest.raises(PackageError, match="trains one model without groups"):
        export_training(trained, tmp_path, learning_rate="Adam")
