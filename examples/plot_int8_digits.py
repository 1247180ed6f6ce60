"""
A convolutional network of digits with 8-bit integers
=====================================================

A convolutional network reads images of digits. ``quantize`` stores its weights as integers of 8
bits, and ONNX Runtime computes with them. **The file takes less than half of the bytes, and the
predictions stay.** The how-to guide on smaller models runs such a file in the browser.
"""

# %%
# The network
# -----------
#
# Two convolutions, with fresh weights. This graph is written as text; an export of another
# framework works as well.

import numpy as np
from onnx import numpy_helper, parser
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from ortlearn import OrtGradientOptimizer

X, y = load_digits(return_X_y=True)
X = (X.reshape(-1, 1, 8, 8) / 16).astype(np.float32)
X, X_test, y, y_test = train_test_split(X, y, test_size=500, random_state=0, stratify=y)

network = parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
    digits (float[N,1,8,8] image) => (float[N,10] score) {
        a = Conv <pads = [1,1,1,1]> (image, w1, b1)
        b = Relu (a)
        c = MaxPool <kernel_shape = [2,2], strides = [2,2]> (b)
        d = Conv <pads = [1,1,1,1]> (c, w2, b2)
        e = Relu (d)
        f = Flatten (e)
        score = Gemm (f, w3, b3)
    }""")
rng = np.random.default_rng(0)
shapes = {"w1": (8, 1, 3, 3), "b1": (8,), "w2": (16, 8, 3, 3), "b2": (16,)}
for name, shape in (shapes | {"w3": (256, 10), "b3": (10,)}).items():
    values = rng.normal(0, 0.1, shape) if len(shape) > 1 else np.zeros(shape)
    network.graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), name))

trainer = OrtGradientOptimizer(
    network,
    learning_loss="log_loss",
    learning_rate="Adam",
    batch_size=32,
    max_iter=30,
    warm_start=True,
    random_state=0,
).fit(X, y)
print(f"accuracy: {trainer.score(X_test, y_test):.3f}")

# %%
# Integers
# --------
#
# The ranges of the activations come from the training samples; ``held_out``
# samples compare both files.

from ortlearn.compress import quantize

float_file = trainer.get_trained_onnx()
small = quantize(float_file, X, y, held_out=(X_test, y_test))
print(small)
print(small.facts["integer kernels"])

# %%
# Predictions of both files
# -------------------------
#
# The images with the least certain float predictions, with the digits that each file reads.

import matplotlib.pyplot as plt
import onnxruntime


def scores_of(model):
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session.run(None, {"image": X_test})[0]


before, after = scores_of(float_file), scores_of(small.onnx)
top = np.sort(before, axis=1)
uncertain = np.argsort(top[:, -1] - top[:, -2])[:10]
print(f"equal predictions: {np.mean(before.argmax(axis=1) == after.argmax(axis=1)):.3f}")

_, axes = plt.subplots(2, 5, figsize=(8, 4), layout="constrained")
for ax, i in zip(axes.ravel(), uncertain, strict=True):
    ax.imshow(X_test[i, 0], cmap="gray_r")
    ax.set(xticks=[], yticks=[])
    ax.set_title(
        f"{y_test[i]}: float {before[i].argmax()}, int8 {after[i].argmax()}", fontsize=9
    )
plt.suptitle("label, and what each file reads")
# sphinx_gallery_thumbnail_number = -1
plt.show()
