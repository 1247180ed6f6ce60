"""
Retrain a converted model
=========================

A model is trained with scikit-learn, converted to ONNX and deployed. Months later the data
have changed a little, the model makes more mistakes, and only its file is left. This example
trains the file again, on a few new rows: **a warm start needs far fewer rows than a new
model.**
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

_, axes = plt.subplots(1, 2, figsize=(5, 2.6))
for ax, rows, title in zip(axes, (X_old, X_later), ("old scanner", "new scanner"), strict=True):
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

X_new, X_val, y_new, y_val = train_test_split(
    X_later, y_later, train_size=40, random_state=0, stratify=y_later
)
trainers = {
    name: OrtGradientOptimizer(
        deployed,
        warm_start=warm_start,
        learning_rate=LearningRateAdam(0.003),
        max_iter=60,
        validation_every=1,
        random_state=0,
    ).fit(X_new, y_new, X_val=X_val, y_val=y_val)
    for name, warm_start in [("weights of the file", True), ("fresh weights", False)]
}
for name, trainer in trainers.items():
    print(f"{name}: {trainer.score(X_val, y_val):.1%} of {len(X_val)} images")

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

_, ax = plt.subplots(figsize=(7, 4.5))
for name, trainer in trainers.items():
    TrainingCurveDisplay.from_estimator(trainer, ax, name=name, log_scale=True)
ax.set_title("Training on 40 new images")
plt.show()
# sphinx_gallery_thumbnail_number = -1
