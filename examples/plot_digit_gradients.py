"""
Which pixels decide: heat maps of gradients
===========================================

A network reads images of digits. The gradient of a class's probability with respect to the
pixels says which of them would change it; averaged over noise, it is less rough, and integrated
from an empty image, it sums to the difference of the probabilities. **The network is a fitted
scikit-learn model**, which is not changed.
"""

# %%
# A fitted network
# ----------------

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

X, y = load_digits(return_X_y=True)
model = MLPClassifier((50,), alpha=1.0, max_iter=500, random_state=0).fit(
    X[:1400] / 16, y[:1400]
)
print(f"accuracy: {model.score(X[1400:] / 16, y[1400:]):.3f}")

# %%
# Three explanations of one prediction
# ------------------------------------
#
# By default, the predicted class is explained.

import numpy as np

from ortlearn.inspection import (
    InputGradientDisplay,
    input_gradient,
    integrated_gradients,
    smooth_gradient,
)

images = X[1400:1800] / 16
image = images[[np.flatnonzero(model.predict(images) == 3)[0]]]
gradient = input_gradient(model, image)
smooth = smooth_gradient(model, image, scale=0.2, random_state=0)
parts = integrated_gradients(model, image, baseline=np.zeros(64))
print(f"probability {parts.value[0]:.3f}, of an empty image {parts.baseline_value[0]:.3f}")
print(f"sum of the attributions {parts.attributions.sum():.3f}, error {parts.error[0]:.1g}")

# %%
# Another class can be explained as well: why is it not an 8?

other = integrated_gradients(model, image, np.zeros(64), output=8)

# %%
# The heat maps
# -------------
#
# Red pixels speak for the class, blue ones against it.

figure, axes = plt.subplots(1, 4, figsize=(11, 2.8), layout="constrained")
axes[0].imshow(image.reshape(8, 8), cmap="gray_r")
axes[0].set(title="image", xticks=[], yticks=[])
titles = ("gradient", "smoothed gradient", "attribution to class 8")
for ax, title, values in zip(
    axes[1:], titles, (gradient, smooth, other.attributions), strict=True
):
    InputGradientDisplay(values, label="").plot(ax, image_shape=(8, 8)).ax_.set_title(title)

# %%
# Attributions of the predicted class:

display = InputGradientDisplay(parts.attributions, label="attribution")
display.plot(image_shape=(8, 8)).ax_.set_title("Integrated gradients of class 3")
plt.show()
# sphinx_gallery_thumbnail_number = -1
