"""
Average weights over shards
===========================

Samples that are stored on several machines do not have to be moved: every machine trains a
copy of the model on its own samples, and the weights are averaged after each pass. A pass
takes a fraction of the time, but also achieves less, since the copies make fewer consecutive
updates. This example trains a network over 1, 4 and 16 shards, and measures **the effect of a
pass.**
"""

# %%
# The data
# --------
#
# Friedman's function of five features, with five irrelevant features and noise of variance 1,
# so that the mean squared error of any model is at least 1.

import copy

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import train_test_split

X, y = make_friedman1(18432, noise=1.0, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=2048, random_state=0)

# %%
# Rounds
# ------
#
# A round is one pass: each shard trains a copy of the model with ``partial_fit``, and
# :func:`~ortlearn.distributed.average_trainers` returns the mean of their weights and of the
# moments of Adam, weighted by the number of samples. Here the shards are trained one after the
# other; on a cluster, in parallel. All copies must start from the same weights, which a first
# call on one batch draws.

from sklearn.neural_network import MLPRegressor

from ortlearn import OrtGradientOptimizer
from ortlearn.distributed import average_trainers
from ortlearn.learning_rates import LearningRateAdam

N_PASSES = 12


def train(n_shards, batch_size=32):
    """Return the mean squared error on test samples after every pass."""
    adam = LearningRateAdam(0.002, schedule="constant")
    network = MLPRegressor(hidden_layer_sizes=(50, 20))
    model = OrtGradientOptimizer(
        network, learning_rate=adam, batch_size=batch_size, random_state=0
    )
    model.partial_fit(X_train[:32], y_train[:32], total_weight=len(X_train))
    shards = list(
        zip(np.array_split(X_train, n_shards), np.array_split(y_train, n_shards), strict=True)
    )
    errors = []
    for _ in range(N_PASSES):
        trained = [
            copy.deepcopy(model).partial_fit(X_shard, y_shard, total_weight=len(X_train))
            for X_shard, y_shard in shards
        ]
        model = average_trainers(trained, [len(y_shard) for _, y_shard in shards])
        errors.append(mean_squared_error(y_test, model.predict(X_test)))
    return errors


# %%
# Number of updates
# -----------------
#
# A pass on one machine has 512 updates of 32 samples. With 16 shards, each shard makes 32
# updates: the mean has less noise, but is not much further than one copy with 32 updates. With
# batches of 2 samples, each shard makes 512 updates again, and the mean removes their noise.

curves = {
    "1 shard, batches of 32": train(1),
    "4 shards, batches of 32": train(4),
    "4 shards, batches of 8": train(4, batch_size=8),
    "16 shards, batches of 32": train(16),
    "16 shards, batches of 2": train(16, batch_size=2),
}
for name, errors in curves.items():
    print(f"{name}: mean squared error {errors[-1]:.2f}")

# %%
# Loss per pass
# -------------
#
# With batches that are smaller by the number of shards, most of the effect of a pass is
# restored. They have a cost: small batches take more time per sample, so a pass over 16 shards
# is less than 16 times as fast. :doc:`../explanation/scaling` has measurements of other
# problems, of higher rates as an alternative, and of the cost of a round.

passes = np.arange(1, N_PASSES + 1)
_, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
for (name, errors), color in zip(
    curves.items(), ("black", "C0", "C0", "C1", "C1"), strict=True
):
    ax.plot(passes, errors, "-" if name.endswith("32") else "--", color=color, label=name)
ax.set(
    xlabel="passes over all samples",
    ylabel="mean squared error on test samples",
    yscale="log",
    title="One average a pass, over 1, 4 and 16 shards",
)
ax.legend()
plt.show()
# sphinx_gallery_thumbnail_number = -1
