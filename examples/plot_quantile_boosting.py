"""
Quantile bands for gradient boosting
====================================

A gradient boosting model predicts the mean, and is in use. To know how uncertain each
prediction is, you would usually fit two more models from the beginning. This example trains
the leaf values of the fitted model for the 10 % and the 90 % quantile instead: **the splits
stay the same, and the loss is changed.**
"""

# %%
# A fitted model
# --------------
#
# The noise grows with the feature, so a band of constant width would be wrong.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import train_test_split

rng = np.random.default_rng(0)
X = rng.uniform(0, 10, size=(6000, 1))
y = np.sin(X[:, 0]) + (0.1 + 0.1 * X[:, 0]) * rng.standard_normal(6000)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
model = GradientBoostingRegressor(n_estimators=50, max_depth=2, random_state=0).fit(
    X_train, y_train
)

# %%
# Train the leaf values for a quantile
# ------------------------------------
#
# With ``warm_start=True`` the training starts from the leaf values of the fitted model.
# ``QuantileLoss`` replaces the squared error. By default, held-out samples decide how far the
# training goes.

from ortlearn import OrtGradientOptimizer
from ortlearn.losses import QuantileLoss

bands = {}
for quantile in (0.1, 0.9):
    trainer = OrtGradientOptimizer(
        model,
        learning_loss=QuantileLoss(quantile),
        warm_start=True,
        random_state=0,
    )
    bands[quantile] = trainer.fit(X_train, y_train)
    share = np.mean(y_test < trainer.predict(X_test))
    print(f"{quantile:.0%} quantile: {share:.1%} of the test samples are below it")

# %%
# The result is a scikit-learn model with the same trees:

low = bands[0.1].to_sklearn()
first, again = (estimator.estimators_[0, 0].tree_ for estimator in (model, low))
print(type(low).__name__, np.array_equal(first.threshold, again.threshold))

# %%
# The band
# --------
#
# The band is wide where the noise is large.

grid = np.linspace(0, 10, 400)[:, np.newaxis]
_, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
ax.scatter(X_test, y_test, s=6, color="0.7", label="test samples")
ax.plot(grid, model.predict(grid), color="k", label="fitted model")
ax.fill_between(
    grid[:, 0],
    bands[0.1].predict(grid),
    bands[0.9].predict(grid),
    alpha=0.4,
    label="10 % to 90 %",
)
ax.set(xlabel="feature", ylabel="target", title="Quantile bands from one boosting model")
ax.legend()
plt.show()
# sphinx_gallery_thumbnail_number = -1
