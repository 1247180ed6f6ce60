"""
Quantiles by a network
======================

How long does a trip take? On average is one answer; people who have a train to catch want
another. Three quantiles say more: half of the trips take less than the median, and four of
five take between the lowest and the highest tenth. scikit-learn's networks have no such loss.
This example trains one with it, **because the loss is chosen apart from the model.**
"""

# %%
# The data
# --------
#
# Trips across a town, by the hour at which they begin: long at rush hours, and then less
# predictable too.

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
# One network becomes three
# -------------------------
#
# scikit-learn fits a network to the mean, by the squared error. Each of ours begins with its
# weights (``warm_start=True``) and goes on with a quantile loss. The loss of level q costs q
# for every minute that a prediction is too low, and 1 - q for every minute that it is too
# high: it is smallest where a share q of the trips is below. The rate falls along a cosine,
# to nothing in the last epoch.

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
        learning_rate=LearningRateAdam(0.003, learning_rate=CosineSchedule(period=40)),
        batch_size=100,
        max_iter=40,
        random_state=0,
    ).fit(X_train, y_train)
    for quantile in (0.1, 0.5, 0.9)
}

# %%
# Are they right?
# ---------------
#
# Of a thousand trips that were not trained on, a tenth should take less than the lowest
# curve, half less than the median, and nine tenths less than the highest.

for quantile, trainer in trainers.items():
    below = (y_test < trainer.predict(X_test)).mean()
    print(f"quantile {quantile}: {below:.1%} of the trips are below")

# %%
# At five in the afternoon, whoever wants to be in time on nine days of ten takes this long,
# in minutes:

print(trainers[0.9].predict([[17.0]]).round(1))

# %%
# The losses of the outer quantiles fall in the first epochs already: the network knew the shape
# of the day. That of the median hardly falls, since the mean, where the training began, is not
# far from it.

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
# The band between the outer curves is narrow at noon and wide at rush hours: the networks
# have learned not only how long trips take, but how sure one can be.

day = np.linspace(6, 22, 300).reshape(-1, 1)
low, median, high = (trainer.predict(day) for trainer in trainers.values())
_, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
ax.scatter(X_test, y_test, s=4, color="0.6", label="trips not trained on")
ax.plot(day, mean.predict(day), "--", linewidth=1, color="black", label="mean, by scikit-learn")
ax.plot(day, median, linewidth=2, label="median")
ax.fill_between(day.ravel(), low.ravel(), high.ravel(), alpha=0.25, label="four of five trips")
ax.set(
    xlabel="hour of the day",
    ylabel="minutes",
    title="How long a trip takes: three quantiles over the day",
)
ax.legend()
plt.show()
# sphinx_gallery_thumbnail_number = -1
