"""
Adaptive intervals on a drifting stream
=======================================

Intervals promise their coverage for new samples that are like the calibration samples. In a
stream they are not: sensors age, customers change. ``partial_fit`` adapts the intervals after
each batch, so that **the share of misses stays what it should be.**
"""

# %%
# A stream with a drift
# ---------------------
#
# The model was fitted before the stream began. The noise of the labels triples from sample
# 1,000 on, and the labels drift away from sample 2,000 on.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Ridge

from ortlearn import OrtIntervalRegressor

rng = np.random.default_rng(0)
X = rng.normal(size=(3500, 3))
noise = np.where(np.arange(3500) < 1500, 1.0, 3.0) * rng.normal(size=3500)
drift = np.clip(np.arange(3500) - 2500, 0, None) * 0.01
y = X @ [1.0, 2.0, -1.0] + noise + drift

settings = {"coverage": 0.9, "method": "residual", "random_state": 0}
fixed = OrtIntervalRegressor(Ridge(), **settings).fit(X[:500], y[:500])
adaptive = OrtIntervalRegressor(Ridge(), step=0.03, window=200, **settings).fit(
    X[:500], y[:500]
)

# %%
# Predict, then learn the labels
# ------------------------------
#
# Labels arrive after the predictions, twenty at a time.

inside = {"fixed": [], "adaptive": []}
lower, upper = [], []
for start in range(500, 3500, 20):
    part = slice(start, start + 20)
    for name, model in (("fixed", fixed), ("adaptive", adaptive)):
        ends = model.predict_interval(X[part])[1][:, :, 0]
        inside[name].append((ends[:, 0] <= y[part]) & (y[part] <= ends[:, 1]))
    lower.append(ends[:, 0])
    upper.append(ends[:, 1])
    adaptive.partial_fit(X[part], y[part])

for name, parts in inside.items():
    print(f"{name}: {np.mean(parts):.3f} of the labels inside")

# %%
# Coverage over time
# ------------------
#
# The share of labels inside, over the last 300 samples.

window = np.ones(300) / 300
ax = plt.subplots(figsize=(8, 3.5), layout="constrained")[1]
for name, parts in inside.items():
    ax.plot(
        np.arange(300, 3001), np.convolve(np.concatenate(parts), window, "valid"), label=name
    )
ax.axhline(0.9, color="0.6", linestyle=":")
ax.set_xlabel("sample of the stream")
ax.set_ylabel("share inside")
ax.set_title("coverage of the last 300 samples")
ax.legend()
# sphinx_gallery_thumbnail_number = -1
plt.show()
