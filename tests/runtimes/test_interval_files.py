"""The file of an interval estimator gives the same intervals in Node."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from ortlearn import OrtIntervalRegressor
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
    rows = np.arange(6, dtype=np.float32).reshape(2, 3)
    points, intervals = trained.predict_interval(rows)
    expected = np.concatenate([points, intervals[:, 0, 0], intervals[:, 1, 0]])
    np.testing.assert_allclose(np.array(printed.split(), dtype=float), expected, rtol=1e-5)
