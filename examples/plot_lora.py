"""
Low-rank adapters for one base file
===================================

One network is in use at several places, and each place has its own kind of images. Instead of
one file per place, each place trains a low-rank adapter (LoRA): two small matrices per layer,
whose product is added to the weights of the base file. **The base file does not change, and
each adapter is a fraction of its size.**
"""

# %%
# The base file
# -------------
#
# A network that reads digits, as an ONNX file.

import matplotlib.pyplot as plt
import numpy as np
from skl2onnx import to_onnx
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

X, y = load_digits(return_X_y=True)
X = (X / 16).astype(np.float32)
X_base, X, y_base, y = train_test_split(X, y, test_size=0.5, random_state=0)
network = MLPClassifier((128,), max_iter=500, random_state=0).fit(X_base, y_base)
base = to_onnx(network, X_base[:1], options={"zipmap": False})

# %%
# Three places
# ------------
#
# One scanner produces paler images, one turns the images by 90 degrees, one blurs them.


def turned(images):
    """Return the images, turned by 90 degrees."""
    return np.rot90(images.reshape(-1, 8, 8), axes=(1, 2)).reshape(-1, 64).copy()


def blurred(images):
    """Return the mean of each pixel and its two neighbours on the left."""
    square = images.reshape(-1, 8, 8)
    return np.mean([np.roll(square, shift, axis=2) for shift in range(3)], axis=0).reshape(
        -1, 64
    )


places = {"paler": lambda images: 0.4 + images / 2, "turned": turned, "blurred": blurred}

# %%
# One adapter each
# ----------------
#
# ``lora=LoRA(rank=4)`` trains two matrices per layer, one with four columns, one with four
# rows. ``save_adapter`` writes them in ONNX Runtime's own format, to be loaded with the base
# file.

from pathlib import Path
from tempfile import TemporaryDirectory

from ortlearn import OrtGradientOptimizer
from ortlearn.onnx_files import LoRA

before, after, sizes = [], [], []
for change in places.values():
    samples = change(X).astype(np.float32)
    X_new, X_test, y_new, y_test = train_test_split(
        samples, y, train_size=200, stratify=y, random_state=0
    )
    trainer = OrtGradientOptimizer(
        base,
        lora=LoRA(rank=4),
        learning_loss="log_loss",
        learning_rate="Adam",
        max_iter=100,
        random_state=0,
    ).fit(X_new, y_new)
    with TemporaryDirectory() as folder:
        sizes.append(trainer.save_adapter(Path(folder) / "place.onnx_adapter").stat().st_size)
    before.append(np.mean(network.predict(X_test) == y_test))
    after.append(trainer.score(X_test, y_test))
print(f"base file: {base.ByteSize()} bytes, adapters: {sizes} bytes")

# %%
# Accuracy
# --------
#
# ``get_trained_onnx()`` merges an adapter into a copy of the base file, for places that prefer
# one file; ``get_trained_onnx(merged=False)`` is the base file with inputs for the adapters.

_, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
positions = np.arange(len(places))
ax.bar(positions - 0.2, before, 0.38, color="0.75", label="base file")
ax.bar(positions + 0.2, after, 0.38, label="base file and adapter")
ax.set_xticks(positions, places)
ax.set(ylabel="accuracy", ylim=(0, 1), title="One base file, one adapter per kind of image")
ax.legend(loc="lower right")
plt.show()
# sphinx_gallery_thumbnail_number = -1
