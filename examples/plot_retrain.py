"""
Retrain a converted model
=========================

A model is trained with scikit-learn, converted to ONNX and deployed. Months later the data
have changed a little, the model makes more mistakes, and only its file is left. This example
trains the file again, on a few new rows: **a warm start needs a half to a quarter of the rows
that a new model needs.**
"""

# %%
# A model that was deployed
# -------------------------
#
# A network learns to read handwritten digits, images of 8 x 8 pixels. skl2onnx turns it into
# an ONNX file, here kept in memory; from then on scikit-learn is not needed any more.

import matplotlib.pyplot as plt
import numpy as np
from skl2onnx import to_onnx
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

X, y = load_digits(return_X_y=True)
X = (X / 16).astype(np.float32)
X_old, X_later, y_old, y_later = train_test_split(
    X, y, test_size=0.5, random_state=0, stratify=y
)
network = MLPClassifier(
    hidden_layer_sizes=(50,), alpha=0.01, learning_rate_init=0.01, random_state=0
)
network.fit(X_old, y_old)
deployed = to_onnx(network, X_old[:1], options={"zipmap": False}).SerializeToString()
print(f"{len(deployed)} bytes, {network.score(X_later, y_later):.1%} of the later digits read")

# %%
# The data change
# ---------------
#
# A new scanner is installed: what it sends is paler, and half a pixel further to the right.
# The network was never shown such images.

images = X_later.reshape(-1, 8, 8)
shifted = np.roll(images, 1, axis=2)
shifted[:, :, 0] = 0
X_later = 0.7 * (images + shifted).reshape(-1, 64) / 2
print(f"{network.score(X_later, y_later):.1%} with the new scanner")

titles = ("a digit, old scanner", "a digit, new scanner")
_, axes = plt.subplots(1, 2, figsize=(5, 2.6))
for ax, rows, title in zip(axes, (X_old, X_later), titles, strict=True):
    ax.imshow(rows[5].reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
    ax.set(title=title, xticks=[], yticks=[])

# %%
# Train it again
# --------------
#
# Forty of the new images are labelled by hand. ``warm_start=True`` begins with the weights of
# the file; a second training begins with fresh weights, for comparison. The other images tell
# how good both are.

from ortlearn import OrtGradientOptimizer
from ortlearn.inspection import TrainingCurveDisplay
from ortlearn.learning_rates import LearningRateAdam


def train(n_rows, warm_start):
    """Return a trainer, fitted on some of the new images, and the images it has not seen."""
    X_new, X_val, y_new, y_val = train_test_split(
        X_later, y_later, train_size=n_rows, random_state=0, stratify=y_later
    )
    trainer = OrtGradientOptimizer(
        deployed,
        warm_start=warm_start,
        learning_rate=LearningRateAdam(0.003),
        max_iter=60,
        validation_every=1,
        random_state=0,
    )
    return trainer.fit(X_new, y_new, X_val=X_val, y_val=y_val), X_val, y_val


starts = {"weights of the file": True, "fresh weights": False}
trainers = {}
for name, warm_start in starts.items():
    trainers[name], X_val, y_val = train(40, warm_start)
    print(f"{name}: {trainers[name].score(X_val, y_val):.1%} of {len(X_val)} images")

# %%
# The result is an ONNX file again, which any onnxruntime runs. ``trainer.get_trained_onnx()``
# is the same model with other weights, names and outputs unchanged.

import onnxruntime

trained = trainers["weights of the file"].get_trained_onnx()
session = onnxruntime.InferenceSession(
    trained.SerializeToString(), providers=["CPUExecutionProvider"]
)
labels = session.run(["label"], {"X": X_val})[0]
print(f"{(labels == y_val).mean():.1%} by onnxruntime alone")

# %%
# How the losses fell
# -------------------
#
# Solid lines are the forty images that are trained on, dashed ones those kept apart. Both
# trainings learn the forty by heart; the one that began with the weights of the file reads
# the others better. That is so because the change was small: where nothing of the old weights
# helps, fresh ones do as well.

_, ax = plt.subplots(figsize=(7, 4.8), layout="constrained")
for name, trainer in trainers.items():
    TrainingCurveDisplay.from_estimator(trainer, ax, name=name, log_scale=True)
ax.set_title("Losses of both trainings on 40 new images")
_ = ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2)

# %%
# How many rows it takes
# ----------------------
#
# The same with fewer and with more images. Read the picture across: a new model needs two to
# four times as many images to be as good as the old one trained again.

counts = [10, 20, 40, 80, 160]
_, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
for name, warm_start in starts.items():
    scores = []
    for n_rows in counts:
        trainer, X_val, y_val = train(n_rows, warm_start)
        scores.append(trainer.score(X_val, y_val))
    print(f"{name:>19}:", *(f"{score:.3f}" for score in scores))
    ax.plot(counts, scores, "o-", label=name)
ax.axhline(
    network.score(X_later, y_later),
    linestyle=":",
    color="0.4",
    label="the file, not trained again",
)
ax.set_xscale("log", base=2)
ax.set_xticks(counts, counts)
ax.set(
    xlabel="new images trained on",
    ylabel="share of other images read",
    title="Images read after a warm and a fresh start, by rows trained on",
)
ax.legend(loc="lower right")
plt.show()
# sphinx_gallery_thumbnail_number = -1
