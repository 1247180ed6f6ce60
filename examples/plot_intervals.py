"""
Intervals for an existing pipeline
==================================

A pipeline predicts a number. How far can it be wrong? Five lines add an interval to each
prediction, which contains the label of nine new samples of ten, **whatever the pipeline is,**
and write it all to one ONNX file.
"""

# %%
# A pipeline in use
# -----------------
#
# Trips across a town by their starting hour are long at rush hours, and less predictable then.
# A boosted model was fitted some time ago; its predictions shall stay as they are.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def trips(n, seed):
    rng = np.random.RandomState(seed)
    hour = rng.uniform(6, 22, size=n)
    rush = np.exp(-((hour - 9) ** 2) / 4) + 0.8 * np.exp(-((hour - 17) ** 2) / 6)
    return hour.reshape(-1, 1), 20 + 15 * rush + rng.gamma(2.0, 1 + 4 * rush)


pipeline = make_pipeline(
    StandardScaler(), HistGradientBoostingRegressor(max_iter=30, random_state=0)
)
pipeline.fit(*trips(2000, 0))

# %%
# Five lines
# ----------
#
# 500 new trips are enough: 400 to learn how large the errors are, 100 to calibrate.

from ortlearn import OrtIntervalRegressor

X_new, y_new = trips(500, 1)
model = OrtIntervalRegressor(pipeline, coverage=0.9, random_state=0).fit(X_new, y_new)
X_test, y_test = trips(2000, 2)
predictions, intervals = model.predict_interval(X_test)
file = model.get_trained_onnx()

# %%
# Verify the coverage
# -------------------
#
# The predictions are those of the pipeline, up to the precision of float32, and nine of ten
# trips are inside of their intervals.

from ortlearn.intervals import coverage_score

print(np.abs(predictions - pipeline.predict(X_test)).max())
print(f"inside: {coverage_score(y_test, intervals):.3f}")
print([output.name for output in file.graph.output])

# %%
# A model of quantiles
# --------------------
#
# The intervals of a given model follow its prediction and, linearly, the features. An estimator
# that is not fitted learns the quantiles themselves: they are narrow at noon, and wide at rush
# hours.

from sklearn.neural_network import MLPRegressor

from ortlearn.inspection import CoverageDisplay, IntervalDisplay

network = make_pipeline(
    StandardScaler(), MLPRegressor(hidden_layer_sizes=(50, 20), random_state=0)
)
quantiles = OrtIntervalRegressor(network, coverage=0.9, random_state=0).fit(*trips(2000, 0))

axes = plt.subplots(1, 3, figsize=(12, 3.5), layout="constrained")[1]
for ax, fitted, title in zip(
    axes, (model, quantiles), ("the given pipeline", "a network of quantiles"), strict=False
):
    IntervalDisplay.from_estimator(fitted, X_test[:400], y_test[:400], feature=0, ax=ax)
    ax.set_title(title)
    ax.set_xlabel("hour")
    ax.set_ylabel("minutes")
for fitted, name in ((model, "pipeline"), (quantiles, "network")):
    CoverageDisplay.from_estimator(fitted, X_test, y_test, ax=axes[2], name=name)
axes[2].set_title("coverage")
# sphinx_gallery_thumbnail_number = -1
plt.show()
