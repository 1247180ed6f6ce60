"""
Sets of classes for images
==========================

A classifier of images is sure of most digits and unsure of some. Its prediction set says so:
one digit where it is sure, several where it is not, and **the right one is in 97 of 100 sets.**
"""

# %%
# A classifier with sets
# ----------------------
#
# A small network on images of 8 x 8 pixels. ``probabilities="temperature"`` makes its
# probabilities honest, too: half of the held-out samples calibrate them, the others the sets.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from ortlearn import OrtGradientOptimizer, OrtSetClassifier

images, digits = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(images / 16, digits, test_size=500, random_state=0)

network = OrtGradientOptimizer(
    MLPClassifier(hidden_layer_sizes=(32,), max_iter=5, random_state=0),
    learning_rate="Adam",
    max_iter=60,
    batch_size=50,
)
settings = {
    "method": "aps",
    "probabilities": "temperature",
    "calibration": 0.4,
    "random_state": 0,
}
classifier = OrtSetClassifier(network, coverage=0.98, **settings).fit(X, y)
labels, sets = classifier.predict_set(X_test)
inside = sets[np.arange(500), y_test, 0].mean()
print(f"accuracy: {np.mean(labels == y_test):.3f}, in the set: {inside:.3f}")

# %%
# The hardest images
# ------------------
#
# Most sets have one digit. The largest ones are those of images that a person would hesitate
# at, too.

sizes = sets[:, :, 0].sum(axis=1)
print(
    {
        int(size): int(count)
        for size, count in zip(*np.unique(sizes, return_counts=True), strict=True)
    }
)
hardest = np.argsort(-sizes, kind="stable")[:10]
axes = plt.subplots(2, 5, figsize=(8, 4), layout="constrained")[1].ravel()
for ax, number in zip(axes, hardest, strict=True):
    ax.imshow(X_test[number].reshape(8, 8), cmap="gray_r")
    found = ", ".join(map(str, np.flatnonzero(sets[number, :, 0])))
    ax.set_title(f"{{{found}}}, is {y_test[number]}")
    ax.set_axis_off()
# sphinx_gallery_thumbnail_number = -1
plt.show()
