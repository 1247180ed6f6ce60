"""
Adapt a deployed model to a drift
=================================

A model was trained with scikit-learn, converted to ONNX and deployed. Months later the data
has changed, the model makes more errors, and only its file is left. This example trains the
file further on a small number of new samples: **a warm start needs a half to a quarter of the
samples that a new model needs.**
"""

# %%
# A deployed model
# ----------------
#
# A network learns to read handwritten digits, images of 8 x 8 pixels. skl2onnx converts it to
# an ONNX file, here kept in memory. scikit-learn is not needed any more.

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
print(
    f"{len(deployed)} bytes, {network.score(X_later, y_later):.1%} accuracy on the later digits"
)

# %%
# The data changes
# ----------------
#
# A new scanner is installed. Its images are paler, and shifted by half a pixel to the right.
# The network was not trained on such images.

images = X_later.reshape(-1, 8, 8)
shifted = np.roll(images, 1, axis=2)
shifted[:, :, 0] = 0
X_later = 0.7 * (images + shifted).reshape(-1, 64) / 2
print(f"{network.score(X_later, y_later):.1%} with the new scanner")

titles = ("a digit, old scanner", "a digit, new scanner")
_, axes = plt.subplots(1, 2, figsize=(5, 2.6))
for ax, samples, title in zip(axes, (X_old, X_later), titles, strict=True):
    ax.imshow(samples[5].reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
    ax.set(title=title, xticks=[], yticks=[])

# %%
# Train the file further
# ----------------------
#
# Forty of the new images are labelled by hand. ``warm_start=True`` starts from the weights of
# the file; a second training starts from fresh weights, for comparison. The other images are
# used for validation.

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
# The result is an ONNX file that any onnxruntime runs. ``trainer.get_trained_onnx()`` is the
# same model with other weights; names and outputs are unchanged.

import onnxruntime

trained = trainers["weights of the file"].get_trained_onnx()
session = onnxruntime.InferenceSession(
    trained.SerializeToString(), providers=["CPUExecutionProvider"]
)
labels = session.run(["label"], {"X": X_val})[0]
print(f"{(labels == y_val).mean():.1%} by onnxruntime alone")

# %%
# Training curves
# ---------------
#
# Solid lines are the losses on the forty training images, dashed lines those on the other
# images. Both trainings fit the forty images; the one that started from the weights of the file
# generalises better, because the change was small. If the old weights were of no use, fresh
# weights would do as well.

_, ax = plt.subplots(figsize=(7, 4.8), layout="constrained")
for name, trainer in trainers.items():
    TrainingCurveDisplay.from_estimator(trainer, ax, name=name, log_scale=True)
ax.set_title("Losses of both trainings on 40 new images")
_ = ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2)

# %%
# Number of samples
# -----------------
#
# The same with fewer and with more images. At equal height, the new model needs two to four
# times as many images as the adapted one.

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
    label="the file, without training",
)
ax.set_xscale("log", base=2)
ax.set_xticks(counts, counts)
ax.set(
    xlabel="number of labelled new images",
    ylabel="accuracy on other images",
    title="Accuracy after a warm and a fresh start",
)
ax.legend(loc="lower right")
plt.show()
# sphinx_gallery_thumbnail_number = -1
