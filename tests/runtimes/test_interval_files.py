"""Files and training packages of interval and set estimators give the same intervals and sets in Node."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from ortlearn import OrtIntervalRegressor, OrtSetClassifier
from ortlearn.saving import export_training, load_training
from tests.intervals.test_interval_regressor import X, Y

from .conftest import modules_of, node

pytestmark = [pytest.mark.runtimes]

PROGRAM = """
const ort = require("onnxruntime-node");
(async () => {
  const session = await ort.InferenceSession.create(process.argv[2]);
  const X = new ort.Tensor("float32", Float32Array.from([0, 1, 2, 3, 4, 5]), [2, 3]);
  const { prediction, lower, upper } = await session.run({ X });
  console.log([...prediction.data, ...lower.data, ...upper.data].join(" "));
})();
"""


def test_intervals(tmp_path):
    folder = modules_of("node")
    trained = OrtIntervalRegressor(Ridge(), random_state=0).fit(X, Y)
    (tmp_path / "model.onnx").write_bytes(trained.get_trained_onnx().SerializeToString())
    script = folder / "interval_test.cjs"
    script.write_text(PROGRAM)
    try:
        printed = node(script, tmp_path / "model.onnx", folder=folder)
    finally:
        script.unlink()
    samples = np.arange(6, dtype=np.float32).reshape(2, 3)
    points, intervals = trained.predict_interval(samples)
    expected = np.concatenate([points, intervals[:, 0, 0], intervals[:, 1, 0]])
    np.testing.assert_allclose(np.array(printed.split(), dtype=float), expected, rtol=1e-5)


TRAINING = """
import { load } from "./index.mjs";
const [folder, result, X, y] = process.argv.slice(1);
const trainer = await load(folder), samples = JSON.parse(X);
const before = await trainer.predict(samples);
await trainer.fit(samples, JSON.parse(y), { epochs: 2 });
await trainer.save(result);
console.log(JSON.stringify({ before, after: await trainer.predict(samples) }));
"""


@pytest.mark.parametrize(
    "estimator, labels",
    [
        (OrtIntervalRegressor(Ridge(), method="residual", random_state=0), Y),
        (OrtIntervalRegressor(Ridge(), random_state=0), Y),
        (OrtSetClassifier(LogisticRegression(), random_state=0), (Y > 10).astype(int)),
    ],
    ids=["residual", "cqr", "sets"],
)
def test_training_packages(estimator, labels, tmp_path):
    """Node predicts as Python does, before and after it has trained; the calibration stays."""
    folder, samples = modules_of("node"), X[:100].astype(np.float32)
    estimator.fit(X, labels)
    export_training(estimator, tmp_path / "package", learning_rate="Adam")
    arguments = [
        tmp_path / "package",
        tmp_path / "trained",
        *map(json.dumps, (samples.tolist(), labels[:100].tolist())),
    ]
    found = json.loads(node("--input-type=module", "-e", TRAINING, *arguments, folder=folder))
    later = load_training(tmp_path / "trained")
    for outputs, model in ((found["before"], estimator), (found["after"], later)):
        if isinstance(estimator, OrtSetClassifier):
            np.testing.assert_array_equal(outputs["set"], model.predict_set(samples)[1][:, :, 0])
            continue
        points, intervals = model.predict_interval(samples)
        np.testing.assert_allclose(np.ravel(outputs["prediction"]), points, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(np.ravel(outputs["upper"]), intervals[:, 1, 0], rtol=1e-4, atol=1e-4)
    assert later.estimators_[0].n_iter_ == estimator.estimators_[0].n_iter_ + 2
    assert found["before"] != found["after"]
