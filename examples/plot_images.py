"""
Train a convolutional network on images
=======================================

An ONNX file accepts images as arrays of shape (n, channels, height, width), and can have one
label per pixel. This example trains two small convolutional networks on handwritten digits:
**one reads a digit, the other one separates its pixels from those of lines drawn over it,
although only one pixel in ten is labelled.**
"""

# %%
# A network as a file
# -------------------
#
# Such files are written by ``torch.onnx.export``, for example. Here the graph is written as
# text: two convolutions, each followed by max pooling over 2 x 2 pixels, and a layer for ten
# classes. Its weights are zero, since the training starts from fresh weights.

import matplotlib.pyplot as plt
import numpy as np
from onnx import numpy_helper, parser
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


def network(text, shapes):
    """Return a file with weights of the given shapes."""
    model = parser.parse_model('<ir_version: 8, opset_import: ["": 18]> ' + text)
    for name, shape in shapes.items():
        zeros = numpy_helper.from_array(np.zeros(shape, dtype=np.float32), name)
        model.graph.initializer.append(zeros)
    return model


reader = network(
    """digits (float[N,1,8,8] image) => (float[N,10] probability) {
    a = Conv <pads = [1,1,1,1]> (image, w1, b1)
    b = Relu (a)
    c = MaxPool <kernel_shape = [2,2], strides = [2,2]> (b)
    d = Conv <pads = [1,1,1,1]> (c, w2, b2)
    e = Relu (d)
    f = MaxPool <kernel_shape = [2,2], strides = [2,2]> (e)
    g = Flatten (f)
    h = Gemm (g, w3, b3)
    probability = Softmax <axis = 1> (h) }""",
    {
        "w1": (16, 1, 3, 3),
        "b1": (16,),
        "w2": (32, 16, 3, 3),
        "b2": (32,),
        "w3": (128, 10),
        "b3": (10,),
    },
)

# %%
# Read digits
# -----------
#
# X is an array with four dimensions. ``learning_loss="log_loss"`` declares that the output
# contains class probabilities, since the file has no output of labels.

from ortlearn import OrtGradientOptimizer
from ortlearn.learning_rates import LearningRateAdam

X, y = load_digits(return_X_y=True)
X = (X / 16).astype(np.float32).reshape(-1, 1, 8, 8)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=0.5, random_state=0, stratify=y
)
options = {
    "learning_loss": "log_loss",
    "learning_rate": LearningRateAdam(0.003),
    "batch_size": 32,
    "random_state": 0,
}
digits = OrtGradientOptimizer(reader, max_iter=30, **options)
digits.fit(X_train, y_train, X_val=X_test, y_val=y_test)
print(f"{digits.score(X_test, y_test):.1%} of the test images are read")

# %%
# The first layer has sixteen filters of nine pixels. They are weights like any others, with the
# names of the file.

filters = digits.trained_coef_["w1"]
_, axes = plt.subplots(2, 8, figsize=(7, 2.2), layout="constrained")
for ax, kernel in zip(axes.flat, filters, strict=True):
    ax.imshow(kernel[0], cmap="RdBu", vmin=-0.8, vmax=0.8)
    ax.set_axis_off()
_ = plt.suptitle("Filters of the first convolution")

# %%
# The trained file runs on any onnxruntime, for one image or for thousands.

import onnxruntime

session = onnxruntime.InferenceSession(
    digits.get_trained_onnx().SerializeToString(), providers=["CPUExecutionProvider"]
)
probability = session.run(None, {"image": X_test})[0]
print(f"{(probability.argmax(axis=1) == y_test).mean():.1%} by onnxruntime alone")

# %%
# One label per pixel
# -------------------
#
# Now lines are drawn over each digit, and the task is to find the pixels of the digit. Labels
# have the shape (n, height, width): 0 for the background, 1 for the digit, 2 for a line. A
# tenth of the pixels is labelled.

rng = np.random.default_rng(0)


def scenes(images):
    """Return larger images with a digit and two lines each, and the labels of all pixels."""
    pictures = np.zeros((len(images), 1, 16, 16), dtype=np.float32)
    labels = np.zeros((len(images), 16, 16), dtype=np.int64)
    for picture, label, image in zip(pictures[:, 0], labels, images[:, 0], strict=True):
        top, left = rng.integers(0, 9, 2)
        picture[top : top + 8, left : left + 8] = image
        label[top : top + 8, left : left + 8] = image > 0.3
        for place in (np.s_[rng.integers(16), :], np.s_[:, rng.integers(16)]):
            picture[place], label[place] = 0.8, 2
    noise = rng.normal(0, 0.05, pictures.shape).astype(np.float32)
    return pictures + noise, labels


X_train, y_train = scenes(X_train)
X_test, y_test = scenes(X_test)
labelled = rng.random(y_train.shape) < 0.1
y_known = np.where(labelled, y_train, -1)
print(f"{labelled.sum()} of {labelled.size} pixels have a label")

# %%
# The network has three scores per pixel. ``sample_weight`` has the shape of y and masks the
# unlabelled pixels, whatever their value in y. Validation data can have its own mask; here all
# its pixels are labelled.

segmenter = network(
    """pixels (float[N,1,H,W] image) => (float[N,3,H,W] score) {
    a = Conv <pads = [2,2,2,2]> (image, w1, b1)
    b = Relu (a)
    c = Conv <pads = [2,2,2,2]> (b, w2, b2)
    d = Relu (c)
    score = Conv (d, w3, b3) }""",
    {
        "w1": (12, 1, 5, 5),
        "b1": (12,),
        "w2": (12, 12, 5, 5),
        "b2": (12,),
        "w3": (3, 12, 1, 1),
        "b3": (3,),
    },
)
pixels = OrtGradientOptimizer(segmenter, max_iter=15, **options)
pixels.fit(X_train, y_known, sample_weight=labelled, X_val=X_test[:200], y_val=y_test[:200])
found = pixels.predict(X_test)
print(f"predict returns labels of shape {found.shape}")
print(f"predict_proba returns probabilities of shape {pixels.predict_proba(X_test).shape}")
print(f"{pixels.score(X_test, y_test):.1%} of the pixels are correct")
for number, name in enumerate(("background", "digit", "line")):
    share = (found == number)[y_test == number].mean()
    print(f"  {share:.1%} of those of the class {name}")

# %%
# The file has free dimensions H and W, so it accepts images of other sizes. Here four scenes
# are combined to one.

tile = X_test[:4].reshape(2, 2, 16, 16).transpose(0, 2, 1, 3).reshape(1, 1, 32, 32)
print(f"{tile.shape} -> {pixels.predict(tile).shape}")

# %%
# Result
# ------
#
# Each row is a scene of the test set: the image, the labels, and the predictions.

columns = {"image": X_test[:, 0], "labels": y_test, "predicted": found}
_, axes = plt.subplots(3, 3, figsize=(6, 6), layout="constrained")
for row, row_of_axes in enumerate(axes):
    for ax, (name, values) in zip(row_of_axes, columns.items(), strict=True):
        ax.imshow(values[row], cmap="gray_r" if name == "image" else "viridis", vmin=0)
        ax.set(xticks=[], yticks=[], title=name if row == 0 else "")
plt.show()
# sphinx_gallery_thumbnail_number = -1
