"""
Train on a Dask cluster
=======================

A dask array is divided into chunks, which may be on many machines. ``DaskOrtGradientOptimizer``
trains a copy of the model on every chunk and averages the weights after each round. The cluster
of this example has two workers in one process; **the program is the same for a real cluster.**
"""

# %%
# Data on a cluster
# -----------------
#
# Eight chunks of 2,500 samples of Friedman's function, whose noise has variance 1.

import dask.array as da
import matplotlib.pyplot as plt
from distributed import Client
from sklearn.datasets import make_friedman1

client = Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None)
X, y = make_friedman1(22_000, noise=1.0, random_state=0)
X_test, y_test = X[20_000:], y[20_000:]
X, y = X[:20_000], y[:20_000]
X_chunks = da.from_array(X, chunks=(2500, -1))
y_chunks = da.from_array(y, chunks=2500)

# %%
# Train in rounds
# ---------------
#
# By default a round is a pass over each chunk. ``sync_every="10 batches"`` averages more often,
# which brings the result closer to a training on one machine, and costs more communication.

from sklearn.neural_network import MLPRegressor

from ortlearn import OrtGradientOptimizer
from ortlearn.distributed import DaskOrtGradientOptimizer
from ortlearn.learning_rates import LearningRateAdam

options = {
    "learning_rate": LearningRateAdam(0.005, schedule="constant"),
    "batch_size": 25,
    "max_iter": 10,
    "validation_every": 1,
    "random_state": 0,
}
network = MLPRegressor(hidden_layer_sizes=(50, 20))
curves = {}
for name, sync_every in {
    "one round per pass": 1,
    "a round per 10 batches": "10 batches",
}.items():
    model = DaskOrtGradientOptimizer(network, client=client, sync_every=sync_every, **options)
    model.fit(X_chunks, y_chunks, X_val=X_test, y_val=y_test)
    curves[name] = model.validation_losses_
    print(f"{name}: {model.history_[-1]['rounds']} rounds in the last pass")

# %%
# The model is trained on the cluster, and used anywhere: ``to_local()`` returns an
# ``OrtGradientOptimizer``, ``get_trained_onnx()`` the ONNX model.

local = model.to_local()
print(type(local).__name__, f"R2 {local.score(X_test, y_test):.3f}")
client.close()

# %%
# Compared with one machine
# -------------------------
#
# Averaged copies make fewer updates one after the other, so a pass over eight chunks achieves
# less than a pass on one machine. On a cluster it takes a fraction of the time.

one = OrtGradientOptimizer(network, **options).fit(X, y, X_val=X_test, y_val=y_test)
curves["one machine"] = one.validation_losses_
_, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, losses in curves.items():
    ax.plot(range(1, len(losses) + 1), losses, "o-", label=name)
ax.set(
    yscale="log",
    xlabel="pass",
    ylabel="validation loss",
    title="Eight chunks on a cluster, compared with one machine",
)
ax.legend()
plt.show()
# sphinx_gallery_thumbnail_number = -1
