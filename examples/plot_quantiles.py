"""
Quantiles with a neural network
===============================

How long does a trip take? To catch a train, the mean is not enough. Three quantiles say more:
half of the trips take less than the median, and four of five take between the 10 % and the 90
% quantile. scikit-learn's networks have no quantile loss. This example trains one, **because
the loss is chosen independently of the model.**
"""

# %%
# The data
# --------
#
# Trips across a town by their starting hour: they take longer at rush hours, and are less
# predictable then.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

rng = np.random.RandomState(0)
hour = rng.uniform(6, 22, size=4000)
rush = np.exp(-((hour - 9) ** 2) / 4) + 0.8 * np.exp(-((hour - 17) ** 2) / 6)
minutes = 20 + 15 * rush + rng.gamma(2.0, 1 + 4 * rush)
X_train, X_test, y_train, y_test = train_test_split(
    hour.reshape(-1, 1), minutes, random_state=0
)

# %%
# From one network to three
# -------------------------
#
# scikit-learn fits a network to the mean, with the squared error. Each trainer starts from its
# weights (``warm_start=True``) and uses a quantile loss. The loss of level q is q for every
# minute that a prediction is too low, and 1 - q for every minute that it is too high; it is
# minimal if a fraction q of the trips is below. The rate decreases along a cosine to zero.

from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn import OrtGradientOptimizer
from ortlearn.learning_rates import CosineSchedule, LearningRateAdam
from ortlearn.losses import QuantileLoss

network = MLPRegressor(hidden_layer_sizes=(100, 50), learning_rate_init=0.01, random_state=0)
mean = make_pipeline(StandardScaler(), network).fit(X_train, y_train)
trainers = {
    quantile: OrtGradientOptimizer(
        mean,
        warm_start=True,
        learning_loss=QuantileLoss(quantile),
        learning_rate=LearningRateAdam(0.003, schedule=CosineSchedule(period=40)),
        batch_size=100,
        max_iter=40,
        random_state=0,
    ).fit(X_train, y_train)
    for quantile in (0.1, 0.5, 0.9)
}

# %%
# Verify the quantiles
# --------------------
#
# Of a thousand test trips, 10 % should take less than the lowest curve, 50 % less than the
# median, and 90 % less than the highest.

for quantile, trainer in trainers.items():
    below = (y_test < trainer.predict(X_test)).mean()
    print(f"quantile {quantile}: {below:.1%} of the trips are below")

# %%
# To be on time on nine of ten days at five in the afternoon, plan this many minutes:

print(trainers[0.9].predict([[17.0]]).round(1))

# %%
# The losses of the outer quantiles decrease in the first epochs, since the network has already
# learned the shape of the day. That of the median hardly decreases, since the median is close
# to the mean.

from ortlearn.inspection import TrainingCurveDisplay

_, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for quantile, trainer in trainers.items():
    TrainingCurveDisplay.from_estimator(
        trainer, ax, name=f"quantile {quantile}", log_scale=True
    )
ax.set_title("Training losses of three quantiles")
_ = ax.legend(loc="center right", bbox_to_anchor=(1, 0.75))

# %%
# The whole day
# -------------
#
# The band between the outer curves is narrow at noon and wide at rush hours: the networks have
# learned how uncertain the duration is.

day = np.linspace(6, 22, 300).reshape(-1, 1)
low, median, high = (trainer.predict(day) for trainer in trainers.values())
_, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
ax.scatter(X_test, y_test, s=4, color="0.6", label="test trips")
ax.plot(day, mean.predict(day), "--", linewidth=1, color="black", label="mean, by scikit-learn")
ax.plot(day, median, linewidth=2, label="median")
ax.fill_between(day.ravel(), low.ravel(), high.ravel(), alpha=0.25, label="four of five trips")
ax.set(
    xlabel="hour of the day",
    ylabel="minutes",
    title="Duration of a trip: three quantiles over the day",
)
ax.legend()
plt.show()
# sphinx_gallery_thumbnail_number = -1
