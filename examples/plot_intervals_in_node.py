"""
Intervals in Node, from one file
================================

The file of an interval model has everything: preprocessing, quantiles, calibration. A server
in Node returns intervals with a few lines, **and without Python.** Fresh calibration samples
change numbers of the file, and nothing in the program.
"""

# %%
# The file
# --------
#
# A network of quantiles with its scaler, trained and calibrated in Python.

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn import OrtIntervalRegressor

rng = np.random.default_rng(0)
X = rng.uniform(0, 10, size=(2000, 1)).astype(np.float32)
y = np.sin(X[:, 0]) + (0.1 + 0.05 * X[:, 0]) * rng.normal(size=2000)
network = make_pipeline(
    StandardScaler(), MLPRegressor(hidden_layer_sizes=(40, 20), random_state=0)
)
model = OrtIntervalRegressor(network, coverage=0.8, random_state=0).fit(X, y)
folder = TemporaryDirectory()
file = Path(folder.name) / "model.onnx"
_ = file.write_bytes(model.get_trained_onnx().SerializeToString())

# %%
# The program
# -----------
#
# ``npm install onnxruntime-node`` is all that it needs. In a browser the module is
# ``onnxruntime-web``, with the same functions.

PROGRAM = """
const ort = require("onnxruntime-node");
(async () => {
  const session = await ort.InferenceSession.create(process.argv[2]);
  const X = new ort.Tensor("float32", Float32Array.from([1, 5, 9]), [3, 1]);
  const { prediction, lower, upper } = await session.run({ X });
  for (let i = 0; i < 3; i++) {
    console.log([prediction, lower, upper].map((part) => part.data[i].toFixed(4)).join(" "));
  }
})();
"""
script = Path(folder.name) / "predict.js"
_ = script.write_text(PROGRAM)

# %%
# It prints what the estimator predicts. Without Node on this machine, ONNX Runtime in Python
# runs the same file.

try:
    done = subprocess.run(["node", script, file], capture_output=True, text=True, check=True)
    printed = done.stdout
except (OSError, subprocess.CalledProcessError):  # no Node, or no onnxruntime-node
    session = onnxruntime.InferenceSession(file)
    found = session.run(["prediction", "lower", "upper"], {"X": np.float32([[1], [5], [9]])})
    printed = "\n".join(
        " ".join(f"{value:.4f}" for value in row) for row in np.transpose(found)
    )
print(printed)
points, intervals = model.predict_interval(np.float32([[1], [5], [9]]))
expected = np.column_stack([points, intervals[:, :, 0]])
print(np.abs(np.array(printed.split(), dtype=float).reshape(3, 3) - expected).max() < 1e-3)

# %%
# Recalibrate
# -----------
#
# Later the noise has doubled. 200 fresh samples change the constants of the file; the program
# stays.

y_later = y + (0.1 + 0.05 * X[:, 0]) * 1.7 * rng.normal(size=2000)
before = model.predict_interval(X)[1][:, :, 0]
model.recalibrate(X[:200], y_later[:200])
_ = file.write_bytes(model.get_trained_onnx().SerializeToString())
after = model.predict_interval(X)[1][:, :, 0]

axes = plt.subplots(1, 2, figsize=(10, 3.5), sharey=True, layout="constrained")[1]
order = np.argsort(X[:, 0])
for ax, ends, title in zip(axes, (before, after), ("first file", "recalibrated"), strict=True):
    inside = np.mean((ends[200:, 0] <= y_later[200:]) & (y_later[200:] <= ends[200:, 1]))
    ax.scatter(X[200:, 0], y_later[200:], s=3, color="0.6")
    ax.fill_between(X[order, 0], ends[order, 0], ends[order, 1], alpha=0.4)
    ax.set_title(f"{title}: {inside:.0%} of later samples inside")
# sphinx_gallery_thumbnail_number = -1
plt.show()
